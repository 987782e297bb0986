package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// trees finds out what installs bring, in sandboxes of their own: the door asks, the
// manager has the sandboxes, package plan has the resolvers' commands and results.
type trees struct{ daemon *Daemon }

var _ planning.Trees = trees{}

// installKey names an install of a sandbox: its command's id, and its place there.
func installKey(command string, n int) string { return fmt.Sprintf("%s/%d", command, n) }

// Installs implements planning.Trees.
func (t trees) Installs(id string, of pkgref.Ecosystem) []planning.Install {
	var found []planning.Install
	t.eachInstall(id, func(key string, in plan.Install, _ sandbox.Started) bool {
		if in.Rewrite.Resolver.Ecosystem == of {
			found = append(found, planning.Install{Key: key, Command: strings.Join(in.Argv, " ")})
		}
		return true
	})
	return found
}

// eachInstall gives the installs that run in a sandbox until do says that it was enough.
func (t trees) eachInstall(id string, do func(key string, in plan.Install, started sandbox.Started) bool) {
	s, err := t.daemon.sandboxes.Get(id)
	if err != nil {
		return // it is gone
	}
	commands, err := t.daemon.sandboxes.Started(id)
	if err != nil {
		return
	}
	mounts := slices.Concat(s.Info().WritableMounts, s.Info().ReadOnlyMounts)
	for _, c := range commands {
		some, _ := plan.Installs(all.Installers(), c.Argv, c.Dir, mounts)
		for n, in := range some {
			if !do(installKey(c.ID, n), in, c) {
				return
			}
		}
	}
}

// Rehearse implements planning.Trees.
func (t trees) Rehearse(ctx context.Context, id string, what planning.Install, weigh func(context.Context, string, []planning.Choice, []string) error) error {
	var install plan.Install
	var started sandbox.Started
	t.eachInstall(id, func(key string, in plan.Install, c sandbox.Started) bool {
		if key == what.Key {
			install, started = in, c
		}
		return key != what.Key
	})
	if started.ID == "" {
		return fault.New(fault.ErrNotFound, "the command has ended")
	}
	r, err := t.daemon.sandboxes.Rehearse(ctx, id)
	if err != nil {
		return err
	}
	defer func() {
		if err := r.End(ctx); err != nil {
			t.daemon.opts.Log.ErrorContext(ctx, "the sandbox in which an install was resolved can't be taken away yet", "for", id, "err", err)
		}
	}()
	choices, notes, err := resolved(ctx, r, install, started)
	if err != nil {
		return err
	}
	return weigh(ctx, r.Run(), choices, notes)
}

// resolved runs an install's resolver and has the gateway look into what it chose.
func resolved(ctx context.Context, r *sandbox.Rehearsal, in plan.Install, as sandbox.Started) ([]planning.Choice, []string, error) {
	env := maps.Clone(as.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, unbuilt())
	dir := "" // where the sandbox starts its commands
	if in.Shown {
		dir = in.Dir
	}
	run := func(argv []string) ([]byte, error) {
		return r.Output(ctx, sandbox.Command{Argv: argv, Env: env, Dir: dir, CapBytes: installer.MaxOutput})
	}
	_, result, err := in.Rewrite.Resolve(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	choices, err := choicesOf(result)
	return choices, result.Notes, err
}

// unbuilt tells clients to look for what need not be built; the door refuses the rest.
func unbuilt() map[string]string {
	env := map[string]string{}
	for _, i := range all.Installers() {
		maps.Copy(env, i.Unbuilt())
	}
	return env
}

// choicesOf makes the choices canonical.
func choicesOf(result installer.Result) ([]planning.Choice, error) {
	return plan.Choices(result.Ecosystem, result.Choices)
}
