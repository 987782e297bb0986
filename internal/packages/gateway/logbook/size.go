package logbook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

const (
	sizesKey   = "sizes"        // beside the protocol's "config NAME"
	sizesEvery = 24 * time.Hour // between two observations of a log's size
	maxSizes   = 10_000         // observations: one a day for 27 years
)

// loadSizes reads what was observed so far.
func (b *Book) loadSizes() error {
	sizes, _, err := b.keptSizes()
	b.sizes = sizes
	return err
}

func (b *Book) keptSizes() (sizes []ecosystem.LogSize, data []byte, err error) {
	data, err = absentIsEmpty(b.config.Get(sizesKey))
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
func (b *Book) observe(size int64, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !isNewSize(b.sizes, size, now) {
		return nil
	}
	sizes, old, err := b.keptSizes() // another process may have been first
	if err != nil {
		return err
	}
	if isNewSize(sizes, size, now) {
		sizes = append(sizes, ecosystem.LogSize{Size: size, Unix: now.Unix()})
		data, err := json.Marshal(sizes)
		if err == nil {
			err = b.config.Replace(sizesKey, old, data)
		}
		if err != nil {
			return err
		}
	}
	b.sizes = sizes
	return nil
}

// reached notes that the log signed a head of this size.
func (b *Book) reached(size int64) {
	for {
		known := b.size.Load()
		if size <= known || b.size.CompareAndSwap(known, size) {
			return
		}
	}
}

// NoteHead notes how large the log is by the head that one of its answers has, if
// any: a client that gets it asks for all that is in a log of this size.
func (b *Book) NoteHead(answer []byte) {
	if size, err := b.cfg.Witness.Head(b.cfg.Upstream.Log, answer); err == nil {
		b.reached(size)
	}
}

// Holds tells whether the log can have something that needs so many records: a client asks only for
// what a head that it was given needs, and where no such head is known the log is asked for its
// newest. A size that no log has is a number of the client's own making, and would only be told to
// whoever is asked for it.
func (b *Book) Holds(ctx context.Context, records int64) error {
	if records <= b.size.Load() {
		return nil
	}
	answer, err := b.Remote(ctx, b.cfg.Witness.HeadPath())
	if err != nil {
		return err
	}
	size, err := b.cfg.Witness.Head(b.cfg.Upstream.Log, answer)
	if err != nil {
		return err
	}
	b.reached(size)
	if records > b.size.Load() {
		return fault.Invalid("the upstream's transparency log is not as large as that")
	}
	return nil
}

func isNewSize(sizes []ecosystem.LogSize, size int64, now time.Time) bool {
	n := len(sizes)
	if n == 0 {
		return size > 0
	}
	last := sizes[n-1]
	return n < maxSizes && size > last.Size && now.Sub(time.Unix(last.Unix, 0)) >= sizesEvery
}

// TimeOf is the earliest time at which the log is known to have had the record
// at a position; zero if none is known.
func (b *Book) TimeOf(position int64) time.Time {
	b.mu.Lock()
	sizes := b.sizes // replaced, never changed
	b.mu.Unlock()
	var unix int64
	for _, known := range [][]ecosystem.LogSize{b.cfg.Witness.Known(b.cfg.Upstream.Log), sizes} {
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
