package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// Whose run a record is of, its user and token, is the same for all records of the run. Where a
// record has nothing else that is personal, that is kept once a segment, beside the lines: each
// line has the commitment to it, and no record but the first costs another write. Erasing a run
// erases these, too.

// DetailOwnerKey is the key of Record.Detail, of records with which a sandbox begins or a
// person is asked, that has OwnerKeys.Of the run.
const DetailOwnerKey = "owner_key"

// OwnerToken is the token whose run it is; "": the host's, or it was erased. Records of earlier
// versions have it among their details, where it can't be erased.
func (r Record) OwnerToken() string {
	if r.Token != "" {
		return r.Token
	}
	return r.Detail["token"]
}

// OwnerKeys tell whether a run is a token's when the log has forgotten whose it is: what a
// token may read does not change because somebody's name was erased. A key says nothing to who
// lacks the installation's secret, and is another for each run.
type OwnerKeys struct{ secret []byte }

// NewOwnerKeys derives them from a secret of the installation; without one there are none, since
// anybody could make them.
func NewOwnerKeys(installation []byte) OwnerKeys {
	if len(installation) == 0 {
		return OwnerKeys{}
	}
	mac := hmac.New(sha256.New, installation)
	_, _ = mac.Write([]byte("cofferdam owner keys"))
	return OwnerKeys{mac.Sum(nil)}
}

// Of is the key of a run of a token; "" if it is the host's.
func (k OwnerKeys) Of(run, token string) string {
	if token == "" || len(k.secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(run + "\x00" + token)) // a token's id has no such byte
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Owns reports whether a run is a token's, as a record says with which it began a sandbox.
func (k OwnerKeys) Owns(began Record, token string) bool {
	if token == "" {
		return began.OwnerToken() == "" && began.Detail[DetailOwnerKey] == ""
	}
	if known := began.OwnerToken(); known != "" {
		return known == token
	}
	key := began.Detail[DetailOwnerKey]
	return key != "" && hmac.Equal([]byte(key), []byte(k.Of(began.Run, token)))
}

// ownerEntry is an entry that many records share.
type ownerEntry struct {
	of   string // the commitment
	rest []byte // the entry's line after its number
}

type ownerID struct{ run, user, token string }

// maxOwnerEntries bounds the runs whose entries are kept in mind.
const maxOwnerEntries = 4_096

// ownerEntries are those that new records commit to. Safe for concurrent use.
type ownerEntries struct {
	mu sync.Mutex // guards by
	by map[ownerID]*ownerEntry
}

// entryOf returns the entry of a run's owner, a new one if there is none.
func (o *ownerEntries) entryOf(id ownerID) (*ownerEntry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.by[id]; known != nil {
		return known, nil
	}
	e := personalEntry{Run: id.run, Shared: true, Salt: make([]byte, saltBytes), Data: &personalData{User: id.user, Token: id.token}}
	if _, err := rand.Read(e.Salt); err != nil {
		return nil, err
	}
	made := &ownerEntry{}
	var err error
	if e.Of, err = e.commitment(); err == nil {
		made.of = e.Of
		made.rest, err = e.encodeRest()
	}
	if err != nil {
		return nil, err
	}
	if o.by == nil || len(o.by) >= maxOwnerEntries {
		o.by = map[ownerID]*ownerEntry{}
	}
	o.by[id] = made
	return made, nil
}

// forgetEntries makes the next record of each run begin another entry.
func (o *ownerEntries) forgetEntries() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by = nil
}

// sharedEntries are entries that were read, by what commits to them, for all readers of a log.
// Safe for concurrent use.
type sharedEntries struct {
	mu  sync.Mutex // guards all
	by  map[string]personalEntry
	era int // counts forget: what was read before one must not come after it
}

func (s *sharedEntries) getEntry(of string) (e personalEntry, known bool, era int) {
	if s == nil {
		return e, false, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known = s.by[of]
	return e, known, s.era
}

func (s *sharedEntries) putEntry(e personalEntry, era int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if era != s.era {
		return
	}
	if s.by == nil || len(s.by) >= maxOwnerEntries {
		s.by = map[string]personalEntry{}
	}
	s.by[e.Of] = e
}

func (s *sharedEntries) forgetEntries() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by, s.era = nil, s.era+1
}
