package secret

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Lease is one run's use of the secrets. It is safe for concurrent use.
type Lease struct {
	broker *Broker
	ctx    context.Context //nolint:containedctx // a fetch outlives the request that asked for it, and not the lease
	end    context.CancelFunc
	// standing: it has no end before the daemon's, so that past the bound the oldest value is
	// forgotten where a run would be told to start anew.
	standing bool

	mu       sync.Mutex // guards all below
	fetches  map[string]*fetch
	had      map[string][]had     // the values of each that were fetched since the start, and what was shown for them
	declined map[string]time.Time // when what was fetched was dropped last, because a host had declined it
}

// had is a value that the run may have sent to a host.
type had struct {
	value Value
	until time.Time // it is worth nothing from then on; zero: nobody knows of an end
}

// fetch is one time that a source is asked; whoever wants the secret meanwhile waits for it.
type fetch struct {
	done  chan struct{} // closed when all below is there
	value Value
	err   error
	until time.Time
}

// hasEnded tells whether all is there.
func (f *fetch) hasEnded() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// counts tells whether what is there is still used.
func (f *fetch) counts(now time.Time) bool { return f.hasEnded() && now.Before(f.until) }

// Lease begins a run's use.
func (b *Broker) Lease() *Lease {
	ctx, end := context.WithCancel(context.Background())
	return &Lease{broker: b, ctx: ctx, end: end, fetches: map[string]*fetch{}, had: map[string][]had{}, declined: map[string]time.Time{}}
}

// StandingLease begins the daemon's own use, for as long as it runs: nobody could start another.
// Of one secret it keeps the 256 values that were fetched last: one that was fetched before these, and
// that its source gave no end, is looked for as those of runs that have ended are.
func (b *Broker) StandingLease() *Lease {
	l := b.Lease()
	l.standing = true
	return l
}

// Value is a secret for a request to a host. It is fetched at its first use.
func (l *Lease) Value(ctx context.Context, name, host string) (Value, error) {
	d, err := l.broker.Find(name, host)
	if err != nil {
		return Value{}, err
	}
	f := l.fetchOf(d)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return Value{}, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the secret %q did not come in time", name)
	}
}

// Want is a secret that a host may get.
type Want struct {
	Name, Host string
	// Known has it not be fetched: only what is known of it counts.
	Known bool
}

// Had are all values that the run has had since its start, by their secrets' names, with those that
// were shown somebody to get them (Value.Own), and those that
// any other run has had of the same secrets and of those of wants. The values of wants, but for the Known ones, are
// fetched before, if they were not: other runs may have sent them to the hosts
// before this one does. A want that its host may not have is passed over.
func (l *Lease) Had(ctx context.Context, wants []Want) (map[string][]Value, error) {
	var fetches, found []Want
	for _, w := range wants {
		d, err := l.broker.Find(w.Name, w.Host)
		if err != nil {
			continue
		}
		if found = append(found, w); !w.Known {
			l.fetchOf(d) // all side by side
			fetches = append(fetches, w)
		}
	}
	for _, w := range fetches {
		if _, err := l.Value(ctx, w.Name, w.Host); err != nil {
			return nil, err
		}
	}
	all := l.ownValues()
	for _, w := range found {
		if _, known := all[w.Name]; !known {
			all[w.Name] = nil
		}
	}
	if l.broker == nil {
		return all, nil
	}
	known, _, _ := l.broker.known.valuesSince(0, slices.Collect(maps.Keys(all)), 0)
	for name, values := range known {
		own := all[name] // few, where the known ones may be thousands, each of them once
		for _, one := range values {
			if !slices.ContainsFunc(own, func(v Value) bool { return v.text == one.text }) {
				all[name] = append(all[name], one)
			}
		}
	}
	return all, nil
}

// Since are the values of the secrets that Had tells of that were lent since a moment, to any run, at most so
// many bytes of them (but one at least); with the moment up to which they are complete, and whether there are
// more behind it. 0 is the first moment. It fetches none. What is known is known before anybody is sent it, so
// whoever has read an answer and asks then, until there are no more, knows all that can be in it.
func (l *Lease) Since(moment uint64, wants []Want, most int) (values map[string][]Value, upTo uint64, more bool) {
	names := slices.Collect(maps.Keys(l.ownValues()))
	for _, w := range wants {
		if _, err := l.broker.Find(w.Name, w.Host); err == nil && !slices.Contains(names, w.Name) {
			names = append(names, w.Name)
		}
	}
	if l.broker == nil {
		return nil, moment, false
	}
	return l.broker.known.valuesSince(moment, names, most)
}

// ownValues are the values that the run itself has had.
func (l *Lease) ownValues() map[string][]Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]Value{}
	for name, values := range l.had {
		for _, h := range values {
			all[name] = append(all[name], h.value)
		}
	}
	return all
}

// Inherit has a run that is a copy of another know all values which that one has had: a host may
// have kept them, and gives them to the copy as it would to the other. It is called before the
// copy is known to anybody.
func (l *Lease) Inherit(of *Lease) {
	of.mu.Lock()
	values := maps.Clone(of.had)
	for name, all := range values {
		values[name] = slices.Clone(all)
	}
	of.mu.Unlock()
	for name, all := range values {
		for _, one := range all {
			l.adoptValue(name, one)
		}
	}
}

