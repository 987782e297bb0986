package microvm

import (
	"context"
	"os"
	"time"
)

// machine is what a monitor runs.
type machine struct {
	Name     string `json:"name"` // an argument of the monitor's process: the instance's folder
	Kernel   string `json:"kernel"`
	Initrd   string `json:"initrd"`
	MiB      int64  `json:"mib"`
	CPUs     int    `json:"cpus"`
	Hardware bool   `json:"hardware"` // by KVM
	Disks    []disk `json:"disks"`
	Socket   string `json:"socket"` // of the monitor's controls
	// Arriving: it starts with what another machine's Save wrote, and stands still until then.
	Arriving bool `json:"arriving,omitempty"`
	// Network: with a network device, by which it has all of the host's network that the
	// monitor has. Only the weak machines of tests have one.
	Network bool `json:"network,omitempty"`
	// KHz is the rate of the host's time stamp counter, which spares an emulated kernel to
	// find it out; 0 for unknown.
	KHz int `json:"khz,omitempty"`
}

// disk is a block device of a machine.
type disk struct {
	Serial   string `json:"serial"` // [a-z0-9-]{1,20}
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// monitor is a program that runs machines, whose channel is its stdin and stdout.
type monitor interface {
	// version is what the program says it is; an error if it can't run.
	version(ctx context.Context) (string, error)
	// command is the argv that runs a machine.
	command(m machine) []string
	// dial connects to the controls of a machine that runs.
	dial(ctx context.Context, socket string) (controls, error)
}

// controls are those of one machine. Each ends with its context.
type controls interface {
	Close() error
	// Stop has the machine stand still, Continue go on.
	Stop(ctx context.Context) error
	Continue(ctx context.Context) error
	// Save writes memory and devices, not disks, of a machine that stands still; Load reads
	// them into one that is Arriving.
	Save(ctx context.Context, to *os.File) error
	Load(ctx context.Context, from *os.File) error
}

// ask bounds one answer of a monitor's.
const ask = 30 * time.Second
