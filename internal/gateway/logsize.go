package gateway

import (
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
