package baseline

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	record "github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Taker takes the inventories of one sandbox. Safe for concurrent use.
type Taker struct {
	book *Book
	info journal.Info
	ends func() bool // tells whether somebody is taking the sandbox away, or has

	one    sync.Mutex // held over an inventory: there is one at a time
	rounds rounds
	// root tells that something was, or may have been, done inside with root's
	// rights. Nobody knows what another daemon or another sandbox did.
	root atomic.Bool
}

// Of makes the taker of a sandbox; ends tells whether that is being taken away.
func (b *Book) Of(info journal.Info, ends func() bool) *Taker {
	return &Taker{book: b, info: info, ends: ends}
}

// AsRoot notes that something is done in the sandbox with root's rights, if user is root:
// from then on no place is closed.
func (t *Taker) AsRoot(user string) {
	if user == "root" || user == "0" {
		t.Distrust()
	}
}

// Distrust notes that it is not known what was done in the sandbox: no place is closed.
func (t *Taker) Distrust() { t.root.Store(true) }

// account has what a command left on the disk recorded, as far as it was not
// there before, and returns why the sandbox is to be ended; "": it is not. An
// error means that nothing is known of the disk and that this is not on record
// either.
func (t *Taker) account(ctx context.Context) (end string, err error) {
	t.one.Lock() // pages of two inventories must not mix, and of two commands one may do the work of both
	defer t.one.Unlock()
	template, _ := t.book.baseline(templateNames(t.info)...)
	skip := unchangeable(t.info)
	if !t.root.Load() {
		skip = append(skip, template.Closed...)
	}
	found, err := t.book.guests.packages(ctx, t.info.ID, channel.InventoryAsk{Skip: skip})
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		lives := t.Lives(ctx)
		level := slog.LevelDebug // the record says it; of one that was killed there is nothing to look into
		if lives {
			level = slog.LevelWarn
		}
		t.book.cfg.Log.Log(ctx, level, "what is installed could not be listed", "sandbox", t.info.ID, "err", err)
		answer, err := t.book.cfg.Door.InventoryUnknown(ctx, t.info.ID, err.Error(), lives)
		return answer.End, err
	}
	disk := record.Disk{Found: found, Mounts: t.info.WritableMounts, Template: template}
	if len(t.info.WritableMounts) > 0 {
		disk.Contents = func(ctx context.Context, paths []string) (map[string][]string, error) {
			return t.book.guests.contents(ctx, t.info.ID, paths)
		}
	}
	if len(t.info.WritableMounts)+len(t.info.ReadOnlyMounts) > 0 {
		disk.Before, err = readKept(t.book.mountsPath(t.info.ID))
		if err != nil {
			t.book.cfg.Log.Error("what lay on a sandbox's mounts before is not known any more", "sandbox", t.info.ID, "err", err)
		}
	}
	answer, err := t.book.cfg.Door.Installed(ctx, t.info.ID, disk)
	return answer.End, err
}

// unchangeable are the directories of a sandbox that nothing in it can have changed, root included:
// the engine shows them read-only. A run has not installed what lies there, whatever a time or an
// owner says. Not among them is what a writable mount lies over; one that lies below them is looked
// into all the same.
func unchangeable(info journal.Info) []string {
	shown := slices.DeleteFunc(slices.Clone(info.TemplateMounts), func(place string) bool {
		return slices.ContainsFunc(info.WritableMounts, func(over string) bool {
			return place == over || strings.HasPrefix(place, over+"/")
		})
	})
	return slices.Concat(info.ReadOnlyMounts, shown)
}

// Lives tells whether a sandbox whose guest did not answer goes on: nobody takes it
// away, and its processes run. They may be about to end: its channel is closed before
// the keeper has waited for them.
func (t *Taker) Lives(ctx context.Context) bool {
	if t.ends() {
		return false
	}
	k, err := t.book.cfg.Keeper.Get(ctx, t.info.ID)
	if err != nil || !k.Alive {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	_, err = t.book.cfg.Keeper.Wait(soon, t.info.ID)
	return err != nil && !errors.Is(err, fault.ErrNotFound) && !t.ends()
}

// endTimeout is how long a process may take to be over after its channel.
const endTimeout = time.Second
