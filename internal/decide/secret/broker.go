package secret

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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
	// that were shown for it. Past it one that has ended is forgotten first, then the oldest that no
	// living run has had.
	maxKnown = 256
	// maxHeld bounds those that living runs have had, each of which is known as long as its run lives.
	maxHeld = 4_096
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

	known known
}

// NewBroker makes a broker; now is the clock.
func NewBroker(declared []Declared, now func() time.Time) *Broker {
	b := &Broker{declared: map[string]Declared{}, now: now, known: newKnown(now)}
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
	if host != "" && !slices.ContainsFunc(d.Hosts, func(h string) bool { return coversHost(h, host) }) {
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

// Of are the declared secrets that a host may have, by name.
func (b *Broker) Of(host string) (names []string) {
	for _, d := range b.Declared() {
		if slices.ContainsFunc(d.Hosts, func(h string) bool { return coversHost(h, host) }) {
			names = append(names, d.Name)
		}
	}
	return names
}

// Known are all values of declared secrets that were lent, or shown to get one that is, and that may still be
// good, whoever has them: a host that has one may tell it to anybody. They are in no order.
func (b *Broker) Known() []Value {
	if b == nil {
		return nil
	}
	byName, _, _ := b.known.valuesSince(0, slices.Collect(maps.Keys(b.declared)), 0)
	return slices.Concat(slices.Collect(maps.Values(byName))...)
}

// coversHost tells whether a declared host is this one.
func coversHost(declared, host string) bool {
	if above, wildcard := strings.CutPrefix(declared, "*."); wildcard {
		return strings.HasSuffix(host, "."+above)
	}
	return declared == host
}
