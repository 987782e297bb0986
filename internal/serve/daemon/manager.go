package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/embedded"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon/watched"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// startManager makes the manager and lets it take over what lives.
func (d *Daemon) startManager(ctx context.Context) error {
	p := d.opts.Paths
	stage, err := installStage(p.Stages())
	if err != nil {
		return err
	}
	d.templates = template.NewStore(p.Templates(), template.Options{
		InUse:   func(digest string) bool { return d.sandboxes != nil && d.sandboxes.Uses(digest) },
		Fetcher: toolFetcher{d}, Writable: writableOf(d),
	})
	runsc := FindRunsc(d.opts.Config.Runsc, d.opts.Executable, written.OrAnywhere(p.Written()))
	engines := all.Engines(all.Config{
		Runsc: runsc, Programs: p.Engines(), Writable: writableOf(d), RunscDir: p.Runsc(), StateDir: p.State,
		RuncDir: p.Runc(), Place: p.Place(), Stage: stage, Stages: limitsOf(d.opts.Config.Processes.Stage),
		Docker: d.opts.Config.Docker.Host, Grounds: p.Grounds(), Probe: []string{d.opts.Executable, "probe"},
		Kernel: d.opts.Config.GuestKernel, Monitor: d.opts.Config.MachineMonitor, Agent: embedded.Binary, Log: d.opts.Log,
	}, d.keeper)
	copies, err := openSnapshots(d.opts)
	if err != nil {
		return err
	}
	record, hidden, err := openHostRecords(p)
	if err != nil {
		return err
	}
	d.homes = agenthome.NewShelf(p.Homes())
	d.sandboxes = sandbox.New(sandbox.Config{
		Snapshots: copies, Homes: d.homes,
		Engines: engines, DefaultEngine: all.Default, CallEngines: all.CallerNames(), Keeper: d.keeper, Templates: d.templates, Door: d.door, Secrets: d.secrets, Hold: backend.Lend,
		Trust: d.gateway.trusted, TrustHosts: d.hosts.CAPEM, ClientSettings: clientSettings(), ClientEnv: d.gateway.clientEnv, AgentDir: p.Agent(), EmptyFile: filepath.Join(p.Agent(), emptyName),
		Own: []string{p.State, p.Runtime}, Written: record, Hidden: hidden, Seen: seenOf(d), Projects: func() ([]string, error) { return project.Dirs(p.Projects()) }, Copies: withoutLinks(p.Workspaces()), Programs: func() []string { return d.opts.Config.HostFiles(p) }, ToolHomes: d.opts.Config.ToolHomes, OwnPrograms: ownPrograms(d.opts.Executable, runsc), PolicyDir: p.Policies(), BaselineDir: p.Baselines(),
		DefaultTemplate: d.opts.Config.DefaultTemplate, Log: d.opts.Log, Journal: watched.Journal(d.journal, d.telemetry), Observer: watched.Observer(d.telemetry),
		Warm: func(ctx context.Context, u commands.Unclaimed) error { return interpreter.Warm(ctx, u, u.Home) },
		Host: promisable(d.opts.Config.Overcommit, d.opts.Log), Queue: d.followQueue(ctx), FreezeAfter: time.Duration(d.opts.Config.Freeze.After),
		Shelf: suspend.NewShelf(p.Frozen(), suspend.Room{
			Bytes: int64(d.opts.Config.Freeze.MaxBytes), Count: d.opts.Config.Freeze.MaxCount, Reserve: int64(d.opts.Config.Freeze.Reserve),
		}),
	})
	if err := d.sandboxes.Recover(ctx); err != nil {
		return err
	}
	d.approvals.queue.FollowRuns(d.liveRuns)
	d.quietKeeper = d.nursery.watchKeeper(d.sandboxes.KeeperEnded)
	return nil
}

// withoutLinks is the name, without links, of what lies in a directory and is no link itself.
func withoutLinks(path string) string {
	dir, _, err := hostpath.Links(filepath.Dir(path))
	if err != nil {
		return path
	}
	return filepath.Join(dir, filepath.Base(path))
}

// openHostRecords opens what is kept of the host's directories: where sandboxes could write, and what
// ignore files have hidden.
func openHostRecords(p config.Paths) (*written.Record, *mountpolicy.Hidden, error) {
	record, err := written.Open(p.Written())
	if err != nil {
		return nil, nil, err
	}
	hidden, err := mountpolicy.OpenHidden(p.Hidden())
	return record, hidden, err
}

// openSnapshots opens the store of copies, with the room that the configuration gives it.
func openSnapshots(opts Options) (*snapshots.Store, error) {
	return snapshots.Open(snapshots.Config{
		Dir: opts.Paths.Snapshots(), Log: opts.Log, ColdAfter: time.Duration(opts.Config.Snapshots.ColdAfter),
		Room: snapshots.Room{
			Bytes: int64(opts.Config.Snapshots.MaxBytes), Count: opts.Config.Snapshots.MaxCount, Reserve: int64(opts.Config.Snapshots.Reserve),
		},
	})
}

// liveRuns are those with a sandbox that is not at its end.
func (d *Daemon) liveRuns() map[string]bool {
	live := map[string]bool{}
	for _, s := range d.sandboxes.List() {
		switch state, _ := s.State(); state { // the others live
		case sandbox.Destroying, sandbox.Destroyed, sandbox.Failed:
		default:
			live[s.Info().Run] = true
		}
	}
	for _, run := range d.calls.Runs() {
		live[run] = true
	}
	return live
}

// holder tells the manager what sandboxes wait for. The door is made before it,
// and knows no sandbox that the manager does not have.
type holder struct{ daemon *Daemon }

var _ admission.Holder = holder{}

// Held implements admission.Holder.
func (h holder) Held(sandbox string, hold admission.Hold, freeze bool) {
	if !h.daemon.calls.Has(sandbox) { // what a call waits for, its client waits for
		h.daemon.sandboxes.Held(sandbox, hold, freeze)
	}
}

// Released implements admission.Holder.
func (h holder) Released(ctx context.Context, sandbox string, hold admission.Hold) error {
	if h.daemon.calls.Has(sandbox) {
		return nil
	}
	return h.daemon.sandboxes.Released(ctx, sandbox, hold)
}
