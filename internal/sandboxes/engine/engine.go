// Package engine is the contract of what runs sandboxes, and the only place
// that neutral code knows it by. Implementations are child folders, all/ lists
// them, enginetest/ is the suite that each must pass.
//
// An engine declares which controls it can enforce. A policy that asks for more is refused, never
// silently weakened.
//
// One use, end to end: the daemon asks Capabilities, compares them with what
// the policy needs, calls Create with a Spec (which starts PID 1 under the
// keeper), talks to the guest through the keeper, calls Wait in the background,
// and in the end Destroy. After a restart of the daemon it calls Open with
// the Handle that it stored as the keeper's meta, and goes on.
package engine

import (
	"context"
	"encoding/json"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Control is one thing that isolates or limits a sandbox, and that an engine may enforce.
type Control string

// The controls.
const (
	ControlNoNetwork    Control = "no-network"     // loopback only
	ControlReadOnlyRoot Control = "read-only-root" // the template is never written
	ControlDiskCap      Control = "disk-cap"
	ControlMemory       Control = "memory" // past it the host's kernel kills processes of the sandbox, or all of it
	ControlCPU          Control = "cpu"
	ControlPids         Control = "pids"
	ControlNProc        Control = "nproc"        // a fork bomb stays inside, and keeps nobody's next command out
	ControlOwnKernel    Control = "own-kernel"   // the host kernel's system calls are not the guest's
	ControlUserMapping  Control = "user-mapping" // mounted files keep their owner
	ControlNonRootUser  Control = "non-root-user"
	ControlFreeze       Control = "freeze"   // its instances are Freezers
	ControlSnapshot     Control = "snapshot" // its instances are Snapshotters, and it is a Restorer
	// ControlSnapshotFiles: the same for ContentsFiles. An engine that enforces ControlSnapshot
	// enforces it, too.
	ControlSnapshotFiles Control = "snapshot-files"
)

// Capabilities is what an engine can do on this host, now.
type Capabilities struct {
	Enforces []Control          `json:"enforces"`
	Missing  map[Control]string `json:"missing,omitempty"` // why not, and how to get it
	Rootless bool               `json:"rootless"`
	// Wall is the one that sandboxes get here. An engine says WallHardware only after it
	// has run a guest at the speed of hardware: a device that opens proves nothing.
	Wall Wall `json:"wall"`
	// NoHardware is why it is not WallHardware, of an engine that could have it elsewhere.
	NoHardware string `json:"no_hardware,omitempty"`
	// By is the program of the host's that makes the wall, where there could be several, and
	// why it is no better one.
	By string `json:"by,omitempty"`
}

// Because is why a control is missing, in brackets behind a blank; "" where nobody knows.
func (c Capabilities) Because(missing Control) string {
	if why := c.Missing[missing]; why != "" {
		return " (" + why + ")"
	}
	return ""
}

// RootKind is the form of a root filesystem.
type RootKind string

// The forms.
const (
	RootDir   RootKind = "dir"   // a directory
	RootImage RootKind = "image" // a read-only file-system image (EROFS)
)

// Root is a template's root filesystem; it is never written to.
type Root struct {
	Kind RootKind `json:"kind"`
	Path string   `json:"path"`
}

// Mount is a host path shown inside, or with an empty Source a tmpfs.
type Mount struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	ReadOnly    bool   `json:"read_only"`
	SizeBytes   int64  `json:"size_bytes,omitempty"` // tmpfs only; must be > 0
	Mode        uint32 `json:"mode,omitempty"`       // tmpfs only
	// Origin is what Source was when it was checked. An engine that mounts it opens Source without
	// following a link, and refuses another file or directory. Zero for what is the
	// installation's or the host's own, in which no sandbox may write.
	Origin hostpath.Identity `json:"origin,omitzero"`
	// Covers is what this mount lies over directly in another one that can be written, as it was when that was
	// checked; "" for what lies elsewhere.
	Covers hostpath.Mark `json:"covers,omitempty"`
	// Around is the directory of the host in which there is what this mount hides: another
	// one at its place is a refusal, since what is to be hidden may have gone with the first.
	// Zero for what hides nothing.
	Around hostpath.Identity `json:"around,omitzero"`
}

// Limits of an instance; zero means the engine's default, never "none".
type Limits struct {
	CPU         float64 `json:"cpu"`
	MemoryBytes int64   `json:"memory_bytes"`
	DiskBytes   int64   `json:"disk_bytes"` // the writable layer over the root
	Pids        int     `json:"pids"`       // guest processes; the engine adds its own overhead
}

