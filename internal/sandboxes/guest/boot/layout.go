package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Where the first root file system has what the sandbox's root is made of.
const (
	lower   = "/lower"
	scratch = "/scratch"
	root    = "/root"
)

// layOut makes the sandbox's root: the template, the writable layer over it, the kernel's
// file systems and the mounts.
func (m Machine) layOut() error {
	if err := m.mountRoot(); err != nil {
		return err
	}
	in, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // nothing was written to it
	p := newRoot{in, m}
	if err := p.mountOwn(); err != nil {
		return err
	}
	for _, mount := range m.Mounts {
		if err := p.mountShown(mount); err != nil {
			return fmt.Errorf("%s: %w", mount.Destination, err)
		}
	}
	return nil
}

// mountRoot lays the writable layer over the template.
func (m Machine) mountRoot() error {
	template, err := m.device(m.Root)
	if err != nil {
		return err
	}
	disk, err := m.device(m.Scratch)
	if err != nil {
		return err
	}
	if err := errors.Join(makeDir(lower), makeDir(scratch), makeDir(root)); err != nil {
		return err
	}
	if err := unix.Mount(template, lower, "erofs", unix.MS_RDONLY|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount the template: %w", err)
	}
	if err := unix.Mount(disk, scratch, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount the disk: %w", err)
	}
	files, work := filepath.Join(scratch, "files"), filepath.Join(scratch, "work")
	if err := errors.Join(makeDir(files), makeDir(work)); err != nil {
		return err
	}
	options := "lowerdir=" + lower + ",upperdir=" + files + ",workdir=" + work
	if err := unix.Mount("overlay", root, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("lay the writable layer over the template: %w", err)
	}
	return nil
}

// newRoot is the sandbox's root, in which no link leads out.
type newRoot struct {
	root *os.Root
	of   Machine
}

// mountOn has do mount something at a path inside, which is made if it is not there.
func (p newRoot) mountOn(path string, file bool, do func(target string) error) error {
	rel, err := filepath.Rel("/", path)
	if err != nil {
		return err
	}
	if _, err := p.root.Stat(rel); errors.Is(err, os.ErrNotExist) {
		if err := p.makePath(rel, file); err != nil {
			return err
		}
	}
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := unix.Openat2(int(dir.Fd()), rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	return do("/proc/self/fd/" + strconv.Itoa(fd))
}

func (p newRoot) makePath(rel string, file bool) error {
	if !file {
		return p.root.MkdirAll(rel, 0o755)
	}
	if err := p.root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	return p.root.WriteFile(rel, nil, 0o644)
}

// fileSystem mounts a file system at a path inside.
func (p newRoot) fileSystem(source, at, kind string, flags uintptr, options string) error {
	err := p.mountOn(at, false, func(target string) error { return unix.Mount(source, target, kind, flags, options) })
	if err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	return nil
}

// mountOwn mounts the kernel's file systems. Of the machine's devices there are those that every
// sandbox has: not its disks, nor the channel. /sys is empty, because root could write there.
func (p newRoot) mountOwn() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return errors.Join(
		p.fileSystem("proc", "/proc", "proc", quiet, ""),
		p.fileSystem("tmpfs", "/sys", "tmpfs", quiet|unix.MS_RDONLY, "size=4096,mode=555"),
		p.fileSystem("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID, "size=1m,mode=755"),
		p.devices(),
		p.fileSystem("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"),
	)
}

func (p newRoot) devices() error {
	unix.Umask(0)
	defer unix.Umask(0o022)
	var errs []error
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		errs = append(errs, unix.Mknod(filepath.Join(root, "dev", name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))))
	}
	errs = append(errs, unix.Mknod(filepath.Join(root, "dev/tty"), unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))))
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		errs = append(errs, p.root.Symlink(target, filepath.Join("dev", name)))
	}
	return errors.Join(errs...)
}

// mountShown shows one of the machine's mounts.
func (p newRoot) mountShown(m Mount) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if m.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	switch m.Kind {
	case Memory:
		return p.fileSystem("tmpfs", m.Destination, "tmpfs", flags, fmt.Sprintf("size=%d,mode=%04o", m.Bytes, m.Mode))
	case Image:
		at, err := p.of.device(m.Source)
		if err != nil {
			return err
		}
		return p.fileSystem(at, m.Destination, "erofs", flags|unix.MS_RDONLY, "")
	case Disk:
		return p.mountDisk(m, flags)
	case File:
		return p.mountOn(m.Destination, true, func(target string) error {
			if err := unix.Mount(filepath.Join(FileDir, m.Source), target, "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return p.mountOn(m.Destination, true, func(target string) error {
				return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
			})
		})
	default:
		return fmt.Errorf("there are no mounts of the kind %q", m.Kind)
	}
}

// mountDisk shows a directory of a disk: its own top has what belongs to its file system.
func (p newRoot) mountDisk(m Mount, flags uintptr) error {
	at, err := p.of.device(m.Source)
	if err != nil {
		return err
	}
	top := "/disk-" + m.Source
	files := filepath.Join(top, "files")
	if err := errors.Join(makeDir(top), unix.Mount(at, top, "ext4", flags|unix.MS_NOATIME, "")); err != nil {
		return err
	}
	if err := os.Mkdir(files, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Chmod(files, m.Mode); err != nil {
		return err
	}
	return p.fileSystem(files, m.Destination, "", unix.MS_BIND, "")
}
