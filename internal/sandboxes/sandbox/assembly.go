package sandbox

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/baseline"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// assembly joins a sandbox with all that does something with it.
type assembly struct {
	cfg       *Config
	tracker   *tracker
	remover   *remover
	guests    *guestCaller
	inventory *baseline.Book
	commands  *commands.Runner
}

// sandbox makes one whose list of holds is still missing.
func (a *assembly) sandbox(info Info, p *policy.Policy, inst engine.Instance) *Sandbox {
	s := newSandbox(info, p, inst, a.tracker.ends)
	s.inventory = a.inventory.Of(info, s.isOver)
	s.commands = a.commands.In(commands.Place{
		Info: info, Limit: p.Resources().Timeout, Inventory: s.inventory, Clients: s.clients,
		Waits:   func() *suspend.List { return s.waits },
		State:   func() State { state, _ := s.State(); return state },
		Kill:    func(ctx context.Context) error { return inst.Signal(ctx, 9) },
		Elevate: func(ctx context.Context, e commands.Elevated) (int, error) { return a.elevate(ctx, inst, e) },
		Environment: func(ctx context.Context) (map[string]string, error) {
			who, _, err := a.guests.identityOf(ctx, s)
			if err != nil {
				return nil, err
			}
			return a.guests.commandEnvironment(who), nil
		},
		End:     func(why string) { a.remover.endFor(s, why) },
		Active:  func() time.Duration { return a.tracker.activeFor(info.ID) },
		Guarded: func() { a.tracker.guarded(s) },
	})
	return s
}

// elevate has the agent's program, as it is on the host, run a command with rights.
func (a *assembly) elevate(ctx context.Context, inst engine.Instance, e commands.Elevated) (int, error) {
	elevator, ok := inst.(engine.PrivilegedRunner)
	if !ok {
		return 0, fault.New(fault.ErrUnavailable, "the engine %s can't run a program with rights of its own, which packages of the distribution need", inst.Handle().Engine)
	}
	return elevator.Elevate(ctx, engine.Elevated{
		Program: filepath.Join(a.cfg.AgentDir, agentName), Argv: slices.Concat([]string{elevatedName}, e.Argv),
		Env: rootsEnvironment(), Stdout: e.Stdout, Stderr: e.Stderr,
	})
}

// agentName is the agent's program's, and elevatedName the one under which it runs a command with
// rights.
const (
	agentName    = "cofferdam-guest"
	elevatedName = "cofferdam-elevated"
)

// rootsEnvironment is all that an elevated command finds.
func rootsEnvironment() []string {
	return []string{"PATH=" + systemPath, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash"}
}

// systemPath is where PID 1 and root's programs are looked for.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// waitConfig is how the list of a sandbox's holds reaches it.
func (a *assembly) waitConfig(s *Sandbox) suspend.Config {
	id := s.info.ID
	cfg := suspend.Config{
		Sandbox: id, Owner: cmp.Or(s.info.Owner.Token, id), Queue: a.cfg.Queue, Shelf: a.cfg.Shelf, After: a.cfg.FreezeAfter, Log: a.cfg.Log,
		Clocks: func(ctx context.Context, stopped bool) error { return a.guests.stopClocks(ctx, id, stopped) },
		Woken:  func(ctx context.Context) error { return a.guests.wakeGuest(ctx, id) },
		Anew:   func(ctx context.Context) error { return a.guests.configureAnew(ctx, s) },
		Remember: func(ctx context.Context, saved *suspend.Saved) error {
			return a.guests.rememberInfo(ctx, s.info, saved)
		},
		Record: func(ctx context.Context, c suspend.Change) { a.recordFreeze(ctx, id, c) },
		Lost:   func(reason string) { a.remover.loseSandbox(s, reason) },
		Moved:  func(to suspend.State) { a.tracker.followMove(s, to) },
		Still:  func(still bool) { a.tracker.stoodStill(s, still) },
		Memory: func(ctx context.Context) int64 {
			stats, err := s.instance.Stats(ctx)
			if err != nil {
				return 0 // the free-space reserve and the size of what lies there still count
			}
			return stats.MemoryBytes
		},
	}
	if body, ok := s.instance.(engine.Freezer); ok {
		cfg.Body = a.remover.blueprints.Following(id, body)
		cfg.MayThaw = func() error { return a.guests.mayShow(s.info) }
	}
	return cfg
}

func (a *assembly) recordFreeze(ctx context.Context, id string, c suspend.Change) {
	change := admission.FreezeChange{Outcome: audit.Thawed, Approvals: c.Approvals, Bytes: c.Bytes, Took: c.Took, Frozen: c.Frozen, Files: c.Files, Reason: c.Problem}
	switch {
	case c.Problem != "":
		change.Outcome = audit.Failed
	case c.To == suspend.Frozen:
		change.Outcome = audit.Frozen
	case c.To == suspend.Paused:
		change.Outcome = audit.Paused
	case c.Pause:
		change.Outcome = audit.Resumed
	}
	if err := a.cfg.Door.SandboxFroze(ctx, id, change); err != nil {
		a.cfg.Log.Error("a freeze or thaw is not on record", "sandbox", id, "err", err)
	}
}

// appear makes a sandbox known, and watches its end.
func (a *assembly) appear(s *Sandbox) {
	a.remover.registry.addSandbox(s)
	a.remover.background.doInBackground(func() { a.remover.watchInstance(s) })
}
