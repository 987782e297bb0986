package microvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

// The files of the host that are copied into a machine.
const (
	mostCopied  = 1 << 30 // bytes of a folder, each file in whole blocks
	imageBlock  = 4 << 10
	mostEntries = 200_000
	mostImage   = mostCopied + mostEntries*320 // an entry has an inode, and a name of at most 255 bytes
	mostFile    = 8 << 20                      // bytes of all files that are mounted by themselves
)

// layout is what of a spec becomes disks, images and files of a machine.
type layout struct {
	mounts []boot.Mount
	disks  []int64 // sizes; the first is the root's writable layer
	images []folderImage
	files  map[string][]byte
}

// folderImage is a folder that is copied into a machine, and what is hidden in it.
type folderImage struct {
	engine.Mount

	hidden []engine.Mount
	below  []engine.Mount // the same in a folder that is mounted in this one, and may be a part of it
}

// layOut translates a spec's mounts. Nothing is made yet.
func layOut(ctx context.Context, spec engine.Spec) (layout, error) {
	l := layout{disks: []int64{spec.Limits.DiskBytes}, files: map[string][]byte{}}
	if err := engine.CheckSources(spec.Mounts); err != nil {
		return l, err
	}
	left := int64(mostFile)
	for _, m := range append(ownMounts(spec), spec.Mounts...) {
		switch {
		case m.Source == "":
			l.memory(m)
			continue
		case !m.ReadOnly:
			return l, fault.New(fault.ErrUnavailable, "%s can't be mounted for writing: %s; mount it read-only and copy results out, or use the engine gvisor", m.Source, noMounts)
		}
		source, err := m.Open()
		if err != nil {
			return l, err
		}
		if source.ID.Type == hostpath.Dir {
			err := measure(ctx, source)
			source.Close()
			if err != nil {
				return l, err
			}
			l.mounts = append(l.mounts, boot.Mount{Kind: boot.Image, Destination: m.Destination, Source: copiedName(len(l.images)), ReadOnly: true})
			l.images = append(l.images, imageOf(m, spec.Mounts))
			continue
		}
		data, err := readAs(ctx, source, spec.Owner)
		source.Close()
		if err != nil {
			return l, err
		}
		if left -= int64(len(data)); left < 0 {
			return l, fault.Invalid("the files that are mounted one by one have more than %d bytes; mount their folder", mostFile)
		}
		name := "file-" + strconv.Itoa(len(l.files))
		l.files[name] = data
		l.mounts = append(l.mounts, boot.Mount{Kind: boot.File, Destination: m.Destination, Source: name, ReadOnly: true})
	}
	if len(l.disks) > mostDisks || len(l.images) > mostImages {
		return l, fault.Invalid("sandbox %s has %d folders and %d large file systems in memory, and a machine can have %d and %d; use the engine gvisor", spec.ID, len(l.images), len(l.disks)-1, mostImages, mostDisks-1)
	}
	return l, nil
}

// memory adds a file system that does not outlive the instance.
func (l *layout) memory(m engine.Mount) {
	mode := m.Mode
	if mode == 0 {
		mode = 0o755
	}
	if m.SizeBytes <= smallBytes || m.Destination == "/run" || m.Destination == "/dev/shm" {
		l.mounts = append(l.mounts, boot.Mount{Kind: boot.Memory, Destination: m.Destination, Bytes: m.SizeBytes, Mode: mode, ReadOnly: m.ReadOnly})
		return
	}
	l.mounts = append(l.mounts, boot.Mount{Kind: boot.Disk, Destination: m.Destination, Source: diskName(len(l.disks)), Mode: mode, ReadOnly: m.ReadOnly})
	l.disks = append(l.disks, m.SizeBytes)
}

// measure refuses a folder that is too large to be copied.
func measure(ctx context.Context, source *hostpath.Path) error {
	dir := source.Name
	var bytes int64
	entries := 0
	err := treewalk.Walk(ctx, source, ".", treewalk.Usual(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			bytes += (info.Size() + imageBlock - 1) &^ (imageBlock - 1)
		}
		if entries++; entries > mostEntries || bytes > mostCopied {
			return fault.Invalid("%s has more than %d MB or %d entries, too much to copy it into a machine; mount less of it, or use the engine gvisor", dir, mostCopied>>20, mostEntries)
		}
		return nil
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return fault.Invalid("%s %s, too much to copy it into a machine; mount less of it, or use the engine gvisor", dir, bound.Has)
	}
	if err != nil && !errors.Is(err, fault.ErrInvalid) && ctx.Err() == nil {
		return fault.Wrap(fault.ErrInvalid, err, "%s can't be read", dir)
	}
	return err
}

// asOwner is a process of the host's user: what he can't read is not copied for him.
func asOwner(o engine.Owner) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.HostUID), Gid: uint32(o.HostGID)}}
}

// sourceFD is the descriptor by which a program that is started for the host's user finds
// what was opened.
const sourceFD = "/proc/self/fd/3"

// readAs reads a file as the host's user; one that all may read needs nobody.
func readAs(ctx context.Context, source *hostpath.Path, o engine.Owner) ([]byte, error) {
	if info, err := os.Stat(source.Proc()); err != nil || info.Size() > mostFile {
		return nil, errors.Join(err, tooLong(source))
	}
	// A sandbox that may write to it may have it grow after it was measured.
	cmd := exec.CommandContext(ctx, "/usr/bin/head", "-c", strconv.Itoa(mostFile+1), "--", sourceFD)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.Env = &out, &said, asOwner(o), programEnvironment()
	cmd.ExtraFiles = []*os.File{source.File()}
	err := cmd.Run()
	if out.Len() > mostFile {
		return nil, tooLong(source)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "%s can't be read by the user %d: %.200s", source.Name, o.HostUID, said.String())
	}
	return out.Bytes(), nil
}

