package secret

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/secret/placeholder"
)

const (
	// fetchTime bounds how long a source may take.
	fetchTime = 10 * time.Second
	// failedTime is how long a source that failed is not asked again: requests come from a
	// sandbox, as fast as it likes.
	failedTime = 2 * time.Second
	// declinedTime is how long what a host has declined is not fetched anew again, for the
	// same reason: a sandbox has a host decline what it likes.
	declinedTime = time.Minute
	// maxHad bounds the different values of one secret that a run has, and by itself those that were
	// shown for it (see FetchToShow). A daemon's standing lease has as many as are known of all runs.
	maxHad = 64
	// maxKnown bounds the different values of one secret that are known of all runs, and by itself those
	// that were shown for it. Past it one that has ended is forgotten first, then the oldest: each run
	// still knows its own.
	maxKnown = 256
)

// Declared is a secret as the operator declared it.
type Declared struct {
	Name string
	// Hosts are the only ones that may get it, whatever a policy says: a name, or "*."
	// and one for all below it. In lower case.
	Hosts []string
	// How it is put into requests, without the names that differ from run to run.
	How    exchange.Manner
	Form   placeholder.Form
	Source Source
	// KeyID is the id of the key that the secret is, if it signs requests; "": the secret
	// has it, too.
	KeyID string
	// Keep is how long a value is used before it is fetched anew, if it has no earlier end
	// of its own.
	Keep time.Duration
}

// Broker has the declared secrets. It is safe for concurrent use. A nil one has none.
type Broker struct {
	declared map[string]Declared
	now      func() time.Time

	mu    sync.Mutex // guards known
	known map[string][]had
}

// learn keeps a value that some run has had, for as long as it may be good: a host that has it
// can give it to any run that gets the same secret, also when the run that brought it has ended.
func (b *Broker) learn(name string, one had) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	all := slices.DeleteFunc(b.known[name], func(h had) bool {
		return h.value.text == one.value.text || !h.until.IsZero() && now.After(h.until)
	})
	same, oldest := 0, -1 // of its kind: what was shown for it takes no place of what is lent
	for i, h := range all {
		if h.value.own != one.value.own {
			continue
		}
		if same++; oldest < 0 {
			oldest = i
		}
	}
	if same >= maxKnown {
		all = slices.Delete(all, oldest, oldest+1)
	}
	b.known[name] = append(all, one)
}

// had are the values of a secret that runs have had and that may still be good.
func (b *Broker) had(name string) []had {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.known[name])
}

// NewBroker makes a broker; now is the clock.
func NewBroker(declared []Declared, now func() time.Time) *Broker {
	b := &Broker{declared: map[string]Declared{}, now: now, known: map[string][]had{}}
	for _, d := range declared {
		b.declared[d.Name] = d
	}
	return b
}

// Find is a declared secret that a host may have. The name "" is any host.
func (b *Broker) Find(name, host string) (Declared, error) {
	var d Declared
	found := false
	if b != nil {
		d, found = b.declared[name]
	}
	if !found {
		return d, fault.New(fault.ErrNotFound, "the daemon's configuration declares no secret %q; the operator adds it under secrets", name)
	}
	if host != "" && !slices.ContainsFunc(d.Hosts, func(h string) bool { return covers(h, host) }) {
		return d, fault.New(fault.ErrForbidden, "the secret %q is not for %s: the daemon's configuration has it for %s alone", name, host, strings.Join(d.Hosts, ", "))
	}
	return d, nil
}

// Declared are all of them, by name.
func (b *Broker) Declared() []Declared {
	if b == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(b.declared), func(x, y Declared) int { return strings.Compare(x.Name, y.Name) })
}

// covers tells whether a declared host is this one.
func covers(declared, host string) bool {
	if above, wildcard := strings.CutPrefix(declared, "*."); wildcard {
		return strings.HasSuffix(host, "."+above)
	}
	return declared == host
}

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

// ended tells whether all is there.
func (f *fetch) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// counts tells whether what is there is still used.
func (f *fetch) counts(now time.Time) bool { return f.ended() && now.Before(f.until) }

// Lease begins a run's use.
func (b *Broker) Lease() *Lease {
	ctx, end := context.WithCancel(context.Background())
	return &Lease{broker: b, ctx: ctx, end: end, fetches: map[string]*fetch{}, had: map[string][]had{}, declined: map[string]time.Time{}}
}

// StandingLease begins the daemon's own use, for as long as it runs: nobody could start another.
// Of one secret it keeps the 256 values that were fetched last: one that was fetched before these, and
// that its source gave no end, is looked for no more.
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
	f := l.fetch(d)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return Value{}, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the secret %q did not come in time", name)
	}
}

