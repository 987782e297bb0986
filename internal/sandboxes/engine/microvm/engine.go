// Package microvm runs each sandbox in a small machine with a kernel of its own and no network
// device.
//
// Firecracker or QEMU, called the monitor here, runs a machine. A socket tells it to stand still or
// to write the machine down. If a monitor does not carry the channel, a process beside it does
// (carrier). A process of this binary, the stage, shuts the monitor in and starts it. The kernel
// unpacks the first root when it starts: the agent, which lays out the rest (internal/sandboxes/guest/boot),
// and the kernel's modules. Each disk of an instance is a sparse file with a file system of the
// sandbox's own, which nobody but the machine ever mounts.
//
// An instance's files are in <state>/sandboxes/<id>/microvm. The channel is a virtio port
// whose other end is the monitor's stdin and stdout. Folders of the host are not shown: those
// to be read are copied when a machine starts, and those to be written are refused.
package microvm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Name is what a policy's `isolation` says.
const Name = "microvm"

// Config says where things are. All paths are absolute.
type Config struct {
	QEMU        string // the program; "" looks where distributions put it
	Firecracker string // the same, where it is installed by hand
	// Monitor is the one program that machines are run by; "" takes Firecracker where it is
	// there and KVM proves itself, else QEMU.
	Monitor string
	// Kernel is a directory with boot/vmlinuz-RELEASE and lib/modules/RELEASE; "" is the
	// host's own.
	Kernel   string
	StateDir string // instances are in StateDir/sandboxes/<id>/microvm
	// Writable are the directories of the host in which sandboxes may write, or could: no monitor is taken from there. nil: there
	// are none.
	Writable func() []hostpath.Tree
	// Agent is the program that the kernel starts first, which is the sandboxes' agent.
	Agent func() ([]byte, error)
	// Stage is the argv that runs Stage; the folder of an instance, and more, follow it.
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

	Call(ctx context.Context, id string, call channel.Call) (channel.Reply, error)
	Track(ctx context.Context, id string, processes []process.ID) error
	Kill(ctx context.Context, id string) error
	Thaw(ctx context.Context, l keeper.Launch) error
}

// Engine is the engine of machines. Safe for concurrent use.
type Engine struct {
	cfg    Config
	keeper sandboxKeeper
	uid    int
	home   *hostproc.Home
	ids    func() identity.Source // found out at first use, as the three below
	khz    func() int
	kvm    func() kvmVerdict
	device string        // of KVM
	stream bool          // memory is copied by the monitor's stream, as by older versions; for a test
	images image.Checker // knows which snapshots have not changed since they were verified

	probing sync.Mutex // held over a probe of the host, and guards probed
	probed  *host
}

// host is what of this host machines are made with.
type host struct {
	programs []string // with these the host was probed
	found    []os.FileInfo
	choice
	version string
	kernel  kernel
	image   string // of the kernel, as the monitor boots it
	modules []module
	kvm     kvmVerdict
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
		khz: sync.OnceValue(counterKHz),
		kvm: sync.OnceValue(func() kvmVerdict {
			v, _ := probeKVM(kvmDevice) // the verdict says what matters
			return v
		}),
		device: kvmDevice,
	}
}

// kernels is where images of kernels are kept that had to be unpacked.
func (e *Engine) kernels() string { return filepath.Join(e.cfg.StateDir, "kernels") }

// kvmDevice is where the kernel offers machines in hardware.
const kvmDevice = "/dev/kvm"

// Name is "microvm".
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

// bundle is where an instance's files are.
func (e *Engine) bundle(id string) bundle { return bundle{dir: e.home.Path(id)} }

// strays are the monitor of an instance, and a stage that is starting one.
func (e *Engine) strays(id string) hostproc.Strays {
	return hostproc.Strays{Dir: e.home.Path(id), Runs: func(pid int) bool {
		return hostproc.RunsStage(pid, e.cfg.Stage) ||
			slices.ContainsFunc(e.programs(), func(program string) bool { return hostproc.Runs(pid, program) })
	}}
}