// SharedMemory is the size of /dev/shm in bytes: half of the memory, which is Linux's own default. Files
// there count as memory.
func (l Limits) SharedMemory() int64 { return l.MemoryBytes / 2 }

// Owner says which host user the sandbox's default user stands for: files on
// read-write mounts are created as HostUID:HostGID and seen inside as UID:GID.
type Owner struct {
	UID     int `json:"uid"`
	GID     int `json:"gid"`
	HostUID int `json:"host_uid"`
	HostGID int `json:"host_gid"`
}

// Spec describes an instance to be made.
type Spec struct {
	ID       string            `json:"id"` // [a-z0-9-]{1,64}, and not the begin of a living instance's
	Root     Root              `json:"root"`
	Mounts   []Mount           `json:"mounts"`
	Init     []string          `json:"init"` // PID 1's argv
	Env      []string          `json:"env"`
	Hostname string            `json:"hostname"`
	Limits   Limits            `json:"limits"`
	Owner    Owner             `json:"owner"`
	Weak     bool              `json:"-"` // tests only: the deliberately weak sandbox of positive controls (host network)
	Labels   map[string]string `json:"labels,omitempty"`
	// Share names whose part of the host's processors it takes: those of one share
	// have together what any other share has, when all want more than there is.
	Share string `json:"share,omitempty"`
}

// Handle is an engine's own memory of an instance, kept as data by whoever
// must open it again.
type Handle struct {
	Engine string          `json:"engine"`
	ID     string          `json:"id"`
	State  json.RawMessage `json:"state"`
}

// Exit is how an instance ended.
type Exit struct {
	Code   int    `json:"code"`
	OOM    bool   `json:"oom"`
	Reason string `json:"reason"` // "destroyed", "agent exited", "out of memory", "killed"
	// Words are the last that the sandbox's kernel and agent wrote, for the operator;
	// "" where nobody knows any. Programs inside may have chosen them.
	Words string `json:"-"`
}

// Stats is what an instance uses now.
type Stats struct {
	MemoryBytes int64 `json:"memory_bytes"`
	CPUNanos    int64 `json:"cpu_nanos"`
	Pids        int   `json:"pids"`
	// MemoryKills are the processes, of the sandbox or its own, that the host's kernel
	// killed because the sandbox's memory was full.
	MemoryKills int64 `json:"memory_kills"`
	// CPUThrottled is how often the host's kernel had the sandbox wait because it had
	// computed as much as it may.
	CPUThrottled int64 `json:"cpu_throttled"`
}

// Engine makes and re-opens instances. Safe for concurrent use.
type Engine interface {
	// Name is what a policy's `isolation` and --isolation say.
	Name() string
	// Capabilities probes the host; an engine that can't run here at all
	// returns fault.ErrUnavailable with how to get what is missing.
	Capabilities(ctx context.Context) (Capabilities, error)
	// Create makes and starts an instance: on return PID 1 runs and the keeper
	// owns its channel under Spec.ID. On error nothing is left behind.
	Create(ctx context.Context, spec Spec) (Instance, error)
	// Open finds a running or ended instance again; fault.ErrNotFound if it is gone.
	Open(ctx context.Context, h Handle) (Instance, error)
	// List returns the ids of all instances of this installation, also those
	// whose processes are dead but whose remains are not yet destroyed.
	List(ctx context.Context) ([]string, error)
	// Sweep destroys the remains of an id that can't be opened.
	Sweep(ctx context.Context, id string) error
}

// Instance is the running body of one sandbox: a root filesystem, PID 1 (the guest agent) and
// the limits around them. Safe for concurrent use.
type Instance interface {
	Handle() Handle
	// Signal sends a host signal to PID 1 and all that it isolates (by number).
	Signal(ctx context.Context, signal int) error
	// Wait returns when the instance has ended, by itself or destroyed.
	Wait(ctx context.Context) (Exit, error)
	Stats(ctx context.Context) (Stats, error)
	// Destroy kills, waits and unlinks: processes, mounts, cgroups, sockets,
	// files. Idempotent.
	Destroy(ctx context.Context) error
}

// Witness is implemented by an Instance whose kernel and agent write what they have to say
// to a file of this host.
type Witness interface {
	// Words are the last of it, while the instance is there, as Exit.Words are; "" if they
	// said nothing.
	Words() string
}

