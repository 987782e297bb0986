package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// labelProbe names the process that a probe's container is for: without it, it is nobody's.
const labelProbe = "dev.cofferdam.probe"

// probePrefix begins the ids of probes; no sandbox's does.
const probePrefix = "probe-"

// probeTimeout bounds one probe: a runtime with a machine of its own takes a while.
const probeTimeout = time.Minute

// mostSeen bounds what a probe may say.
const mostSeen = 64 << 10

// seen is what a probe says of the container that it is in.
type seen struct {
	Kernel     string   `json:"kernel"`     // its release and version
	Interfaces []string `json:"interfaces"` // those that are up
	Written    bool     `json:"written"`    // the root could be written to
	Status     string   `json:"status"`     // of the process, as the kernel tells it
}

// Probe says what it sees, in a container of a probe.
func Probe(to io.Writer) error {
	s := seen{Kernel: hostKernel()}
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		// Kernels have tunnels that lead nowhere in every new namespace.
		if i.Flags&net.FlagUp != 0 {
			s.Interfaces = append(s.Interfaces, i.Name)
		}
	}
	if f, err := os.Create("/written"); err == nil {
		s.Written = true
		_ = f.Close()
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	s.Status = string(status)
	return json.NewEncoder(to).Encode(s)
}

// hostKernel is the kernel that answers this process.
func hostKernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "" // it takes a pointer to the stack, and can't fail
	}
	return unix.ByteSliceToString(name.Release[:]) + " " + unix.ByteSliceToString(name.Version[:])
}

// checkSeen tells what a container must show and does not.
func (s seen) checkSeen() error {
	for _, name := range s.Interfaces {
		if name != "lo" {
			return fmt.Errorf("its container has the network interface %.40q", name)
		}
	}
	if s.Written {
		return errors.New("its container writes to a read-only root")
	}
	if s.Kernel == hostKernel() && (s.seenField("NoNewPrivs") != "1" || s.seenField("Seccomp") != "2") {
		return errors.New("its container is not behind a filter of system calls, or may gain privileges")
	}
	return nil
}

func (s seen) seenField(name string) string {
	for line := range strings.Lines(s.Status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// probeRuntime runs a container under a runtime as sandboxes are, and returns what it saw.
func (e *Engine) probeRuntime(ctx context.Context, s service, name string) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	folder, err := os.MkdirTemp("", "cofferdam-probe-")
	if err != nil {
		return seen{}, err
	}
	defer os.RemoveAll(folder)
	number := make([]byte, 6)
	_, _ = rand.Read(number) // it never fails
	spec := engine.Spec{
		ID: probePrefix + hex.EncodeToString(number), Hostname: "probe", Root: engine.Root{Kind: engine.RootDir, Path: filepath.Join(folder, "root")},
		Init: append([]string{"/.cofferdam/probe"}, e.cfg.Probe[1:]...), Owner: engine.Owner{UID: 1000, GID: 1000, HostUID: nobodysID - 1, HostGID: nobodysID - 1},
		Mounts: []engine.Mount{{Source: e.cfg.Probe[0], Destination: "/.cofferdam/probe", ReadOnly: true}},
		Limits: engine.Limits{CPU: 1, MemoryBytes: 256 << 20, DiskBytes: 16 << 20, Pids: 64},
	}
	if err := os.Mkdir(spec.Root.Path, 0o755); err != nil { //nolint:gosec // a root
		return seen{}, err
	}
	found, err := e.lookInside(ctx, s, spec, runtimeOf{name: name}, folder)
	clean := context.WithoutCancel(ctx)
	return found, errors.Join(err, e.removeContainers(clean, spec.ID), e.takeGround(clean, spec.ID))
}

// lookInside makes a probe's container, starts it and reads what it says.
func (e *Engine) lookInside(ctx context.Context, s service, spec engine.Spec, r runtimeOf, folder string) (seen, error) {
	if err := os.MkdirAll(e.cfg.StateDir, 0o700); err != nil {
		return seen{}, err
	}
	id, err := e.createContainer(ctx, spec, r, folder, "")
	if err != nil {
		return seen{}, err
	}
	stream, err := s.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return seen{}, err
	}
	defer stream.Close()
	defer safego.When(ctx, stream.Close)()
	if _, err := s.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return seen{}, err
	}
	var out, said bytes.Buffer
	_, err = stdcopy.StdCopy(&boundedLog{left: mostSeen, to: &out}, &boundedLog{left: mostTold, to: &said}, stream.Reader)
	if ctx.Err() != nil { // its end closed the stream
		return seen{}, fmt.Errorf("its container did not say what it sees within %s: %w", probeTimeout, ctx.Err())
	}
	if err != nil {
		return seen{}, err
	}
	var found seen
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return seen{}, fmt.Errorf("its container does not run: %.200q %.200q", out.String(), said.String())
	}
	return found, nil
}

// prober is the value of labelProbe for this process.
func prober() string {
	id, err := process.Self()
	if err != nil {
		return "0 0"
	}
	return fmt.Sprint(id.Pid, " ", id.Start)
}

// probing tells whether a label's process is still there.
func probing(label string) bool {
	var id process.ID
	if _, err := fmt.Sscan(label, &id.Pid, &id.Start); err != nil {
		return false
	}
	return id.Is()
}
