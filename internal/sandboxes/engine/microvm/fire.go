package microvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel/resumable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

// fire is the monitor Firecracker, which needs hardware. Its machines' channel is a socket on
// which the agent waits: nobody else in a machine may wait on a port below 1024, and there is
// nothing on the host to which a machine could connect.
type fire struct{ program string }

var _ monitor = fire{}

// Names in the monitor's root and in the folders of an instance and an image.
const (
	monitorName = "monitor"
	vsockName   = "vsock"
	arriveName  = "arrive"
	memoryName  = "memory"
	lineName    = "line.json" // the state of the channel

	channelPort = 1000
)

func (f fire) askVersion(ctx context.Context) (string, error) {
	return firecracker.Program(ctx, f.program)
}

func (fire) modules() []string { return []string{"vmw_vsock_virtio_transport", "virtio_rng"} }
func (fire) vsockPort() uint32 { return channelPort }
func (fire) unnamed() bool     { return true } // a disk's serial is made up of its file's number

func (fire) dialControls(ctx context.Context, b bundle) (controls, error) {
	socket, closed, err := b.reachable(socketName)
	if err != nil {
		return nil, err
	}
	client, err := firecracker.Dial(ctx, socket)
	if err != nil {
		closed()
		return nil, err
	}
	return fireControls{client: client, carrier: carrier{b}, closed: closed}, nil
}

// fireControls are the monitor's, and those of what carries the channel.
type fireControls struct {
	client  *firecracker.Client
	carrier carrier
	closed  func()
}

func (c fireControls) Close() error {
	defer c.closed()
	return c.client.Close()
}

// Begin boots the machine. The kernel restarts where it would switch off, which ends the
// monitor.
func (c fireControls) Begin(ctx context.Context, m machine) error {
	drives := make([]firecracker.Drive, 0, len(m.Disks))
	for _, d := range m.Disks {
		drives = append(drives, firecracker.Drive{ID: strings.ReplaceAll(d.Serial, "-", "_"), Path: d.Path, ReadOnly: d.ReadOnly})
	}
	within, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	err := c.client.Boot(within, firecracker.Machine{
		CPUs: m.CPUs, MiB: m.MiB, Kernel: m.Kernel, Initrd: m.Initrd, Drives: drives, Socket: inPlace(ownName, vsockName),
		Arguments: "console=ttyS0 quiet reboot=k panic=-1 i8042.noaux i8042.nomux i8042.dumbkbd rdinit=" + boot.Program + " random.trust_cpu=on",
	})
	if err != nil {
		return err
	}
	return c.carrier.tellCarrier(ctx, carrierCall{Do: carryOn}, nil)
}

func (c fireControls) Stop(ctx context.Context) error {
	return c.turnState(ctx, firecracker.Paused, c.client.Pause)
}

// Continue has the channel connect again: what was written down has lost its connections, and
// with it the machine of which it is.
func (c fireControls) Continue(ctx context.Context) error {
	if err := c.turnState(ctx, firecracker.Running, c.client.Resume); err != nil {
		return err
	}
	return c.carrier.tellCarrier(ctx, carrierCall{Do: carryOn}, nil)
}

// turnState has a machine be in a state, unless it is.
func (c fireControls) turnState(ctx context.Context, to string, turn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	state, err := c.client.State(ctx)
	if err != nil || state == to {
		return err
	}
	return turn(ctx)
}

// Write has the channel held, the monitor write the machine to its own folder, and takes the
// files from there.
func (c fireControls) Write(ctx context.Context, b bundle, _ machine, dir string) error {
	var line resumable.State
	if err := c.carrier.tellCarrier(ctx, carrierCall{Do: carryHold}, &line); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what the sandbox says is not read")
	}
	names := []string{machineName, memoryName}
	var errs []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(b.ownDir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, c.client.Save(ctx, inPlace(ownName, machineName), inPlace(ownName, memoryName)))
	for _, name := range names {
		if errors.Join(errs...) == nil {
			errs = append(errs, takeFile(filepath.Join(b.ownDir(), name), filepath.Join(dir, name)))
		}
		_ = os.Remove(filepath.Join(b.ownDir(), name)) // what was not taken is of no use
	}
	return errors.Join(append(errs, saveJSON(filepath.Join(dir, lineName), line))...)
}

