package microvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The tasks of a stage.
const (
	doStart    = "start"    // shut the monitor in and start it, in the control groups of some files
	doSave     = "save"     // have the machine stand still, and write it and its disks
	doFiles    = "files"    // have it stand still, and write the root's disk
	doContinue = "continue" // have it go on
	doCarry    = "carry"    // carry a channel for as long as the machine lives
)

// Names in a monitor's root.
const (
	ownName    = "own"
	rootName   = "root"
	kernelName = "kernel"
	rootSerial = "template"
	consoleFD  = 3
)

// inPlace is a path in a monitor's root.
func inPlace(parts ...string) string { return "/" + filepath.Join(parts...) }

// startWait bounds the start of a monitor, and the arrival of a machine.
const startWait = time.Minute

// Stage does one thing for the instance in a folder. To start, it shuts the monitor in:
// standard input and output are the machine's channel, and the process that was started is
// written down. Otherwise it tells the monitor to do something, for which there may be a
// folder to write to.
func Stage(dir string, args []string) error {
	if len(args) > 0 && args[0] == doCarry {
		return runCarrier(args[1:])
	}
	b := bundle{dir: dir}
	var p stagePlan
	if err := loadJSON(b.planFile(), &p); err != nil {
		return err
	}
	switch {
	case len(args) > 0 && args[0] == doStart:
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		return startAndArrive(ctx, b, p, args[1:])
	case args[0] == doContinue && len(args) == 1:
		return withControls(b, p, func(ctx context.Context, c controls) error { return c.Continue(ctx) })
	case (args[0] == doSave || args[0] == doFiles) && len(args) == 2:
		return withControls(b, p, func(ctx context.Context, c controls) error {
			return writeMachine(ctx, c, b, p, args[1], args[0] == doSave)
		})
	default:
		return fault.Invalid("a stage of the engine microvm does not know %q", args)
	}
}

// saveWait bounds what is done with a machine that stands still.
const saveWait = 4 * time.Minute

func withControls(b bundle, p stagePlan, do func(context.Context, controls) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveWait)
	defer cancel()
	c, err := p.monitor().dialControls(ctx, b)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, c), c.Close())
}

// startAndArrive starts the monitor, and has a machine arrive that is to be a copy.
func startAndArrive(ctx context.Context, b bundle, p stagePlan, groups []string) error {
	started, err := p.monitor().startMonitor(b, p, groups)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	var state *os.ProcessState
	safego.Go(func() {
		state, _ = started[0].Wait() // a wait that fails has no state
		close(ended)
	})
	began, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	safego.Go(func() {
		select {
		case <-ended:
			cancel(fmt.Errorf("the monitor ended at once: %v", state))
		case <-began.Done():
		}
	})
	err = p.bringUp(began, b, started)
	if err != nil {
		err = errors.Join(context.Cause(began), err)
		for _, process := range started {
			_ = process.Kill()
		}
		<-ended
	}
	return err
}

// bringUp waits for the monitor and writes down which processes there are.
func (p stagePlan) bringUp(ctx context.Context, b bundle, started []*os.Process) error {
	c, err := awaitControls(ctx, b, p)
	if err != nil {
		return fmt.Errorf("the monitor does not answer: %w", err)
	}
	defer c.Close() //nolint:errcheck // what it was told it has answered
	if p.Arrive == "" {
		err = c.Begin(ctx, p.Machine)
	} else if err = c.Read(ctx, p.Machine, p.Arrive); err != nil {
		err = fmt.Errorf("read the machine: %w", err)
	} else {
		err = c.Continue(ctx)
	}
	if err == nil {
		err = p.monitor().confined(started[0].Pid)
	}
	if err != nil {
		return err
	}
	var ids []process.ID
	for _, one := range started {
		id, err := process.Of(one.Pid)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return saveJSON(b.running(), ids)
}

// awaitControls connects as soon as the monitor listens.
func awaitControls(ctx context.Context, b bundle, p stagePlan) (controls, error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		c, err := p.monitor().dialControls(ctx, b)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// runApart does something on a thread of its own, which ends with it: its namespaces, root and
// filter are no other thread's, but for what it starts.
func runApart(do func() error) (err error) {
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, which ends the thread
		err = safego.Try(do)
	})
	<-done
	return err
}

