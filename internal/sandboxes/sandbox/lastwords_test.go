package sandbox_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// lockedBuffer is what several goroutines write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestLastCommandsOfAFrozenSandbox: a command that has ended just before its sandbox was paused has its
// end on record when that is destroyed, and nobody waits in vain for what a frozen guest would say.
func TestLastCommandsOfAFrozenSandbox(t *testing.T) {
	t.Parallel()
	said := &lockedBuffer{}
	w := newWorld(t)
	w.Log = slog.New(slog.NewTextHandler(said, nil))
	d := w.daemon(t)
	s := d.create(t, sandbox.Request{})
	id := s.Info().ID
	for range 4 { // one of them is not settled yet when the sandbox is paused
		if _, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/true"}}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, d.Pause(t.Context(), id))
	must(t, d.Destroy(t.Context(), id))
	got := d.commandRecords(t, id)
	slices.Sort(got)
	ends := 0
	for _, o := range got {
		if o != audit.Started {
			ends++
		}
	}
	if ends != 4 || len(got) != 8 {
		t.Errorf("on record are %v", got)
	}
	if strings.Contains(said.String(), "before its last command was on record") {
		t.Errorf("it was waited for in vain: %s", said)
	}
}