// Read has the machine be what was written, whose files the stage shows to the monitor.
func (c fireControls) Read(ctx context.Context, _ machine, dir string) error {
	var line resumable.State
	if err := loadJSON(filepath.Join(dir, lineName), &line); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	if err := c.client.Load(within, inPlace(arriveName, machineName), inPlace(arriveName, memoryName)); err != nil {
		return err
	}
	return c.carrier.tellCarrier(ctx, carrierCall{Do: carryFrom, State: &line}, nil)
}

// takeFile moves a file of the monitor's into an image, where monitors may read it. The monitor
// can have put anything in its place.
func takeFile(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.ErrUnavailable, "the monitor wrote no file to %s", from)
	}
	if err := errors.Join(f.Chown(os.Geteuid(), os.Getegid()), f.Chmod(0o444)); err != nil {
		return err
	}
	err = os.Rename(from, to)
	if !errors.Is(err, unix.EXDEV) {
		return errors.Join(err, sameFile(to, info))
	}
	copied, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444) //nolint:gosec // monitors read it, in a folder that only root enters
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, f) // the kernel's own copy, where both file systems have one
	if err = errors.Join(err, copied.Close()); err != nil {
		err = errors.Join(err, os.Remove(to)) // a part of it is of no use
	}
	return err
}

// sameFile: what was moved is what was looked at.
func sameFile(path string, info os.FileInfo) error {
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, info) {
		return errors.Join(err, fault.New(fault.ErrUnavailable, "the monitor changed %s while it was taken", filepath.Base(path)))
	}
	return nil
}

// confined wants the monitor's own filters of system calls on what serves the machine: the
// main thread and the processors'. Only releases of Firecracker have them built in.
func (f fire) confined(pid int) error {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(tasks, entry.Name(), "status"))
		if err != nil {
			return err
		}
		if entry.Name() != strconv.Itoa(pid) && !strings.HasPrefix(string(data), "Name:\tfc_vcpu") {
			continue
		}
		if !strings.Contains(string(data), "\nSeccomp:\t2\n") {
			return fault.New(fault.ErrUnavailable, "%s runs a machine without its filter of system calls: install a release of Firecracker, which has one", f.program)
		}
	}
	return nil
}

// carrier is what carries a channel, as its stage tells it what to do.
type carrier struct{ b bundle }

// The words that a carrier is told.
const (
	carryOn   = "on"   // connect, or do again
	carryHold = "hold" // lose the connection, and say where the channel is
	carryFrom = "from" // be where another was
)

// carrierCall is a line of JSON; the answer is another.
type carrierCall struct {
	Do    string           `json:"do"`
	State *resumable.State `json:"state,omitempty"`
}

type carrierAnswer struct {
	Error string           `json:"error,omitempty"`
	State *resumable.State `json:"state,omitempty"`
}

// mostCarried bounds a line.
const mostCarried = 1 << 20

// tellCarrier tells it something. The state that it answers with goes to state.
func (c carrier) tellCarrier(ctx context.Context, call carrierCall, state *resumable.State) error {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	conn, err := c.dialControl(ctx)
	if err != nil {
		return fmt.Errorf("what carries the channel: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	var answer carrierAnswer
	err = errors.Join(conn.SetDeadline(deadline), json.NewEncoder(conn).Encode(call))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(conn, mostCarried)).Decode(&answer)
	}
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err == nil && state != nil {
		if answer.State == nil {
			return errors.New("what carries the channel does not say where it is")
		}
		*state = *answer.State
	}
	if err != nil {
		return fmt.Errorf("what carries the channel: %w", err)
	}
	return nil
}
