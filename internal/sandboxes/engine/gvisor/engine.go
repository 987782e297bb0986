// Package gvisor runs sandboxes under gVisor: a kernel in user space between
// the guest's system calls and the host's.
//
// gVisor's command is runsc. The keeper tracks two processes of each sandbox: the sentry, which is
// its kernel, and the gofer, which opens host files for it. runsc reads a bundle, config.json and
// an empty root. The file behind a writable layer (the filestore) is capped, and unlinked as soon
// as it is open.
//
// An instance's files are in <state>/sandboxes/<id>/gvisor, runsc's own record
// of it in Config.Root. runsc is run to start a sandbox, to freeze and thaw it,
// and to write a snapshot of it and restore that: signals, waiting and the
// teardown go to the host's processes directly, because each runsc command
// costs as much as a third of a start.
package gvisor

import (
	"context"
	"os"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Name is what a policy's `isolation` says.
const Name = "gvisor"

// Config says where things are. All paths are absolute.
type Config struct {
	Runsc string // the runsc binary
	// Programs is a directory in which runsc gets a second name, by which it is started, whatever is put in its place; "": it
	// is started by its own.
	Programs string
	// Writable are the directories of the host in which sandboxes may write, or could; nil: there are none.
	Writable func() []hostpath.Tree
	Root     string // runsc's own directory of states and sockets; keep it short
	StateDir string // instances are in StateDir/sandboxes/<id>/gvisor
	// Stage is the argv that runs Stage of this package; an instance's folder and a command
	// follow.
	Stage []string
	// Stages are the limits of the programs that write an instance's files; the zero value is
	// hostproc.DefaultStageLimits.
	Stages cgroup.Limits
	// CgroupParent is the control group that instances' groups are made under;
	// "" derives one from StateDir, so that installations do not meet.
	CgroupParent string
}

// sandboxKeeper is what this engine needs of the keeper.
type sandboxKeeper interface {
	hostproc.Keeper

	Track(ctx context.Context, id string, processes []process.ID) error
	Kill(ctx context.Context, id string) error
	Thaw(ctx context.Context, l keeper.Launch) error
}

// Engine is the gVisor engine. Safe for concurrent use.
type Engine struct {
	cfg    Config
	keeper sandboxKeeper
	uid    int
	home   *hostproc.Home
	// ids is found out once, at first use: what a host offers does not change under a
	// running daemon.
	ids func() identity.Source
	// images knows which snapshots have not changed since they were verified.
	images   image.Checker
	restores *fairqueue.Shares // that are under way

	runsc   *executable.Held
	probing sync.Mutex // held over a probe of runsc, and guards probed
	// probed is the runsc that was found to start in namespaces of its own: a
	// probe costs a tenth of a create.
	probed os.FileInfo
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Maintainer = (*Engine)(nil)
)

// New makes the engine; the host is looked at when it is first used.
func New(cfg Config, k sandboxKeeper) *Engine {
	if cfg.CgroupParent == "" {
		cfg.CgroupParent = hostproc.ParentGroup(cfg.StateDir)
	}
	uid := os.Geteuid()
	programs := cfg.Programs
	if uid != 0 {
		// AppArmor lets a user's program make namespaces by its name alone (see doctor): so runsc is looked at before
		// each use, and started by its own name.
		programs = ""
	}
	return &Engine{
		cfg: cfg, runsc: executable.Hold(cfg.Runsc, programs, cfg.Writable), keeper: k, uid: uid, home: hostproc.NewHome(Name, cfg.StateDir, cfg.CgroupParent, uid, k).LimitStages(cfg.Stages),
		ids:      sync.OnceValue(func() identity.Source { return identity.Find(uid) }),
		restores: fairqueue.New(restoresAtOnce()),
	}
}

// Name is "gvisor".
func (*Engine) Name() string { return Name }

// Tend divides the processors between those whose sandboxes run, until ctx ends.
func (e *Engine) Tend(ctx context.Context) { e.home.Tend(ctx) }

// Hurry has somebody's sandboxes go first for the time of a create.
func (e *Engine) Hurry(share string) (done func()) { return e.home.Hurry(share) }

// List returns the ids of all instances that have files, running or not.
func (e *Engine) List(ctx context.Context) ([]string, error) { return e.home.List(ctx) }

// Open finds an instance that the keeper still knows; its daemon may have
// been another.
func (e *Engine) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	var st handleState
	if err := e.home.Find(ctx, h, &st); err != nil {
		return nil, err
	}
	return e.instance(h.ID, st), nil
}

// instanceDir is where an instance's files are.
func (e *Engine) instanceDir(id string) string { return e.home.Path(id) }

// groups are the control groups of the instances.
func (e *Engine) groups() *cgroup.Hierarchy { return e.home.Groups() }