// Freezer is an Instance that can be written to disk and go on later, in the
// same instruction: an engine whose Capabilities enforce ControlFreeze makes
// such instances.
//
// The sandbox's channel lives on in the keeper over a freeze: what either side
// had written and the other not read stays on its way, so nobody at its ends
// sees more than a pause. That is in the keeper's memory: a keeper that ends
// takes what is frozen with it. The guest's monotonic clock jumps by the frozen
// time: a wait for a socket keeps the time that it has left, a sleep, or a
// program's own deadline, may be over at once.
type Freezer interface {
	Instance
	// Freeze writes memory and files to dir (absolute; made by Freeze, which is a
	// fault.ErrConflict if it exists; owned by the caller), then ends the
	// instance's processes. On an error the instance runs as before and dir is
	// gone, or the instance has ended and Wait says so. Wait does not return
	// because of a freeze. It goes on when ctx ends. For an instance that is
	// being frozen or is frozen to dir, by a daemon that died meanwhile, it waits
	// and completes what is missing.
	Freeze(ctx context.Context, dir string) error
	// FreezeFiles is Freeze, and keeps what was written to the root and nothing else: no memory,
	// and of memory file systems no files. Open streams of the channel end. Thaw then starts a new
	// PID 1 on those files, as the first time, which must be configured. fault.ErrUnavailable of an
	// engine that can't do that here.
	FreezeFiles(ctx context.Context, dir string) error
	// Thaw starts the instance again from dir, which may be another daemon's
	// Freeze or FreezeFiles; an image that is not whole or was changed is a
	// fault.ErrConflict, and nothing starts. The image stays, and can't be thawed from a
	// second time. On an error the instance is frozen as before, or has ended and Wait
	// says so. It goes on when ctx ends. Of one that runs it does nothing.
	Thaw(ctx context.Context, dir string) error
}

// Contents is what a snapshot holds.
type Contents string

// The contents.
const (
	ContentsMemory Contents = "memory" // memory and files: processes go on in the copy
	ContentsFiles  Contents = "files"  // what was written to the root; started like a new instance
)

// Control is what an engine must enforce for a snapshot with such contents.
func (c Contents) Control() Control {
	if c == ContentsFiles {
		return ControlSnapshotFiles
	}
	return ControlSnapshot
}

// Snapshotter is an Instance of which a copy can be written while it runs: an
// engine whose Capabilities enforce ControlSnapshot makes such instances, and so does
// one with ControlSnapshotFiles. Of the latter, contents that it can't write are a
// fault.ErrUnavailable.
type Snapshotter interface {
	Instance
	// Snapshot writes contents to dir (absolute; made by Snapshot, a
	// fault.ErrConflict if it exists; owned by the caller) and seals it, so that a
	// changed byte is found. The instance stands still meanwhile and then goes on,
	// its channel and commands untouched. On an error it goes on, too, and dir is
	// gone. It goes on when ctx ends. Memory file systems (tmpfs) belong to memory.
	Snapshot(ctx context.Context, dir string, contents Contents) error
}

// Restorer is an Engine that starts instances from snapshots.
type Restorer interface {
	Engine
	// Restore makes and starts an instance with the snapshot in dir, which it only
	// reads: any number of instances may be restored from one. The spec is that of
	// the instance of which the snapshot is, but for ID, Labels, Hostname and the sources of
	// mounts; limits may be lower, with memory except the disk's, and of memory
	// file systems the sizes stay what they were. A dir that is not whole or was
	// changed, or is of another spec, is a fault.ErrConflict, and nothing starts.
	// On error nothing is left behind.
	//
	// With memory, the guest's end of the channel is a copy too: the keeper starts
	// it anew (keeper.Launch.Reset), the guest drops the streams of its former one,
	// and its commands run on until they are adopted (channel.CallAdopt). It must
	// be configured again before it is used.
	Restore(ctx context.Context, spec Spec, dir string) (Instance, error)
}

// Maintainer is an Engine that looks after what its instances share.
type Maintainer interface {
	Engine
	// Tend does so until ctx ends. It is called once in the life of a daemon.
	Tend(ctx context.Context)
	// Hurry has the instances of a share (Spec.Share) go before those of others until
	// done is called, as far as the share has not hurried too much: somebody waits for
	// one of them.
	Hurry(share string) (done func())
}

// FlawChecker is an Engine that knows of flaws in programs that it runs and others make.
type FlawChecker interface {
	Engine
	// Doubts are sentences for the operator, none if nothing is known against this host's
	// programs.
	Doubts(ctx context.Context) []string
}
