package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// openJournal opens the journal of sandboxes. A damaged file is moved out of the way:
// what lives is known to the keeper, and what does not is found by the engines; lost
// are events, extended lifetimes and idempotency keys.
func (d *Daemon) openJournal(ctx context.Context) error {
	path := d.opts.Paths.Sandboxes()
	journal, err := store.OpenSandboxes(ctx, path)
	if err != nil && store.IsDamage(err) {
		d.opts.Log.ErrorContext(ctx, "the journal of sandboxes is damaged; it begins anew", "file", path, "err", err)
		if err := setAside(path); err != nil {
			return err
		}
		journal, err = store.OpenSandboxes(ctx, path)
	}
	d.journal = journal
	return err
}

// setAside moves a damaged SQLite file and what lies beside it out of the way.
func setAside(path string) error {
	aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().UnixNano())
	for _, beside := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+beside, aside+beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.Wrap(fault.ErrUnavailable, err, "the damaged file %s can't be moved away", path+beside)
		}
	}
	return nil
}

// closeJournal closes it, after all that writes to it has ended.
func (d *Daemon) closeJournal() {
	if d.journal == nil {
		return
	}
	if err := d.journal.Close(); err != nil {
		d.opts.Log.Error("the journal of sandboxes did not close well", "err", err)
	}
}
