package sandbox_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// lines is a log that may be written and read at once.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// loggedDaemon makes a daemon whose log, from warnings on, is kept.
func loggedDaemon(t *testing.T) (*daemon, *lines) {
	t.Helper()
	w, log := newWorld(t), &lines{}
	w.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return w.daemon(t), log
}

const notListed = "could not be listed"

// TestAKillIsNoAlarm: a sandbox that is taken away while its command runs leaves a
// record that its packages were not listed, but no alarm, and no line in the log.
func TestAKillIsNoAlarm(t *testing.T) {
	t.Parallel()
	d, log := loggedDaemon(t)
	for _, kill := range []func(s *sandbox.Sandbox){
		func(s *sandbox.Sandbox) {
			if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
				t.Error(err)
			}
		},
		func(s *sandbox.Sandbox) { // by the host
			k, err := d.world.keeper().Get(t.Context(), s.Info().ID)
			if err != nil || syscall.Kill(k.Pids[0], syscall.SIGKILL) != nil {
				t.Errorf("%+v, %v", k, err)
			}
			gone(t, s)
		},
	} {
		s := d.create(t, sandbox.Request{})
		if _, err := d.Start(t.Context(), s.Info().ID, sandbox.Command{Argv: []string{"/bin/sleep", "1000"}}); err != nil {
			t.Fatal(err)
		}
		if !d.Lives(t.Context(), s) {
			t.Error("the control: a sandbox that nobody took away, whose guest that does not answer would be an alarm, counts as ended")
		}
		kill(s)
		if d.Lives(t.Context(), s) {
			t.Error("a sandbox that was taken away counts as one that goes on")
		}
		var outcomes []audit.Outcome
		for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: s.Info().ID, Kinds: []audit.Kind{audit.KindPackage}}) {
			if err != nil {
				t.Fatal(err)
			}
			outcomes = append(outcomes, r.Outcome)
		}
		if !slices.Equal(outcomes, []audit.Outcome{audit.Failed}) {
			t.Errorf("on record: %v", outcomes)
		}
	}
	if strings.Contains(log.String(), notListed) {
		t.Errorf("the log:\n%s", log)
	}
}