// Adopt has the run know a value that it has had before, and that was known of others alone.
func (l *Lease) Adopt(name string, v Value) {
	l.adoptValue(name, had{value: v, until: l.broker.known.worthUntil(name, v.text)})
}

func (l *Lease) adoptValue(name string, one had) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil || slices.ContainsFunc(l.had[name], func(h had) bool { return h.value.text == one.value.text }) {
		return
	}
	l.broker.known.holdValue(name, one)
	l.had[name] = append(l.had[name], one)
}

// Held is a value that a run has had, with when it is worth nothing any more; zero: nobody knows.
type Held struct {
	Value
	Until time.Time
}

// Held are the values of a secret that the run itself has had.
func (l *Lease) Held(name string) (all []Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.had[name] {
		all = append(all, Held{h.value, h.until})
	}
	return all
}

// Any tells whether the run has had any value.
func (l *Lease) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.had) > 0
}

// rememberValue keeps a value until the lease's end: a host that has it may give it back at any
// time. Past the bound one is forgotten that has ended; without such a one a run does not use the
// new value, and a standing lease forgets the oldest.
func (l *Lease) rememberValue(name string, v Value) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, all := l.broker.now(), l.had[name]
	fresh := had{value: v}
	if v.life > 0 {
		fresh.until = now.Add(v.life + lateness)
	}
	l.broker.known.learnValue(name, fresh)
	if l.ctx.Err() != nil {
		return nil // it is given to nobody
	}
	if i := slices.IndexFunc(all, func(h had) bool { return h.value.text == v.text }); i >= 0 {
		all[i] = fresh
		return nil
	}
	all, err := l.makeRoom(name, fresh)
	if err != nil {
		return err
	}
	l.broker.known.holdValue(name, fresh)
	l.had[name] = append(all, fresh)
	return nil
}

// makeRoom returns the values of a secret without one that is forgotten for a further one. The caller holds mu.
func (l *Lease) makeRoom(name string, more had) ([]had, error) {
	if l.broker.known.crowded(name, more) {
		return nil, fault.New(fault.ErrUnavailable, "the secret %q can't be had: the runs that live have had %d values of it that may still be good, and no more of them are kept to look for; end some of them", name, maxHeld)
	}
	now, all, most := l.broker.now(), l.had[name], maxHad
	if l.standing {
		most = maxKnown
	}
	count, oldest, gone := 0, -1, -1 // of its kind: what was shown for it takes no place of what is lent
	for i, h := range all {
		if h.value.own != more.value.own {
			continue
		}
		if count++; oldest < 0 {
			oldest = i
		}
		if gone < 0 && !h.until.IsZero() && now.After(h.until) {
			gone = i
		}
	}
	if count < most {
		return all, nil
	}
	if gone < 0 && !l.standing {
		return nil, fault.New(fault.ErrUnavailable, "the secret %q can't be had: this run has had %d values of it that may still be good, and keeps no more of them to look for; start another run", name, maxHad)
	}
	if gone < 0 {
		gone = oldest
	}
	l.broker.known.releaseValue(name, all[gone])
	return slices.Delete(all, gone, gone+1), nil
}

// Declined tells that a host does not take what was fetched: it may have been revoked or
// renewed before its time. It is fetched anew at its next use, and not again for a minute.
func (l *Lease) Declined(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.broker.now()
	f, last := l.fetches[name], l.declined[name]
	if f == nil || !f.hasEnded() || f.err != nil || !last.IsZero() && now.Before(last.Add(declinedTime)) {
		return
	}
	l.declined[name] = now
	delete(l.fetches, name)
}

// End forgets all values. There are none afterwards.
func (l *Lease) End() {
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.fetches)
	for name, all := range l.had {
		for _, one := range all {
			l.broker.known.releaseValue(name, one)
		}
	}
	clear(l.had)
}

// fetchOf returns a fetch that is under way, or that still counts, or a new one.
func (l *Lease) fetchOf(d Declared) *fetch {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fetches[d.Name]
	if f != nil && (!f.hasEnded() || f.counts(l.broker.now())) {
		return f
	}
	f = &fetch{done: make(chan struct{})}
	if l.ctx.Err() == nil {
		l.fetches[d.Name] = f
	}
	safego.Go(func() { l.runFetch(f, d) })
	return f
}

// runFetch asks the source.
func (l *Lease) runFetch(f *fetch, d Declared) {
	defer close(f.done)
	keep := failedTime
	f.err = safego.Try(func() error {
		v, err := d.fetchValue(l.ctx, func(shown Value) error { return l.rememberValue(d.Name, shown) })
		if err == nil {
			err = l.rememberValue(d.Name, v)
		}
		if err == nil {
			f.value = v
		}
		return err
	})
	switch {
	case l.ctx.Err() != nil:
		f.value, f.err = Value{}, fault.New(fault.ErrUnavailable, "the run has ended")
	case f.err == nil:
		keep = f.value.keptFor(d.Keep)
	}
	f.until = l.broker.now().Add(keep)
	safego.After(keep, func() { l.forgetFetch(d.Name, f) })
}

// forgetFetch drops what counts no more.
func (l *Lease) forgetFetch(name string, f *fetch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fetches[name] == f {
		delete(l.fetches, name)
	}
}
