package records

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// shownKey names one thing that was shown. It is made from the record alone, so that
// a log restores it.
type shownKey [16]byte

func shownKeyOf(r audit.Record) shownKey {
	text := strings.Join([]string{r.Ecosystem, r.Package, r.InstalledVersion, r.File, r.SHA256, r.Detail[DetailKind], r.Detail[DetailIndex]}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return shownKey(sum[:16])
}

// showing is a record of what is shown that is being written; nil in its place: it
// is on the disk. Only who made it writes err, before ready is closed.
type showing struct {
	ready chan struct{}
	err   error
}

// Show puts on record what is about to be shown, unless that is on record:
// the same bytes of the same release, or the same page. A caller that comes while the record is being written waits for it.
func (b *Book) Show(ctx context.Context, r audit.Record) error {
	key := shownKeyOf(r)
	for {
		b.mu.Lock()
		before, known := b.displayed[key]
		if known && before == nil {
			b.mu.Unlock()
			return nil
		}
		mine := &showing{ready: make(chan struct{})}
		if !known {
			b.displayed[key] = mine
		}
		b.mu.Unlock()
		if !known {
			return b.writeShown(ctx, r, key, mine)
		}
		select {
		case <-before.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		if before.err == nil {
			return nil
		} // it failed for the one before; it is tried again
	}
}

func (b *Book) writeShown(ctx context.Context, r audit.Record, key shownKey, mine *showing) error {
	_, mine.err = b.Append(ctx, r)
	b.mu.Lock()
	if mine.err == nil {
		b.displayed[key] = nil
	} else {
		delete(b.displayed, key)
	}
	b.mu.Unlock()
	close(mine.ready)
	return mine.err
}
