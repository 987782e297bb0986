package runc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/layer"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// Stage makes the mounts of the instance in a folder, in a mount namespace of its own, and
// becomes runc, which starts the container in it. It returns on errors only. Standard input
// and output are the container's.
func Stage(dir string) error {
	b := bundle{dir: dir}
	p, err := b.planned()
	if err != nil {
		return fmt.Errorf("the plan of %s: %w", dir, err)
	}
	runtime.LockOSThread() // never unlocked: the namespace is this thread's, until it becomes runc
	if err := mounts.Alone(); err != nil {
		return err
	}
	if err := p.layOut(context.Background(), b); err != nil { // who waits for the sandbox ends this process
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	argv := []string{p.Runc, "--root", p.Root, "run", "--detach", "--bundle", dir, p.ID}
	return fmt.Errorf("run %s: %w", p.Runc, unix.Exec(p.Runc, argv, runcEnvironment()))
}

// makeOwnDirs gives the place directories that are nobody's business on the host, and need no
// cleaning up.
func makeOwnDirs(place string) error {
	if err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=711"); err != nil {
		return fmt.Errorf("mount at %s: %w", place, err)
	}
	return nil
}

// runcEnvironment is runc's.
func runcEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// layOut lays everything out below the place.
func (p stagePlan) layOut(ctx context.Context, b bundle) error {
	at := layout{place: p.Place}
	if err := makeOwnDirs(p.Place); err != nil {
		return err
	}
	for i, d := range p.Disks {
		device, err := p.mountDisk(ctx, b.diskFile(i), at.diskDir(i), at.filesDir(i), d)
		if err == nil && i == 0 {
			err = b.rememberDevice(device)
		}
		if err != nil {
			return fmt.Errorf("a disk of %d bytes: %w", d.Bytes, err)
		}
	}
	if p.Upper != "" {
		if err := layer.Unpack(p.Upper, at.filesDir(0), p.owners()); err != nil {
			return fmt.Errorf("put the snapshot's files into a disk of %d bytes: %w", p.Disks[0].Bytes, err)
		}
	}
	if err := mounts.Template(p.Lower, at.lowerDir(), p.UIDs, p.GIDs); err != nil {
		return fmt.Errorf("the template %s: %w", p.Lower.Path, err)
	}
	if err := p.pinMounts(at); err != nil {
		return err
	}
	if err := p.mountRoot(at); err != nil || p.Upper == "" {
		return err
	}
	return checkPlaces(at.rootDir(), p.Mounts)
}

// checkPlaces refuses a root that a guest wrote, as a snapshot's is, in which a place that runc
// mounts at is no directory or leads through a link. While the guest ran such places were
// covered, so that it can't have made one; runc has been led astray by links there more than
// once. A place that is missing is made by runc.
func checkPlaces(root string, shown []engine.Mount) error {
	top, err := hostpath.Follow(root)
	if err != nil {
		return err
	}
	defer top.Close()
	places := []string{"/proc", "/dev", "/sys"}
	for _, m := range shown {
		places = append(places, m.Destination)
	}
	for n, place := range places {
		want := hostpath.Identity{}
		if n < 3 { // the kernel's own
			want.Type = hostpath.Dir
		}
		at, err := top.Below(strings.TrimPrefix(place, "/"), want)
		switch {
		case err == nil:
			at.Close()
		case !errors.Is(err, os.ErrNotExist):
			return fault.Wrap(fault.ErrInvalid, err, "the snapshot's files can't be used: %s is not what a sandbox has there, and something is to be mounted at it", place)
		}
	}
	return nil
}

// pinMounts lays what is shown of the host at places of its own, with its owners mapped, and with
// what is mounted below it.
func (p stagePlan) pinMounts(at layout) error {
	if err := os.Mkdir(at.emptyDir(), 0o555); err != nil { //nolint:gosec // shown as a directory with nothing in it
		return err
	}
	pins := mounts.Pins{Mounts: p.Mounts, At: at.bindPlace, Empty: at.emptyDir()}
	if p.BindUID.Size > 0 {
		pins.Owners = p.bindOwners
	}
	return pins.Pin()
}

// checkOwners refuses what bindOwners can't show.
func (p stagePlan) checkOwners(spec engine.Spec) error {
	if p.BindUID.Size == 0 {
		return nil
	}
	return mounts.CheckOwners(spec.Mounts, p.bindOwners)
}

// bindOwners shows the owner of what is mounted as the sandbox's user.
func (p stagePlan) bindOwners(root unix.Stat_t) mounts.Translation {
	shown := mounts.ShownOwner(engine.Owner{UID: int(p.BindUID.HostID), HostUID: int(p.BindUID.ContainerID), HostGID: int(p.BindGID.ContainerID)}, root)
	return mounts.Translation{
		UIDs: []specs.LinuxIDMapping{mapOneID(shown.HostUID, int(p.BindUID.HostID))},
		GIDs: []specs.LinuxIDMapping{mapOneID(shown.HostGID, int(p.BindGID.HostID))},
	}
}

// mountDisk makes the file system in a file, mounts it and gives it to the sandbox's root.
// It returns the device that the file is behind.
func (p stagePlan) mountDisk(ctx context.Context, file, at, files string, d cappedDisk) (device string, err error) {
	if err := p.Blanks.Make(ctx, file, d.Bytes); err != nil {
		return "", err
	}
	if err := os.Mkdir(at, 0o711); err != nil { //nolint:gosec // The sandbox's users pass through.
		return "", err
	}
	if device, err = mounts.Loop(file, at, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME); err != nil {
		return "", err
	}
	// The mount is all that needs the file. Its blocks go with the last of the namespaces.
	if err := os.Remove(file); err != nil {
		return "", err
	}
	if err := os.Mkdir(files, 0o700); err != nil {
		return "", err
	}
	return device, errors.Join(
		os.Chown(files, identity.HostID(p.UIDs, 0), identity.HostID(p.GIDs, 0)),
		unix.Chmod(files, d.Mode),
	)
}

// mountRoot lays the writable layer over the template.
func (p stagePlan) mountRoot(at layout) error {
	work := filepath.Join(at.diskDir(0), "work")
	if err := errors.Join(os.Mkdir(work, 0o700), os.Mkdir(at.rootDir(), 0o755)); err != nil { //nolint:gosec // a mount lies over it
		return err
	}
	// By names from here: the sandbox reads the options in its own table of mounts.
	if err := os.Chdir(at.place); err != nil {
		return err
	}
	upper, err := filepath.Rel(at.place, at.filesDir(0))
	if err != nil {
		return err
	}
	if work, err = filepath.Rel(at.place, work); err != nil {
		return err
	}
	// The layer's content is to mean the same in a copy of it, on whatever kernel.
	options := "redirect_dir=nofollow,metacopy=off,index=off,lowerdir=" + filepath.Base(at.lowerDir()) + ",upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("overlay", at.rootDir(), "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("lay the writable layer over the template: %w", err)
	}
	return nil
}

// cloned tells whether a process is runc's copy of itself in memory.
func cloned(pid int) bool {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil && len(path) > 11 && path[:11] == "/memfd:runc"
}
