package admission

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// shownKey names one thing that was shown. It is made from the record alone, so that
// a log restores it.
type shownKey [16]byte

func shownKeyOf(r audit.Record) shownKey {
	text := strings.Join([]string{r.Ecosystem, r.Package, r.InstalledVersion, r.File, r.SHA256, r.Detail[detailKind], r.Detail[detailIndex]}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return shownKey(sum[:16])
}

// showing is a record of what is shown that is being written; nil in its place: it
// is on the disk. Only who made it writes err, before ready is closed.
type showing struct {
	ready chan struct{}
	err   error
}

// Show implements Door.
func (c *Controller) Show(ctx context.Context, s door.Showing) error {
	t, err := c.admit(ctx, s.Sandbox)
	if err != nil {
		return err
	}
	switch {
	case s.Kind != door.ShownMetadata && s.Kind != door.ShownRelayed:
		return fault.Invalid("nothing of the kind %q is shown", clip(s.Kind, 80))
	case !hexDigest.MatchString(s.SHA256) || s.File == "" || len(s.File) > 512 || s.Size < 0:
		return fault.Invalid("%q can't be shown without its name and the sha256 of its bytes", clip(s.File, 80))
	case s.Package.Name != "" && !pkgref.IsCanonicalName(s.Package.Ecosystem, s.Package.Name):
		return fault.Invalid("metadata is shown by its package's canonical name, not by %q", clip(s.Package.String(), 200))
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Shown, File: s.File, SourceURL: clip(s.SourceURL, 2_048), SHA256: s.SHA256, Size: s.Size,
		Detail: map[string]string{detailKind: s.Kind},
	}
	setRef(&r, s.Package)
	return c.recordShown(ctx, t, r)
}

// recordShown puts on record what is about to be shown, unless that is on record:
// the same bytes of the same release, or the same page. Who comes while the record is
// being written waits for it.
func (c *Controller) recordShown(ctx context.Context, t *tenant, r audit.Record) error {
	key := shownKeyOf(r)
	for {
		t.mu.Lock()
		before, known := t.displayed[key]
		if known && before == nil {
			t.mu.Unlock()
			return nil
		}
		mine := &showing{ready: make(chan struct{})}
		if !known {
			t.displayed[key] = mine
		}
		t.mu.Unlock()
		if !known {
			return c.writeShown(ctx, t, r, key, mine)
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

func (c *Controller) writeShown(ctx context.Context, t *tenant, r audit.Record, key shownKey, mine *showing) error {
	_, mine.err = c.record(ctx, t, r)
	t.mu.Lock()
	if mine.err == nil {
		t.displayed[key] = nil
	} else {
		delete(t.displayed, key)
	}
	t.mu.Unlock()
	close(mine.ready)
	return mine.err
}

// shownPage is the record of a page that is shown whole.
func shownPage(ask door.IndexAsk) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Shown, SourceURL: clip(ask.SourceURL, 2_048),
		Detail: map[string]string{detailKind: door.ShownIndex, detailIndex: ask.IndexDigest},
	}
	setRef(&r, ask.Package)
	return r
}