func tooLong(file *hostpath.Path) error {
	return fault.Invalid("%s has more than %d bytes; mount its folder", file.Name, mostFile)
}

func imageOf(folder engine.Mount, all []engine.Mount) folderImage {
	hidden, below := hiddenIn(folder, all)
	return folderImage{folder, hidden, below}
}

// hiddenIn are the mounts that hide something in a folder, and those that do in one that is mounted in it.
func hiddenIn(folder engine.Mount, all []engine.Mount) (hidden, below []engine.Mount) {
	for _, m := range all {
		innermost := ""
		for _, outer := range all {
			if strings.HasPrefix(m.Destination, outer.Destination+"/") && len(outer.Destination) > len(innermost) {
				innermost = outer.Destination
			}
		}
		switch {
		case m.Around.IsZero():
		case innermost == folder.Destination:
			hidden = append(hidden, m)
		case strings.HasPrefix(m.Destination, folder.Destination+"/"):
			below = append(below, m)
		}
	}
	return hidden, below
}

// copyFolder makes an image of a folder, as the host's user, whose files become the owner's. Hidden
// files are not in the image: root inside could look below what the machine lays over it.
func copyFolder(ctx context.Context, m folderImage, o engine.Owner, to string) error {
	if len(m.hidden)+len(m.below) == 0 {
		source, err := m.Open()
		if err != nil {
			return err
		}
		defer source.Close()
		return copySource(ctx, source, o, to)
	}
	return runAside(func() (err error) {
		place := to + ".shown"
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(place)) }()
		if err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=700"); err != nil {
			return fmt.Errorf("mount at %s: %w", place, err)
		}
		defer func() { err = errors.Join(err, unix.Unmount(place, unix.MNT_DETACH)) }() // nobody else has seen it
		pins := mounts.Pins{
			Mounts: slices.Concat([]engine.Mount{m.Mount}, m.hidden, m.below), Empty: filepath.Join(place, "empty"),
			At:        func(n int) string { return filepath.Join(place, strconv.Itoa(n)) },
			Elsewhere: func(n int) bool { return n > len(m.hidden) },
		}
		if err := errors.Join(os.Mkdir(pins.Empty, 0o555), pins.Pin()); err != nil { //nolint:gosec // copied as a directory with nothing in it
			return err
		}
		source, err := hostpath.Follow(pins.At(0))
		if err != nil {
			return err
		}
		defer source.Close()
		return copySource(ctx, source, o, to)
	})
}

// runAside runs f on a thread that has a mount namespace of its own, and ends with it.
func runAside(f func() error) error {
	done := make(chan error, 1)
	safego.Go(func() {
		done <- safego.Try(func() error {
			runtime.LockOSThread() // never unlocked: the namespace is the thread's
			if err := mounts.Alone(); err != nil {
				return err
			}
			return f()
		})
	})
	return <-done
}

// copySource copies, as copyFolder does, what was opened.
func copySource(ctx context.Context, source *hostpath.Path, o engine.Owner, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chown(o.HostUID, o.HostGID); err != nil {
		return err
	}
	argv := []string{"--quiet", "-x-1"}
	var st unix.Stat_t
	if err := unix.Fstat(source.Fd(), &st); err == nil && int(st.Uid) == o.HostUID && o.HostUID != 0 {
		argv = append(argv, "--force-uid="+strconv.Itoa(o.UID), "--force-gid="+strconv.Itoa(o.GID))
	}
	cmd := exec.CommandContext(ctx, mkfsImage(), append(argv, to, sourceFD+"/.")...)
	cmd.ExtraFiles = []*os.File{source.File()}
	cmd.Env, cmd.SysProcAttr = programEnvironment(), asOwner(o)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	// A sandbox that may write to the folder may have it grow after it was measured.
	bounded := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: mostImage, Max: mostImage}, nil)
	if bounded != nil {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); bounded != nil || err != nil {
		err, out := errors.Join(bounded, err), said.Bytes()
		return fault.Wrap(fault.ErrInvalid, err, "%s can't be copied into a machine by the user %d: %.300s", source.Name, o.HostUID, out)
	}
	return nil
}

// devices are the machine's, in the order of the plan, as the monitor sees them.
func (l layout) devices() []blockDevice {
	all := []blockDevice{{Serial: rootSerial, Path: inPlace(rootName), ReadOnly: true}}
	for n := range l.disks {
		all = append(all, blockDevice{Serial: diskName(n), Path: inPlace(ownName, diskName(n))})
	}
	for n := range l.images {
		all = append(all, blockDevice{Serial: copiedName(n), Path: inPlace(ownName, copiedName(n)), ReadOnly: true})
	}
	return all
}

// makeDisks makes the disks and images.
func (l layout) makeDisks(ctx context.Context, b bundle, o engine.Owner) error {
	for n, size := range l.disks {
		if _, err := os.Stat(b.diskFile(n)); err == nil {
			continue // it came with a copy
		}
		if err := makeDisk(ctx, b.diskFile(n), size); err != nil {
			return err
		}
	}
	for n, m := range l.images {
		if _, err := os.Stat(b.copied(n)); err == nil {
			continue
		}
		if err := copyFolder(ctx, m, o, b.copied(n)); err != nil {
			return err
		}
	}
	return nil
}

// giveToUser makes the monitor's folder and all in it the monitor's user's.
func (b bundle) giveToUser(uid int) error {
	entries, err := os.ReadDir(b.ownDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Lchown(filepath.Join(b.ownDir(), entry.Name()), uid, uid); err != nil {
			return fmt.Errorf("give the machine its files: %w", err)
		}
	}
	return os.Lchown(b.ownDir(), uid, uid)
}
