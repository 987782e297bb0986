// Package boot is the first program of a sandbox that has a kernel of its own: it loads the
// kernel's modules, lays out the file systems, takes away what the agent must not have, and
// becomes the agent, with the channel as its stdin and stdout.
package boot

// The files of the first root file system.
const (
	// Program is the path by which the kernel starts it.
	Program = "/init"
	// MachineFile is the Machine, in JSON.
	MachineFile = "/machine.json"
	// ModuleDir has the kernel's modules, and FileDir files that are shown as they are.
	ModuleDir = "/modules"
	FileDir   = "/files"
	// Port is the name of the virtio port that is the channel.
	Port = "cofferdam"
)

// Machine is what the host wrote down for the program, in a file of the first root file
// system. A serial is the name by which the host calls a block device.
type Machine struct {
	Modules []string `json:"modules"` // names in ModuleDir, in the order in which they are loaded
	Root    string   `json:"root"`    // serial of the template's device (EROFS)
	Scratch string   `json:"scratch"` // serial of the disk (ext4) behind the root's writable layer
	// Devices are the serials in the order in which the machine has its devices, of a host
	// that does not tell the machine; else none.
	Devices []string `json:"devices,omitempty"`
	Mounts  []Mount  `json:"mounts"` // in order
	Init    []string `json:"init"`   // the agent's argv
	Env     []string `json:"env"`
	// Vsock is the port on which the agent waits for the host to bring its channel, below
	// 1024, where nobody else in the sandbox may listen; 0: the channel is the virtio port.
	Vsock uint32 `json:"vsock,omitempty"`
	// Hostname until the agent is told another.
	Hostname string `json:"hostname"`
	// Network: it has a network device, which only the weak machines of tests have.
	Network bool `json:"network,omitempty"`
	// Tasks bounds all processes and threads of the machine, beside the kernel's own.
	Tasks int `json:"tasks"`
	// NProc is the agent's own limit of processes of a user, Files that of open files.
	NProc uint64 `json:"nproc"`
	Files uint64 `json:"files"`
}

// Kind is the form of a mount.
type Kind string

// The forms.
const (
	Disk   Kind = "disk"   // a device with ext4 of the sandbox's own
	Image  Kind = "image"  // a device with EROFS, read-only
	Memory Kind = "memory" // a tmpfs
	File   Kind = "file"   // a file of FileDir, read-only
)

// Mount is a file system, or a file, that the sandbox sees.
type Mount struct {
	Kind        Kind   `json:"kind"`
	Destination string `json:"destination"`
	Source      string `json:"source,omitempty"` // a serial, or a name in FileDir
	Bytes       int64  `json:"bytes,omitempty"`  // of memory
	Mode        uint32 `json:"mode,omitempty"`   // of a disk's or memory's top directory
	ReadOnly    bool   `json:"read_only,omitempty"`
}