// shutIn starts the monitor as a user of its own, without any right, in a root of which
// everything else is unmounted: the machine's files and the programs' libraries. It has no
// network interfaces. The thread must be apart.
func (p stagePlan) shutIn(b bundle, groups []string) (*os.Process, error) {
	log, err := os.OpenFile(b.logFile(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	who, err := p.credential(kvmDevice)
	if err != nil {
		return nil, err
	}
	if err := joinGroups(groups); err != nil {
		return nil, err
	}
	_, _ = os.FindProcess(os.Getpid()) // has the runtime try out what it can, before this thread can do less
	if err := unix.Unshare(p.namespaces()); err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	if err := p.mountRoot(b, groups); err != nil {
		return nil, err
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_FSIZE: uint64(p.Most), unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return nil, err
		}
	}
	if err := p.giveUp(); err != nil {
		return nil, err
	}
	argv := qemu{program: p.Program}.commandLine(p.Machine)
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: p.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, log},
		// Its start makes the namespace of processes: made before, it would be that of whatever
		// this thread starts first, and end with that.
		Sys: &syscall.SysProcAttr{Credential: who, Cloneflags: unix.CLONE_NEWPID},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return child, nil
}

// namespaces are the monitor's own, beside that of processes. A weak machine has the host's network.
func (p stagePlan) namespaces() int {
	const own = unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if p.Machine.Network {
		return own
	}
	return own | unix.CLONE_NEWNET
}

// giveUp takes from this thread, and so from the monitor, every way to rights, and the system
// calls that no monitor needs. The monitor itself gives up more when it has started
// (qemu.command), with its exec.
func (p stagePlan) giveUp() error {
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // a kernel does not know them all
			return fmt.Errorf("give up rights: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return seccomp.EnterToStart(p.Machine.Network)
}

// joinGroups puts this thread, with what it starts, into the control groups of some files.
func joinGroups(files []string) error {
	for _, file := range files {
		if err := enterGroup(file, "0"); err != nil {
			return err
		}
	}
	return nil
}

// enterGroup puts a thread into a control group; "0" is this one.
func enterGroup(file, thread string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(thread)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("join a control group: %w", err)
	}
	return nil
}

// credential is a user that nobody else is, and for a machine in hardware the group that may
// use KVM.
func (p stagePlan) credential(device string) (*syscall.Credential, error) {
	who := &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.UID)}
	if !p.Machine.Hardware {
		return who, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(device, &st); err != nil {
		return nil, fmt.Errorf("look at %s: %w", device, err)
	}
	if st.Gid != 0 && st.Mode&0o060 == 0o060 {
		who.Groups = []uint32{st.Gid}
	}
	return who, nil
}

// mountRoot makes the monitor's root, and takes the host's away. It goes with the monitor, which is
// the last in its namespace.
func (p stagePlan) mountRoot(b bundle, groups []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	at := b.rootPlace()
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=755"); err != nil {
		return fmt.Errorf("mount at %s: %w", at, err)
	}
	for _, dir := range []string{"usr", "etc", "dev", ownName} {
		if err := os.Mkdir(filepath.Join(at, dir), 0o755); err != nil { //nolint:gosec // the monitor's user passes through
			return err
		}
	}
	shown := []struct{ from, to string }{
		{"/usr", "usr"}, {p.Root, rootName}, {p.Kernel, kernelName}, {"/dev/null", "dev/null"}, {"/dev/urandom", "dev/urandom"},
	}
	if _, err := os.Stat("/etc/ld.so.cache"); err == nil {
		shown = append(shown, struct{ from, to string }{"/etc/ld.so.cache", "etc/ld.so.cache"})
	}
	for _, s := range shown {
		if err := bindAt(s.from, filepath.Join(at, s.to), unix.MS_RDONLY|unix.MS_NOSUID); err != nil {
			return err
		}
	}
	if p.Machine.Hardware {
		if err := bindAt(kvmDevice, filepath.Join(at, "dev/kvm"), unix.MS_NOSUID); err != nil {
			return err
		}
	}
	if err := bindAt(b.ownDir(), filepath.Join(at, ownName), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	if p.Machine.Shared {
		if err := p.layMemory(at, groups); err != nil {
			return err
		}
	}
	if err := errors.Join(libraries(at), unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")); err != nil {
		return err
	}
	return pivotRoot(at)
}

// libraries shows where a distribution keeps libraries outside of /usr, or the links to there.
func libraries(at string) error {
	for _, name := range []string{"lib", "lib64", "bin"} {
		from := filepath.Join("/", name)
		if target, err := os.Readlink(from); err == nil {
			if err := os.Symlink(target, filepath.Join(at, name)); err != nil {
				return err
			}
			continue
		}
		if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
			continue // this distribution has none
		}
		if err := bindAt(from, filepath.Join(at, name), unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return err
		}
	}
	return nil
}

// bindAt shows a file or folder at a path, which is made if it is not there.
func bindAt(from, to string, flags uintptr) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(to, 0o755) //nolint:gosec // the monitor's user passes through
	} else {
		err = os.WriteFile(to, nil, 0o600)
	}
	if err == nil {
		err = unix.Mount(from, to, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
	}
	if err != nil {
		return fmt.Errorf("show the monitor %s: %w", from, err)
	}
	return nil
}
