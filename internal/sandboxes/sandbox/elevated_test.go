package sandbox_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// elevator is an instance that runs programs with rights as a test says.
type elevator struct {
	*fake.Instance
	run func(ctx context.Context, p engine.Elevated) (int, error)
}

// Elevate implements engine.PrivilegedRunner.
func (e elevator) Elevate(ctx context.Context, p engine.Elevated) (int, error) { return e.run(ctx, p) }

// TestElevated: a command with rights is judged and recorded before it runs, one at a time,
// and its sandbox outlives it only if nothing of it is left for certain.
func TestElevated(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	var run func(ctx context.Context, p engine.Elevated) (int, error)
	d.engine.Wrap = func(i *fake.Instance) engine.Instance {
		return elevator{i, func(ctx context.Context, p engine.Elevated) (int, error) { return run(ctx, p) }}
	}
	install := sandbox.Elevated{Argv: []string{"/bin/install"}, Judged: "install tool", Timeout: time.Hour, Stdout: io.Discard, Stderr: io.Discard}
	cases := map[string]struct {
		run      func(ctx context.Context, p engine.Elevated) (int, error)
		code     int
		survives bool
	}{
		"it ends well": {func(context.Context, engine.Elevated) (int, error) { return 0, nil }, 0, true},
		"it ends ill":  {func(context.Context, engine.Elevated) (int, error) { return 3, nil }, 3, false},
		"it is unknown how it ends": {func(context.Context, engine.Elevated) (int, error) {
			return 0, errors.New("the engine does not answer")
		}, 137, false},
	}
	for name, c := range cases {
		s := d.create(t, sandbox.Request{})
		id := s.Info().ID
		run = func(ctx context.Context, p engine.Elevated) (int, error) {
			if !slices.Contains(d.commandRecords(t, id), audit.Started) {
				t.Errorf("%s: it runs before it is on record", name)
			}
			if !slices.Equal(p.Argv, []string{"cofferdam-elevated", "/bin/install"}) {
				t.Errorf("%s: the engine is asked for %q", name, p.Argv)
			}
			if _, err := d.Elevated(ctx, id, install); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("%s: a second one beside it: %v", name, err)
			}
			return c.run(ctx, p)
		}
		if exit, _ := d.Elevated(t.Context(), id, install); exit.Code != c.code {
			t.Errorf("%s: the exit is %+v", name, exit)
		}
		if !slices.Contains(d.commandRecords(t, id), audit.Finished) {
			t.Errorf("%s: its end is not on record", name)
		}
		if c.survives {
			wantState(t, s, sandbox.Running)
			must(t, d.Destroy(t.Context(), id))
			continue
		}
		await(t, name+": its sandbox ends", func() bool {
			state, _ := s.State()
			return state == sandbox.Failed || state == sandbox.Destroyed
		})
	}
	run = nil
	if _, err := d.Elevated(t.Context(), d.refusing(t), install); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a command that the policy refuses: %v", err)
	}
	d.engine.Wrap = nil
	if _, err := d.Elevated(t.Context(), d.create(t, sandbox.Request{}).Info().ID, install); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("an engine that can't: %v", err)
	}
}

// refusing is a sandbox whose policy refuses the command by the name that it is judged by.
func (d *daemon) refusing(t *testing.T) string {
	t.Helper()
	const text = "name: test\npackages: { default: deny }\nrules:\n  - { name: no-tools, condition: { field: command, operator: contains, value: install tool }, action: deny }\n"
	p, err := policy.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Create(t.Context(), sandbox.Request{Policy: p, PolicyText: []byte(text), User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Info().ID
}

// commandRecords are the outcomes of a sandbox's commands.
func (d *daemon) commandRecords(t *testing.T, id string) []audit.Outcome {
	t.Helper()
	var all []audit.Outcome
	for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: id, Kinds: []audit.Kind{audit.KindCommand}}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Outcome)
	}
	return all
}
