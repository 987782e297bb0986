package firecracker

import (
	"context"
	"net/http"
)

// GuestCID is the machine's own address of its socket to the host.
const GuestCID = 3

// Machine is what is to be booted.
type Machine struct {
	CPUs      int
	MiB       int64
	Kernel    string // an ELF image, not a compressed one
	Initrd    string
	Arguments string  // the kernel's
	Drives    []Drive // block devices, in the order in which the machine has them
	Socket    string  // of the host's end of the machine's socket
}

// Drive is a block device.
type Drive struct {
	ID       string // [a-z0-9_]
	Path     string
	ReadOnly bool
}

// States of a machine.
const (
	Running = "Running"
	Paused  = "Paused"
)

// State is that of the machine, or "Not started".
func (c *Client) State(ctx context.Context) (string, error) {
	var info struct {
		State string `json:"state"`
	}
	err := c.callAPI(ctx, http.MethodGet, "/", nil, &info)
	return info.State, err
}

// Boot describes a machine and starts it. It has no network, and entropy of the host's.
func (c *Client) Boot(ctx context.Context, m Machine) error {
	if err := c.describeMachine(ctx, m); err != nil {
		return err
	}
	return c.putChange(ctx, "/actions", struct {
		Type string `json:"action_type"`
	}{"InstanceStart"})
}

func (c *Client) describeMachine(ctx context.Context, m Machine) error {
	if err := c.putChange(ctx, "/machine-config", struct {
		CPUs int   `json:"vcpu_count"`
		MiB  int64 `json:"mem_size_mib"`
	}{m.CPUs, m.MiB}); err != nil {
		return err
	}
	if err := c.putChange(ctx, "/boot-source", struct {
		Kernel    string `json:"kernel_image_path"`
		Initrd    string `json:"initrd_path"`
		Arguments string `json:"boot_args"`
	}{m.Kernel, m.Initrd, m.Arguments}); err != nil {
		return err
	}
	for _, d := range m.Drives {
		if err := c.putChange(ctx, "/drives/"+d.ID, struct {
			ID       string `json:"drive_id"`
			Path     string `json:"path_on_host"`
			Root     bool   `json:"is_root_device"`
			ReadOnly bool   `json:"is_read_only"`
		}{ID: d.ID, Path: d.Path, ReadOnly: d.ReadOnly}); err != nil {
			return err
		}
	}
	if err := c.putChange(ctx, "/vsock", struct {
		CID  int    `json:"guest_cid"`
		Path string `json:"uds_path"`
	}{GuestCID, m.Socket}); err != nil {
		return err
	}
	return c.putChange(ctx, "/entropy", struct{}{})
}

// Pause has a machine that runs stand still.
func (c *Client) Pause(ctx context.Context) error { return c.turnState(ctx, Paused) }

// Resume has one that stands still go on.
func (c *Client) Resume(ctx context.Context) error { return c.turnState(ctx, "Resumed") }

func (c *Client) turnState(ctx context.Context, to string) error {
	return c.callAPI(ctx, http.MethodPatch, "/vm", struct {
		State string `json:"state"`
	}{to}, nil)
}

// Save writes a machine that stands still: its devices to one file, its memory to another.
// All connections of its socket are lost with that.
func (c *Client) Save(ctx context.Context, state, memory string) error {
	return c.putChange(ctx, "/snapshot/create", struct {
		Type   string `json:"snapshot_type"`
		State  string `json:"snapshot_path"`
		Memory string `json:"mem_file_path"`
	}{"Full", state, memory})
}

// Load makes the machine, which stands still then, of what Save wrote: its memory is the file
// itself, read where it is needed and shared with who else has it; what is written stays the
// machine's own. The machine's clock is the host's.
func (c *Client) Load(ctx context.Context, state, memory string) error {
	type backend struct {
		Type string `json:"backend_type"`
		Path string `json:"backend_path"`
	}
	return c.putChange(ctx, "/snapshot/load", struct {
		State  string  `json:"snapshot_path"`
		Memory backend `json:"mem_backend"`
		Resume bool    `json:"resume_vm"`
		Clock  bool    `json:"clock_realtime"`
	}{State: state, Memory: backend{"File", memory}, Clock: true})
}