// Want is a secret that a host may get.
type Want struct{ Name, Host string }

// Had are all values that the run has had since its start, by their secrets' names, with those that
// were shown somebody to get them (Value.Own), and those that
// any other run has had of the same secrets and of those of wants. The values of wants are
// fetched before, if they were not: other runs may have sent them to the hosts
// before this one does. A want that its host may not have is passed over.
func (l *Lease) Had(ctx context.Context, wants []Want) (map[string][]Value, error) {
	var fetches []Want
	for _, w := range wants {
		if d, err := l.broker.Find(w.Name, w.Host); err == nil {
			l.fetch(d) // all side by side
			fetches = append(fetches, w)
		}
	}
	for _, w := range fetches {
		if _, err := l.Value(ctx, w.Name, w.Host); err != nil {
			return nil, err
		}
	}
	all := l.own()
	for _, w := range fetches {
		if _, known := all[w.Name]; !known {
			all[w.Name] = nil
		}
	}
	for name := range all {
		for _, h := range l.broker.had(name) {
			if !slices.ContainsFunc(all[name], func(v Value) bool { return v.text == h.value.text }) {
				all[name] = append(all[name], h.value)
			}
		}
	}
	return all, nil
}

// own are the values that the run itself has had.
func (l *Lease) own() map[string][]Value {
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, all := range values {
		for _, one := range all {
			if !slices.ContainsFunc(l.had[name], func(h had) bool { return h.value.text == one.value.text }) {
				l.had[name] = append(l.had[name], one)
			}
		}
	}
}

// Any tells whether the run has had any value.
func (l *Lease) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.had) > 0
}

// remember keeps a value until the lease's end: a host that has it may give it back at any
// time. Past the bound one is forgotten that has ended; without such a one a run does not use the
// new value, and a standing lease forgets the oldest.
func (l *Lease) remember(name string, v Value) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, all := l.broker.now(), l.had[name]
	fresh := had{value: v}
	if v.life > 0 {
		fresh.until = now.Add(v.life + lateness)
	}
	l.broker.learn(name, fresh)
	if i := slices.IndexFunc(all, func(h had) bool { return h.value.text == v.text }); i >= 0 {
		all[i] = fresh
		return nil
	}
	most := maxHad
	if l.standing {
		most = maxKnown
	}
	count, oldest, gone := 0, -1, -1 // of its kind: what was shown for it takes no place of what is lent
	for i, h := range all {
		if h.value.own != v.own {
			continue
		}
		if count++; oldest < 0 {
			oldest = i
		}
		if gone < 0 && !h.until.IsZero() && now.After(h.until) {
			gone = i
		}
	}
	if count >= most {
		if gone < 0 && !l.standing {
			return fault.New(fault.ErrUnavailable, "the secret %q can't be had: this run has had %d values of it that may still be good, and keeps no more of them to look for; start another run", name, maxHad)
		}
		if gone < 0 {
			gone = oldest
		}
		all = slices.Delete(all, gone, gone+1)
	}
	l.had[name] = append(all, fresh)
	return nil
}

// Declined tells that a host does not take what was fetched: it may have been revoked or
// renewed before its time. It is fetched anew at its next use, and not again for a minute.
func (l *Lease) Declined(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.broker.now()
	f, last := l.fetches[name], l.declined[name]
	if f == nil || !f.ended() || f.err != nil || !last.IsZero() && now.Before(last.Add(declinedTime)) {
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
	clear(l.had)
}

// fetch is one that is under way, or that still counts, or a new one.
func (l *Lease) fetch(d Declared) *fetch {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fetches[d.Name]
	if f != nil && (!f.ended() || f.counts(l.broker.now())) {
		return f
	}
	f = &fetch{done: make(chan struct{})}
	if l.ctx.Err() == nil {
		l.fetches[d.Name] = f
	}
	errand.Go(func() { l.run(f, d) })
	return f
}

// run asks the source.
func (l *Lease) run(f *fetch, d Declared) {
	defer close(f.done)
	keep := failedTime
	f.err = errand.Try(func() error {
		v, err := d.fetch(l.ctx, func(shown Value) error { return l.remember(d.Name, shown) })
		if err == nil {
			err = l.remember(d.Name, v)
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
		keep = f.value.kept(d.Keep)
	}
	f.until = l.broker.now().Add(keep)
	errand.After(keep, func() { l.forget(d.Name, f) })
}

// forget drops what counts no more.
func (l *Lease) forget(name string, f *fetch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fetches[name] == f {
		delete(l.fetches, name)
	}
}
