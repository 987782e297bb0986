package microvm

import (
	"context"
	"os"
	"time"
)

// machine is what a monitor runs.
type machine struct {
	Name     string        `json:"name"` // an argument of the monitor's process: the instance's folder
	Kernel   string        `json:"kernel"`
	Initrd   string        `json:"initrd"`
	MiB      int64         `json:"mib"`
	CPUs     int           `json:"cpus"`
	Hardware bool          `json:"hardware"` // by KVM
	Disks    []blockDevice `json:"disks"`
	Socket   string        `json:"socket"` // of the monitor's controls
	// Arriving: it starts with what another machine's Save wrote, and stands still until then.
	Arriving bool `json:"arriving,omitempty"`
	// Shared: its memory is a file in the monitor's root, which the stage copies. Machines of
	// older versions have none; neither have Firecracker's, which copies it itself.
	Shared bool `json:"shared,omitempty"`
	// Network: with a network device, by which it has all of the host's network that the
	// monitor has. Only the weak machines of tests have one.
	Network bool `json:"network,omitempty"`
	// KHz is the rate of the host's time stamp counter, which spares an emulated kernel to
	// find it out; 0 for unknown.
	KHz int `json:"khz,omitempty"`
}

// blockDevice is a block device of a machine.
type blockDevice struct {
	Serial   string `json:"serial"` // [a-z0-9-]{1,20}
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// monitor is a program that runs machines.
type monitor interface {
	// askVersion is what the program says it is; an error if it can't run.
	askVersion(ctx context.Context) (string, error)
	// modules are those of the kernel that the machine's channel needs, and vsock the port on
	// which its agent waits for it; 0 if it is no such channel.
	modules() []string
	vsockPort() uint32
	// unnamed: it does not tell its machines the serials of their disks, which come in the
	// order of the plan.
	unnamed() bool
	// kernelImage is the file of a kernel that it boots, which it may make in a directory.
	kernelImage(k kernel, dir string) (string, error)
	// startMonitor starts the monitor of a plan, shut in, and what it needs beside; the monitor is
	// the first.
	startMonitor(b bundle, p stagePlan, groups []string) ([]*os.Process, error)
	// dialControls connects to the controls of a machine.
	dialControls(ctx context.Context, b bundle) (controls, error)
	// confined tells whether a monitor that runs has what holds it that is its own to put on.
	confined(pid int) error
}

// Kinds of monitors.
const (
	kindQEMU        = "qemu"
	kindFirecracker = "firecracker"
)

// monitor is the one that runs a plan's machine.
func (p stagePlan) monitor() monitor { return monitorOf(p.Kind, p.Program) }

func monitorOf(kind, program string) monitor {
	if kind == kindFirecracker {
		return fire{program: program}
	}
	return qemu{program: program}
}

// controls are those of one machine. Each ends with its context.
type controls interface {
	Close() error
	// Begin has a machine run that is no copy.
	Begin(ctx context.Context, m machine) error
	// Stop has the machine stand still, Continue go on.
	Stop(ctx context.Context) error
	Continue(ctx context.Context) error
	// Write writes memory, devices and the channel's state, not disks, of a machine that
	// stands still to an image's folder; Read reads them into one that is Arriving, which
	// stands still then. Memory that is Shared the stage has laid out before.
	Write(ctx context.Context, b bundle, m machine, dir string) error
	Read(ctx context.Context, m machine, dir string) error
}

// ask bounds one answer of a monitor's.
const ask = 30 * time.Second
