package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// detailValues has, of a use of a secret, what stands for each of its values that the run has had by then
// and that no record of its sandbox has yet: digests with a blank between, each with "@" and the
// second since 1970 at which its value is worth nothing any more, if that is known; or toldValues, if earlier
// records have them all; or noValues, if it has none that count. They are keyed with the installation's key, so
// that nobody else can try which value it is.
const (
	detailValues = "values"
	toldValues   = "earlier"
	noValues     = "none"
)

// ruleUse begins the rule of a use; the secret's name follows.
const ruleUse = "credentials."

// former are the values of secrets that a sandbox, and those that it is a copy of, had before this daemon
// knew of it. The values themselves are nowhere. As long as one is not found among those that are known
// by now, nothing can be looked through for it. It is safe for concurrent use.
type former struct {
	key []byte

	mu      sync.Mutex         // guards all below
	told    map[string]bool    // digests that are on record
	missing map[string][]trace // by their secrets' names
}

// trace stands for a value.
type trace struct {
	digest string    // "": the record has none
	until  time.Time // it is worth nothing from then on; zero: nobody knows
}

// newFormer is that of a sandbox without records.
func newFormer(key []byte) *former {
	return &former{key: key, told: map[string]bool{}, missing: map[string][]trace{}}
}

// digestOf is what stands for a value of a secret.
func (f *former) digestOf(name, text string) string {
	h := hmac.New(sha256.New, f.key)
	_, _ = h.Write([]byte("cofferdam lent value\x00" + name + "\x00" + text)) // a hash never fails
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// replayRecord takes a record of the sandbox, or of one that it is a copy of. One that says nothing of the values
// stands for a value that nobody knows.
func (f *former) replayRecord(r audit.Record) {
	name, is := strings.CutPrefix(r.Rule, ruleUse)
	if r.Outcome != audit.Used || !is {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text := r.Detail[detailValues]
	if text == noValues {
		return
	}
	all := strings.Fields(text)
	if text == toldValues && len(f.missing[name]) > 0 {
		return
	}
	if len(all) == 0 || text == toldValues { // an older daemon's, or the log has the earlier ones no more
		all = []string{""}
	}
	for _, one := range all {
		digest, end, ends := strings.Cut(one, "@")
		t := trace{digest: digest}
		if second, err := strconv.ParseInt(end, 10, 64); ends && err == nil {
			t.until = time.Unix(second, 0)
		}
		f.missing[name] = append(slices.DeleteFunc(f.missing[name], func(o trace) bool { return o.digest == digest }), t)
	}
}

// listMissing lists the secrets of which a value is missing.
func (f *former) listMissing() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, traces := range f.missing {
		if len(traces) > 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// lendMissing makes a lease know those of the missing values that are among the known ones. It is an error if
// one is left that may still be good: fault.ErrUnavailable.
func (f *former) lendMissing(known map[string][]secret.Value, lease *secret.Lease) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.missing {
		digests := map[string]secret.Value{}
		for _, v := range known[name] {
			digests[f.digestOf(name, v.Reveal())] = v
		}
		left := slices.DeleteFunc(f.missing[name], func(t trace) bool {
			v, found := digests[t.digest]
			if found {
				lease.Adopt(name, v)
				f.told[t.digest] = true
			}
			return found || !t.until.IsZero() && time.Now().After(t.until)
		})
		if f.missing[name] = left; len(left) > 0 {
			return fault.New(fault.ErrUnavailable, "the secret %q can't be had: the run, or one that it is a copy of, had another value of it before the daemon was started, which may still be good and which nobody can look for any more; start another run", name)
		}
		delete(f.missing, name)
	}
	return nil
}

// detailUse is detailValues of a use, and confirm is called once it is on record. Values that count for nothing
// by themselves are left out.
func (f *former) detailUse(name string, held []secret.Held, counts func(secret.Value) bool) (text string, confirm func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var words, digests []string
	none := noValues
	for _, h := range held {
		if !counts(h.Value) {
			continue
		}
		digest := f.digestOf(name, h.Reveal())
		if f.told[digest] {
			none = toldValues
			continue
		}
		word := digest
		if !h.Until.IsZero() {
			word += "@" + strconv.FormatInt(h.Until.Unix()+1, 10)
		}
		words, digests = append(words, word), append(digests, digest)
	}
	if len(words) == 0 {
		words = []string{none}
	}
	return strings.Join(words, " "), func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, digest := range digests {
			f.told[digest] = true
		}
	}
}
