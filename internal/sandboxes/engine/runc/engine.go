// Package runc runs sandboxes as hardened containers: the host's kernel, in namespaces of
// their own, without capabilities, behind a filter of system calls.
//
// The command runc makes a container of a bundle: config.json beside an empty place for the root.
// The stage is a process of this binary that makes the mounts of a container in a mount namespace
// of its own and then becomes runc, so that all of them go when the container ends and none is ever
// the host's. A capped ext4 file of the instance is behind the root's writable layer, and another
// behind each file system in memory that a sandbox asks for. For a snapshot, another stage packs
// what was written to the root while the container stands still.
//
// An instance's files are in <state>/sandboxes/<id>/runc, runc's own record of it in
// Config.Root. Signals, waiting and the teardown go to the host's processes directly.
package runc

import (
	"context"
	"os"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// Name is what a policy's `isolation` says.
const Name = "runc"

// Config says where things are. All paths are absolute.
type Config struct {
	Runc string // the runc binary; "" looks in the host's own directories
	// Writable are the directories of the host in which sandboxes may write, or could: runc is not taken from there. nil:
	// there are none.
	Writable func() []hostpath.Tree
	Root     string // runc's own directory of states
	StateDir string // instances are in StateDir/sandboxes/<id>/runc
	// Place is an empty directory that every user may pass through to. Each stage makes
	// its mounts there, in a namespace of its own.
	Place string
	// Stage is the argv that runs Stage; the folder of an instance follows it.
	// For a snapshot it runs Keep, and the snapshot's folder follows that.
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
}

// Engine is the runc engine. Safe for concurrent use.
type Engine struct {
	cfg    Config
	keeper sandboxKeeper
	uid    int
	home   *hostproc.Home
	ids    func() identity.Source // found out at first use

	placing sync.RWMutex // held for reading while a start uses the place, for writing to remove it

	images image.Checker

	probing sync.Mutex // held over a probe of the host, and guards probed
	probed  os.FileInfo
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Maintainer = (*Engine)(nil)
)

// New makes the engine; the host is looked at when it is first used.
func New(cfg Config, k sandboxKeeper) *Engine {
	if cfg.CgroupParent == "" {
		cfg.CgroupParent = hostproc.ParentGroup(cfg.StateDir) + "-" + Name
	}
	uid := os.Geteuid()
	return &Engine{
		cfg: cfg, keeper: k, uid: uid, home: hostproc.NewHome(Name, cfg.StateDir, cfg.CgroupParent, uid, k).LimitStages(cfg.Stages),
		ids: sync.OnceValue(func() identity.Source { return identity.Find(uid) }),
	}
}

// Name is "runc".
func (*Engine) Name() string { return Name }

// Tend divides the processors between those whose sandboxes run, until ctx ends.
func (e *Engine) Tend(ctx context.Context) { e.home.Tend(ctx) }

// Hurry has somebody's sandboxes go first for the time of a create.
func (e *Engine) Hurry(share string) (done func()) { return e.home.Hurry(share) }

// List returns the ids of all instances that have files, running or not.
func (e *Engine) List(ctx context.Context) ([]string, error) { return e.home.List(ctx) }

// Open finds an instance that the keeper still knows; its daemon may have been another.
func (e *Engine) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	var st handleState
	if err := e.home.Find(ctx, h, &st); err != nil {
		return nil, err
	}
	return e.instance(h.ID, st), nil
}

// strays are the processes of a start of an instance that is not done.
func (e *Engine) strays(id string) hostproc.Strays {
	return hostproc.Strays{Dir: e.home.Path(id), Runs: func(pid int) bool {
		return hostproc.Runs(pid, e.program()) || hostproc.RunsStage(pid, e.cfg.Stage) || cloned(pid)
	}}
}
