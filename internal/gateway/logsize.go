package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

const (
	sizesKey   = "sizes"        // beside the protocol's "config NAME"
	sizesEvery = 24 * time.Hour // between two observations of a log's size
	maxSizes   = 10_000         // observations: one a day for 27 years
)

// loadSizes reads what was observed so far.
func (l *logbook) loadSizes() error {
	sizes, _, err := l.keptSizes()
	l.sizes = sizes
	return err
}

func (l *logbook) keptSizes() (sizes []ecosystem.LogSize, data []byte, err error) {
	data, err = absentIsEmpty(l.config.Get(sizesKey))
	if err != nil || len(data) == 0 {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, &sizes); err != nil {
		return nil, nil, fault.Wrap(fault.ErrUnavailable, err, "what was observed of the transparency log's size can't be read")
	}
	return sizes, data, nil
}

// observe keeps that the log was verified to have size records now, once a day
// at most.
func (l *logbook) observe(size int64, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !newSize(l.sizes, size, now) {
		return nil
	}
	sizes, old, err := l.keptSizes() // another process may have been first
	if err != nil {
		return err
	}
	if newSize(sizes, size, now) {
		sizes = append(sizes, ecosystem.LogSize{Size: size, Unix: now.Unix()})
		data, err := json.Marshal(sizes)
		if err == nil {
			err = l.config.Replace(sizesKey, old, data)
		}
		if err != nil {
			return err
		}
	}
	l.sizes = sizes
	return nil
}

// reached notes that the log signed a head of this size.
func (l *logbook) reached(size int64) {
	for {
		known := l.size.Load()
		if size <= known || l.size.CompareAndSwap(known, size) {
			return
		}
	}
}

// noteHead notes how large the log is by the head that one of its answers has, if
// any: a client that gets it asks for all that is in a log of this size.
func (l *logbook) noteHead(answer []byte) {
	if size, err := l.witness.Head(l.verifier, answer); err == nil {
		l.reached(size)
	}
}

// holds tells whether the log can have something that needs so many records: a
// client asks only for what a head that it was given needs, and where no such
// head is known the log is asked for its newest. What no log has is a number of
// the client's own making, and would only be told to whoever is asked for it.
func (l *logbook) holds(ctx context.Context, records int64) error {
	if records <= l.size.Load() {
		return nil
	}
	answer, err := l.Remote(ctx, l.witness.HeadPath())
	if err != nil {
		return err
	}
	size, err := l.witness.Head(l.verifier, answer)
	if err != nil {
		return err
	}
	l.reached(size)
	if records > l.size.Load() {
		return fault.Invalid("the upstream's transparency log is not as large as that")
	}
	return nil
}

func newSize(sizes []ecosystem.LogSize, size int64, now time.Time) bool {
	n := len(sizes)
	if n == 0 {
		return size > 0
	}
	last := sizes[n-1]
	return n < maxSizes && size > last.Size && now.Sub(time.Unix(last.Unix, 0)) >= sizesEvery
}

// timeOf is the earliest time at which the log is known to have had the record
// at a position; zero if none is known.
func (l *logbook) timeOf(position int64) time.Time {
	l.mu.Lock()
	sizes := l.sizes // replaced, never changed
	l.mu.Unlock()
	var unix int64
	for _, known := range [][]ecosystem.LogSize{l.witness.Known(l.verifier), sizes} {
		for _, at := range known {
			if at.Size > position && at.Unix > 0 && (unix == 0 || at.Unix < unix) {
				unix = at.Unix
			}
		}
	}
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
