package audit

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// PersonalDetail lists the keys of Record.Detail that are kept as personal data,
// like User, Token and Task: who answered, what people and agents wrote about it, with which
// arguments tools were called, and paths of the host, which have people's names in them.
func PersonalDetail() []string {
	return []string{"answered_by", "arguments", "because", "by", "note", "policy_source", "token"}
}

// personalData is what of a record is kept beside its line.
type personalData struct {
	User   string            `json:"user,omitempty"`
	Token  string            `json:"token,omitempty"`
	Task   string            `json:"task,omitempty"`
	Detail map[string]string `json:"detail,omitempty"`
}

// personalEntry is a line of a segment's personal file. The commitment in the
// record's line is the SHA-256 of the salt followed by the canonical JSON of the
// data: without the 32 random bytes of salt it tells nothing, not even to who
// guesses the data. An erased entry has neither.
type personalEntry struct {
	Seq    uint64        `json:"seq"` // first: the writer stamps it
	Of     string        `json:"of"`  // the commitment
	Run    string        `json:"agent_run_id,omitempty"`
	Shared bool          `json:"shared,omitempty"` // by records of the segment: see owner.go
	Salt   []byte        `json:"salt,omitempty"`
	Data   *personalData `json:"data,omitempty"`
	Erased time.Time     `json:"erased,omitzero"`
}

const (
	saltBytes        = 32
	unstampedEntry   = `{"seq":0`
	commitmentPrefix = "sha256:"
	maxPersonalLine  = 2 * MaxRecord
)

// takeOut splits a record into what goes into its line and what is personal: an entry of its
// own, or, where that would only say whose run it is, the one that it shares with the run's
// others. Both are nil if nothing is personal.
func takeOut(r Record, owners *ownerEntries) (encodedRecord, *personalEntry, *ownerEntry, error) {
	data := personalData{User: r.User, Token: r.Token, Task: r.Task}
	for _, key := range PersonalDetail() {
		value, ok := r.Detail[key]
		if !ok {
			continue
		}
		if data.Detail == nil {
			data.Detail = map[string]string{}
			r.Detail = maps.Clone(r.Detail)
		}
		data.Detail[key] = value
		delete(r.Detail, key)
	}
	r.User, r.Token, r.Task = "", "", ""
	owned, more := data.User != "" || data.Token != "", data.Task != "" || data.Detail != nil
	switch {
	case !owned && !more:
		return encodedRecord{Record: r}, nil, nil, nil
	case !more && r.Run != "":
		owner, err := owners.entryOf(ownerID{r.Run, data.User, data.Token})
		if err != nil {
			return encodedRecord{}, nil, nil, err
		}
		return encodedRecord{Record: r, Owner: owner.of}, nil, owner, nil
	}
	e := &personalEntry{Run: r.Run, Salt: make([]byte, saltBytes), Data: &data}
	if _, err := rand.Read(e.Salt); err != nil {
		return encodedRecord{}, nil, nil, err
	}
	var err error
	e.Of, err = e.commitment()
	return encodedRecord{Record: r, Personal: e.Of}, e, nil, err
}

func (e *personalEntry) commitment() (string, error) {
	text, err := canonical(e.Data)
	if err != nil {
		return "", fault.Wrap(fault.ErrInvalid, err, "the record can't be written as JSON")
	}
	sum := sha256.Sum256(append(slices.Clone(e.Salt), bytes.TrimSuffix(text, []byte("\n"))...))
	return commitmentPrefix + hex.EncodeToString(sum[:]), nil
}

// proves reports whether the entry's data are those that were committed to.
func (e *personalEntry) proves() bool {
	if e.Data == nil || len(e.Salt) != saltBytes {
		return false
	}
	of, err := e.commitment()
	return err == nil && of == e.Of
}

// encodeRest encodes the entry's line after its number, newline included.
func (e *personalEntry) encodeRest() ([]byte, error) {
	unnumbered := *e
	unnumbered.Seq = 0
	text, err := canonical(unnumbered)
	if err != nil {
		return nil, err
	}
	return text[len(unstampedEntry):], nil
}

// commitmentsOf are the commitments in a line, to what is personal in the record alone and to
// whose run it is; "" if it has none. They are the last fields of a line and of a fixed length,
// so nothing needs to be decoded, and nothing that a record says can be taken for them.
func commitmentsOf(text []byte) (own, owner string) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	text, ok := bytes.CutSuffix(text, []byte("}"))
	if !ok {
		return "", ""
	}
	own, text = lastCommitment(text, `,"personal":"`)
	owner, _ = lastCommitment(text, `,"owner":"`)
	return own, owner
}

// lastCommitment cuts a field with a commitment off the end of a line, if it is there.
func lastCommitment(text []byte, before string) (of string, rest []byte) {
	const length = len(commitmentPrefix) + 2*sha256.Size
	field, ok := bytes.CutSuffix(text, []byte(`"`))
	if !ok || len(field) < length {
		return "", text
	}
	head, isField := bytes.CutSuffix(field[:len(field)-length], []byte(before))
	of = string(field[len(field)-length:])
	if !isField || of[:len(commitmentPrefix)] != commitmentPrefix {
		return "", text
	}
	return of, head
}

// personalReader finds the personal data of all of a segment's records, in any
// order; it reads the file when it is first asked.
type personalReader struct {
	path    string
	entries map[string]personalEntry // by commitment
}

func (p *personalReader) findEntry(of string) (personalEntry, bool, error) {
	if p.entries == nil {
		entries, err := readPersonal(p.path)
		if err != nil {
			return personalEntry{}, false, err
		}
		p.entries = make(map[string]personalEntry, len(entries))
		for _, e := range entries {
			if _, known := p.entries[e.Of]; !known || !e.Shared { // the first of those that are shared
				p.entries[e.Of] = e
			}
		}
	}
	e, ok := p.entries[of]
	return e, ok, nil
}

// readPersonal reads a personal file; one that is not there has nothing. An entry that a crash
// tore, or somebody changed, is passed over: the record it belonged to has no data then.
func readPersonal(path string) ([]personalEntry, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the personal data of the audit log can't be read")
	}
	defer f.Close()
	var entries []personalEntry
	lines := bufio.NewReaderSize(f, maxPersonalLine)
	for {
		text, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the personal data of the audit log can't be read")
		}
		var e personalEntry
		if json.Unmarshal(text, &e) == nil {
			entries = append(entries, e)
		}
	}
}
