package microvm

import (
	"debug/elf"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker"
)

// startMonitor shuts the monitor and its carrier in, on a thread of their own that goes with it.
func (f fire) startMonitor(b bundle, p stagePlan, groups []string) ([]*os.Process, error) {
	var started []*os.Process
	err := runApart(func() (err error) {
		started, err = f.shutIn(b, p, groups)
		return err
	})
	return started, err
}

// shutIn starts both as a user of their own, without any right, in namespaces without network
// interfaces and other processes, and in a root of which everything else is unmounted: the
// monitor, the machine's files, and for a program that needs them libraries.
func (f fire) shutIn(b bundle, p stagePlan, groups []string) ([]*os.Process, error) {
	opened, err := f.openFiles(b)
	defer opened.closeFiles()
	if err != nil {
		return nil, err
	}
	who, err := p.credential(p.Device)
	if err != nil {
		return nil, err
	}
	if err := joinGroups(groups); err != nil {
		return nil, err
	}
	_, _ = os.FindProcess(os.Getpid()) // has the runtime try out what it can, before the first child is special
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID); err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	if err := f.mountRoot(b, p, opened); err != nil {
		return nil, err
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_FSIZE: uint64(p.Most), unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return nil, err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	return f.beginConfined(p, opened, who)
}

// beginConfined starts the carrier, as the first process of the namespace, and the monitor.
func (fire) beginConfined(p stagePlan, o *opened, who *syscall.Credential) ([]*os.Process, error) {
	unix.Umask(0o077) // who connects to the machine's socket is the host for its agent
	run := func(argv []string, files ...*os.File) (*os.Process, error) {
		child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: "/", Env: p.Env, Files: files, Sys: &syscall.SysProcAttr{Credential: who}})
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", argv[0], err)
		}
		return child, nil
	}
	carrier := append([]string{inPlace(carrierName)}, p.Carrier...)
	carrier = append(carrier, p.Machine.Name, doCarry, inPlace(ownName, vsockName), strconv.Itoa(channelPort))
	first, err := run(carrier, os.Stdin, os.Stdout, os.Stderr, o.control, o.alive)
	if err != nil {
		return nil, err
	}
	id := filepath.Base(filepath.Dir(p.Machine.Name))
	monitor, err := run(firecracker.Command(inPlace(monitorName), inPlace(ownName, socketName), id), o.null, o.log, o.log, o.life)
	if err != nil {
		return nil, errors.Join(err, first.Kill())
	}
	return []*os.Process{monitor, first}, nil
}

// selfLink leads to this program.
const selfLink = "/proc/self/exe"

// opened is what the processes get of the host.
type opened struct {
	null, log, control *os.File
	alive, life        *os.File // a pipe: who reads of it knows when who has the other end has ended
	// self is this program, as a mount of its own: in a namespace of one's own the link to it
	// leads to another's, and by its name it may have been replaced.
	self int
}

func (o *opened) closeFiles() {
	for _, f := range []*os.File{o.null, o.log, o.control, o.alive, o.life} {
		if f != nil {
			_ = f.Close()
		}
	}
	if o.self > 0 {
		_ = unix.Close(o.self)
	}
}

// openFiles takes away sockets of those before, and opens what there is to be opened.
func (fire) openFiles(b bundle) (*opened, error) {
	o := &opened{}
	var errs []error
	for _, path := range []string{b.socket(), filepath.Join(b.ownDir(), vsockName), filepath.Join(b.dir, carrierName)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	var err error
	o.log, err = os.OpenFile(b.logFile(), os.O_WRONLY|os.O_APPEND, 0)
	errs = append(errs, err)
	o.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	errs = append(errs, err)
	o.alive, o.life, err = os.Pipe()
	errs = append(errs, err)
	errs = append(errs, err)
	o.self, err = unix.OpenTree(unix.AT_FDCWD, selfLink, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	errs = append(errs, err)
	o.control, err = listenIn(b.dir, carrierName)
	return o, errors.Join(append(errs, err)...)
}

// listenIn makes a socket in a folder, by a name that is short enough.
func listenIn(folder, name string) (*os.File, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), name), Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	return listener.File()
}

// mountRoot makes the root, and takes the host's away.
func (f fire) mountRoot(b bundle, p stagePlan, o *opened) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	at := b.rootPlace()
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=755"); err != nil {
		return fmt.Errorf("mount at %s: %w", at, err)
	}
	for _, dir := range []string{"dev", ownName, arriveName, "etc"} {
		if err := os.Mkdir(filepath.Join(at, dir), 0o755); err != nil { //nolint:gosec // the monitor's user passes through
			return err
		}
	}
	const quiet = unix.MS_RDONLY | unix.MS_NOSUID
	shown := []showing{
		{f.program, monitorName, quiet | unix.MS_NODEV},
		{p.Root, rootName, quiet | unix.MS_NODEV | unix.MS_NOEXEC},
		{p.Kernel, kernelName, quiet | unix.MS_NODEV | unix.MS_NOEXEC},
		{"/dev/urandom", "dev/urandom", quiet | unix.MS_NOEXEC},
		{p.Device, "dev/kvm", unix.MS_NOSUID | unix.MS_NOEXEC},
		{b.ownDir(), ownName, unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	}
	if p.Arrive != "" {
		for _, name := range []string{machineName, memoryName} {
			shown = append(shown, showing{filepath.Join(p.Arrive, name), filepath.Join(arriveName, name), quiet | unix.MS_NODEV | unix.MS_NOEXEC})
		}
	}
	for _, s := range shown {
		if err := bindAt(s.from, filepath.Join(at, s.to), s.flags); err != nil {
			return err
		}
	}
	if err := placeMount(o.self, filepath.Join(at, carrierName), quiet|unix.MS_NODEV); err != nil {
		return err
	}
	if linked(f.program) || linked(selfLink) {
		if err := f.libraries(at); err != nil {
			return err
		}
	}
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return err
	}
	return pivotRoot(at)
}

// placeMount shows what was opened as a mount.
func placeMount(tree int, at string, flags uintptr) error {
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		return err
	}
	err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err == nil {
		err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
	}
	if err != nil {
		return fmt.Errorf("show what carries the channel: %w", err)
	}
	return nil
}

// showing is a file or folder of the host that the monitor sees.
type showing struct {
	from, to string
	flags    uintptr
}

// libraries shows those of the host.
func (fire) libraries(at string) error {
	err := bindAt("/usr", filepath.Join(at, "usr"), unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV)
	if err == nil {
		err = libraries(at)
	}
	if _, there := os.Stat("/etc/ld.so.cache"); err == nil && there == nil {
		err = bindAt("/etc/ld.so.cache", filepath.Join(at, "etc/ld.so.cache"), unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV)
	}
	return err
}

// linked tells whether a program needs libraries. One that can't be looked at may.
func linked(program string) bool {
	f, err := elf.Open(program)
	if err != nil {
		return true
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// pivotRoot makes a mount the root of this thread's mount namespace, and unmounts the rest.
func pivotRoot(at string) error {
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("make %s the root: %w", at, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take the host's files away: %w", err)
	}
	return unix.Chdir("/")
}
