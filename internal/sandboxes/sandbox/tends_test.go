package sandbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// saying is a journal that has entries more, or has none, or can't be read.
type saying struct {
	sandbox.Journal
	more   []sandbox.Entry
	hidden bool
	err    error
}

func (j *saying) Entries(ctx context.Context) ([]sandbox.Entry, error) {
	entries, err := j.Journal.Entries(ctx)
	if j.err != nil || j.hidden {
		return nil, j.err
	}
	return slices.Concat(entries, j.more), err
}

// TestTends: the end of a sandbox is the manager's to tell as long as anything of it has the sandbox: it
// lives, it is in the journal alone, or the journal can't be read. Of one that is gone, and of one that the
// manager never had, it is not.
func TestTends(t *testing.T) {
	t.Parallel()
	w, journal := newWorld(t), &saying{}
	w.Journal = func(j sandbox.Journal) sandbox.Journal { journal.Journal = j; return journal }
	d := w.daemon(t)
	lives, gone := d.create(t, sandbox.Request{}).Info().ID, d.create(t, sandbox.Request{}).Info().ID
	if err := d.Destroy(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	want := func(when string, want map[string]bool) {
		t.Helper()
		for id, tends := range want {
			if got := d.Tends(t.Context(), id); got != tends {
				t.Errorf("%s: it tends %s: %t", when, id, got)
			}
		}
	}
	want("by the journal and the memory", map[string]bool{lives: true, gone: false, "left": false, "nobody": false})
	journal.hidden = true
	want("by the memory alone", map[string]bool{lives: true, gone: false, "left": false, "nobody": false})
	journal.hidden = false
	journal.more = []sandbox.Entry{{Info: sandbox.Info{ID: "left"}}}
	want("by the journal alone", map[string]bool{lives: true, gone: false, "left": true, "nobody": false})
	journal.more, journal.err = nil, fault.New(fault.ErrUnavailable, "the journal can't be read")
	want("without the journal", map[string]bool{lives: true, gone: true, "left": true, "nobody": true})
	journal.err = nil
}
