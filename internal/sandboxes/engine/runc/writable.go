package runc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/layer"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// writable is where the root's writable layer is, while the instance lives: behind a loop
// device, whose file has no name any more.
type writable struct {
	Device string `json:"device"`
	// The file behind the device: a later device with the same name has another.
	Dev   uint64 `json:"dev"`
	Inode uint64 `json:"inode"`
}

func (b bundle) device() string { return filepath.Join(b.dir, "writable.json") }

// rememberDevice notes the device of the root's writable layer.
func (b bundle) rememberDevice(device string) error {
	behind, err := backing(device)
	if err != nil {
		return err
	}
	data, err := json.Marshal(writable{Device: device, Dev: behind.Device, Inode: behind.Inode})
	if err != nil {
		return err
	}
	return os.WriteFile(b.device(), data, 0o600)
}

func (b bundle) writable() (w writable, err error) {
	data, err := os.ReadFile(b.device())
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	return w, err
}

func (b bundle) planned() (p stagePlan, err error) {
	data, err := os.ReadFile(b.planFile())
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}

func backing(device string) (*unix.LoopInfo64, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.IoctlLoopGetStatus64(int(f.Fd()))
}

// Keep writes the root's writable layer of an instance that stands still to a snapshot's
// folder. Like a stage it has a mount namespace of its own, with which its mounts go.
func Keep(dir, image string) error {
	b := bundle{dir: dir}
	p, err := b.planned()
	if err != nil {
		return err
	}
	w, err := b.writable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // never unlocked: the namespace is this thread's
	if err := mounts.Alone(); err != nil {
		return err
	}
	at := layout{place: p.Place}
	if err := makeOwnDirs(p.Place); err != nil {
		return err
	}
	if err := os.Mkdir(at.diskDir(0), 0o700); err != nil {
		return err
	}
	// The device's file system is mounted already; this is one more view of it.
	if err := unix.Mount(w.Device, at.diskDir(0), "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount the writable layer: %w", err)
	}
	// A mounted file system keeps its device: only now is it known for sure which it is.
	if behind, err := backing(w.Device); err != nil || behind.Device != w.Dev || behind.Inode != w.Inode {
		return errors.Join(fmt.Errorf("%s is another's by now: the sandbox has ended", w.Device), err)
	}
	return layer.Pack(at.filesDir(0), filepath.Join(image, upperName), p.owners())
}

func (p stagePlan) owners() layer.Owners { return layer.Owners{UIDs: p.UIDs, GIDs: p.GIDs} }
