package secret

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// known are all values of secrets that were lent, or shown to get one that is, and that may still be good:
// a host that has one can give it to any run that gets the same secret, also when the run that brought it
// has ended. Each is here before anybody is sent it. Values that a living run has had stay; of the others the
// last are kept. It is safe for concurrent use.
type known struct {
	now func() time.Time

	mu     sync.Mutex // guards all below
	first  uint64     // moment as it was before anything became known
	moment uint64     // counts what became known
	values map[string][]*lent
}

// firstMoment is where a broker begins to count moments: anywhere in 39 bits, and not at 0. Whoever was told of moments
// of a broker that was made before, in an earlier process of the daemon, has to be told of all that this one learns, and
// is known by that: no moment of the former is among those of this one. That is so but for one case in 2^39 for each
// value that this one has learned, however fast the daemon was started again and whatever the clock says.
func firstMoment() uint64 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return binary.LittleEndian.Uint64(random[:])>>25 | 1
}

// newKnown makes one that knows nothing.
func newKnown(now func() time.Time) known {
	first := firstMoment()
	return known{now: now, first: first, moment: first, values: map[string][]*lent{}}
}

// lent is a value that is known.
type lent struct {
	had
	at      uint64 // the moment at which it became known
	holders int    // living leases that have it
}

// learnValue keeps a value of a secret.
func (k *known) learnValue(name string, one had) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addValue(name, one)
	k.trimValues(name, one.value.own)
}

// holdValue keeps a value as long as a lease has it.
func (k *known) holdValue(name string, one had) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addValue(name, one).holders++
	k.trimValues(name, one.value.own)
}

// releaseValue ends a hold.
func (k *known) releaseValue(name string, one had) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.findValue(name, one.value.text); e != nil && e.holders > 0 {
		e.holders--
	}
	k.trimValues(name, one.value.own)
}

// crowded tells whether a value is one more than living leases may have. Those that have ended take no
// place: a run keeps some of them as long as it lives.
func (k *known) crowded(name string, one had) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.findValue(name, one.value.text); e != nil && e.holders > 0 {
		return false
	}
	now, count := k.now(), 0
	for _, e := range k.values[name] {
		if e.holders > 0 && e.value.own == one.value.own && (e.until.IsZero() || !now.After(e.until)) {
			count++
		}
	}
	return count >= maxHeld
}

// valuesSince are the values of secrets that became known after a moment, the oldest first and at most so many
// bytes of them (but one at least; 0: all), the moment up to which they are complete, and whether there are more. A
// moment that is none of this broker's tells nothing of what its asker knows, so it is told everything.
func (k *known) valuesSince(moment uint64, names []string, most int) (values map[string][]Value, upTo uint64, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	values = map[string][]Value{}
	if moment < k.first || moment > k.moment {
		moment = 0
	}
	if moment == k.moment {
		return values, moment, false
	}
	type named struct {
		*lent
		name string
	}
	var all []named
	for _, name := range names {
		for _, e := range k.values[name] {
			if e.at > moment {
				all = append(all, named{e, name})
			}
		}
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.at, b.at) })
	size := 0
	for i, e := range all {
		if size += len(e.value.text); most > 0 && i > 0 && size > most {
			return values, all[i-1].at, true
		}
		values[e.name] = append(values[e.name], e.value)
	}
	return values, k.moment, false
}

// worthUntil is when a value is worth nothing any more; zero: nobody knows.
func (k *known) worthUntil(name, text string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.findValue(name, text); e != nil {
		return e.until
	}
	return time.Time{}
}

// findValue finds a known value; nil: it is not known. The caller holds mu.
func (k *known) findValue(name, text string) *lent {
	if i := slices.IndexFunc(k.values[name], func(e *lent) bool { return e.value.text == text }); i >= 0 {
		return k.values[name][i]
	}
	return nil
}

// addValue has a value be the newest one. The caller holds mu.
func (k *known) addValue(name string, one had) *lent {
	e := k.findValue(name, one.value.text)
	if e == nil {
		k.moment++
		e = &lent{at: k.moment}
	}
	e.had = one
	k.values[name] = append(slices.DeleteFunc(k.values[name], func(o *lent) bool { return o == e }), e)
	return e
}

// trimValues forgets values of a secret that no living lease has: those that are worth nothing any more, and past
// maxKnown of a kind the oldest; what was shown takes no place of what is lent. The caller holds mu.
func (k *known) trimValues(name string, own bool) {
	now, count := k.now(), 0
	all := slices.DeleteFunc(k.values[name], func(e *lent) bool {
		return e.holders == 0 && !e.until.IsZero() && now.After(e.until)
	})
	for _, e := range all {
		if e.value.own == own {
			count++
		}
	}
	k.values[name] = slices.DeleteFunc(all, func(e *lent) bool {
		if count <= maxKnown || e.holders > 0 || e.value.own != own {
			return false
		}
		count--
		return true
	})
}
