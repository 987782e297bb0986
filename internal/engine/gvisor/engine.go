// Package gvisor runs sandboxes under gVisor: a kernel in user space between
// the guest's system calls and the host's.
//
// Vocabulary: *runsc* is gVisor's command; the *sentry* is the process that is
// a sandbox's kernel, the *gofer* the one that opens host files for it; both
// are what the keeper tracks. The *bundle* is what runsc reads: config.json
// and an empty root. The *filestore* is the file behind a writable layer; it
// is capped, and unlinked as soon as it is open.
//
// An instance's files are in <state>/sandboxes/<id>/gvisor, runsc's own record
// of it in Config.Root. runsc is run to start a sandbox, to freeze and thaw it,
// and to write a snapshot of it and restore that: signals, waiting and the
// teardown go to the host's processes directly, because each runsc command
// costs as much as a third of a start.
package gvisor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/process"
)

// Name is what a policy's `isolation` says.
const Name = "gvisor"

// Config says where things are. All paths are absolute.
type Config struct {
	Runsc    string // the runsc binary
	Root     string // runsc's own directory of states and sockets; keep it short
	StateDir string // instances are in StateDir/sandboxes/<id>/gvisor
	// CgroupParent is the control group that instances' groups are made under;
	// "" derives one from StateDir, so that installations do not meet.
	CgroupParent string
}

// sandboxKeeper is what this engine needs of the keeper.
type sandboxKeeper interface {
	Launch(ctx context.Context, l keeper.Launch) (keeper.Sandbox, error)
	Track(ctx context.Context, id string, processes []process.ID) error
	Get(ctx context.Context, id string) (keeper.Sandbox, error)
	Signal(ctx context.Context, id string, sig int) error
	Kill(ctx context.Context, id string) error
	Freeze(ctx context.Context, f keeper.Freeze) error
	Thaw(ctx context.Context, l keeper.Launch) error
	Wait(ctx context.Context, id string) (keeper.ProcessExit, error)
	Forget(ctx context.Context, id string) error
}

// Engine is the gVisor engine. Safe for concurrent use.
type Engine struct {
	cfg    Config
	keeper sandboxKeeper
	uid    int
	// groups, balance and ids are found out once, at first use: what a host offers
	// does not change under a running daemon.
	groups  func() *cgroup.Hierarchy
	balance func() *cgroup.Balance
	ids     func() idSource
	// images knows which snapshots have not changed since they were verified.
	images   image.Checker
	restores chan struct{} // a slot for each restore that is under way

	probing sync.Mutex // held over a probe of runsc, and guards probed
	// probed is the runsc that was found to start in namespaces of its own: a
	// probe costs a tenth of a create.
	probed os.FileInfo
}

var (
	_ engine.Engine = (*Engine)(nil)
	_ engine.Tender = (*Engine)(nil)
)

// New makes the engine; the host is looked at when it is first used.
func New(cfg Config, k sandboxKeeper) *Engine {
	if cfg.CgroupParent == "" {
		cfg.CgroupParent = "cofferdam-" + shortHash(cfg.StateDir)
	}
	uid := os.Geteuid()
	e := &Engine{
		cfg: cfg, keeper: k, uid: uid,
		groups: sync.OnceValue(func() *cgroup.Hierarchy {
			return cgroup.New(cgroup.Config{Parent: cfg.CgroupParent, UID: uid})
		}),
		ids:      sync.OnceValue(func() idSource { return findIDs(uid) }),
		restores: make(chan struct{}, restoresAtOnce),
	}
	e.balance = sync.OnceValue(func() *cgroup.Balance { return cgroup.NewBalance(e.groups()) })
	return e
}

// Name is "gvisor".
func (*Engine) Name() string { return Name }

// Tend divides the processors between those whose sandboxes run, until ctx ends.
func (e *Engine) Tend(ctx context.Context) { e.balance().Run(ctx) }

// Hurry has somebody's sandboxes go first for the time of a create.
func (e *Engine) Hurry(share string) (done func()) { return e.balance().Hurry(share) }

// List returns the ids of all instances that have files, running or not.
func (e *Engine) List(context.Context) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(e.cfg.StateDir, "sandboxes", "*", Name))
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, dir := range found {
		ids = append(ids, filepath.Base(filepath.Dir(dir)))
	}
	return ids, nil
}

// Open finds an instance that the keeper still knows; its daemon may have
// been another.
func (e *Engine) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	if h.Engine != Name {
		return nil, fault.Invalid("the handle of %s is of the engine %q, not %q", h.ID, h.Engine, Name)
	}
	if err := checkID(h.ID); err != nil {
		return nil, err
	}
	var st state
	if err := json.Unmarshal(h.State, &st); err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the handle of sandbox %s can't be read", h.ID)
	}
	if _, err := os.Stat(e.dir(h.ID)); err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "sandbox %s has no files any more", h.ID)
	}
	if _, err := e.keeper.Get(ctx, h.ID); err != nil {
		return nil, err
	}
	return e.instance(h.ID, st), nil
}

// dir is where an instance's files are.
func (e *Engine) dir(id string) string {
	return filepath.Join(e.cfg.StateDir, "sandboxes", id, Name)
}

func checkID(id string) error {
	bad := strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
	if id == "" || len(id) > 64 || bad {
		return fault.Invalid("the sandbox id %q must be 1 to 64 of a-z, 0-9 and -", id)
	}
	return nil
}
