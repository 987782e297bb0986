package firecracker_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker/firecrackertest"
)

// realVariable names a real Firecracker, on a host whose KVM runs at least a toy.
const realVariable = "COFFERDAM_FIRECRACKER"

func TestMain(m *testing.M) {
	if firecrackertest.Is(os.Args) {
		os.Exit(firecrackertest.Program(os.Args))
	}
	os.Exit(m.Run())
}

// TestDriver has the driver's calls made of a monitor that knows what is known of the API, and
// of a real one where there is one.
func TestDriver(t *testing.T) {
	t.Run("as described", func(t *testing.T) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		dir := short(t)
		hardware := firecrackertest.NewHardware(t, dir, 1000, func(string, bool) *exec.Cmd { return exec.Command("/bin/cat") })
		t.Setenv(firecrackertest.DeviceVariable, hardware.Device)
		testDriver(t, self)
		if loads := hardware.Loads(); len(loads) != 2 || loads[0] != loads[1] {
			t.Errorf("the hardware was to load %q", loads)
		}
	})
	t.Run("a real one", func(t *testing.T) {
		program := os.Getenv(realVariable)
		if program == "" {
			t.Skipf("NOT TRIED with a real Firecracker: %s names none", realVariable)
		}
		testDriver(t, program)
	})
}

// short is a directory with a name that is short enough for sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fc") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// started is a monitor that runs.
type started struct {
	*firecracker.Client

	cmd *exec.Cmd
	out *bytes.Buffer
}

func start(t *testing.T, program, id string) started {
	t.Helper()
	socket := filepath.Join(short(t), "api")
	argv := firecracker.Command(program, socket, id)
	s := started{cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), out: &bytes.Buffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		client, err := firecracker.Dial(ctx, socket)
		if err == nil {
			s.Client = client
			t.Cleanup(func() { _ = client.Close() })
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v\n%s", err, s.out)
		}
	}
}

func testDriver(t *testing.T, program string) {
	t.Helper()
	if version, err := firecracker.Program(t.Context(), program); err != nil || !strings.HasPrefix(version, "Firecracker v1.") {
		t.Fatalf("%q, %v", version, err)
	}
	dir := short(t)
	machine := func(name string) firecracker.Machine {
		own := filepath.Join(dir, name)
		kernel, disk, first := filepath.Join(own, "kernel"), filepath.Join(own, "disk"), filepath.Join(own, "first")
		if err := errors.Join(os.Mkdir(own, 0o700), os.WriteFile(kernel, toyKernel(), 0o600), os.WriteFile(first, make([]byte, 512), 0o600),
			os.WriteFile(disk, make([]byte, 1<<20), 0o600)); err != nil {
			t.Fatal(err)
		}
		return firecracker.Machine{
			CPUs: 1, MiB: 128, Kernel: kernel, Initrd: first, Arguments: "quiet", Socket: filepath.Join(own, "vsock"),
			Drives: []firecracker.Drive{{ID: "template", Path: disk, ReadOnly: true}, {ID: "disk_0", Path: disk}},
		}
	}
	state, memory := filepath.Join(dir, "state"), filepath.Join(dir, "memory")
	source := testSource(t, program, machine("source"), state, memory)
	testRefused(t, program, machine("refused"), state)
	for _, id := range []string{"one", "two"} { // the monitor before had the socket's name
		if err := os.Remove(filepath.Join(dir, "source", "vsock")); err != nil {
			t.Fatal(err)
		}
		copied := start(t, program, id)
		if err := copied.Load(t.Context(), state, memory); err != nil {
			t.Fatalf("%v\n%s", err, copied.out)
		}
		is(t, copied, firecracker.Paused)
		if err := copied.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		is(t, copied, firecracker.Running)
	}
	is(t, source, firecracker.Running)
	other := start(t, program, "other")
	if err := os.WriteFile(state, []byte("of another version"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, other.Load(t.Context(), state, memory), "Load snapshot error: ")
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	says(t, other.Load(t.Context(), state, memory), "Load snapshot error: ")
	if program != os.Getenv(realVariable) { // a real one may end with the first refusal of a load
		early := start(t, program, "early")
		says(t, early.Load(t.Context(), memory, state), "Load snapshot error: ")
	}
}

// testSource boots a machine, which is written down and goes on.
func testSource(t *testing.T, program string, m firecracker.Machine, state, memory string) started {
	t.Helper()
	s := start(t, program, "source")
	is(t, s, "Not started")
	if err := s.Boot(t.Context(), m); err != nil {
		t.Fatalf("%v\n%s", err, s.out)
	}
	is(t, s, firecracker.Running)
	if err := errors.Join(s.Pause(t.Context()), s.Save(t.Context(), state, memory)); err != nil {
		t.Fatalf("%v\n%s", err, s.out)
	}
	is(t, s, firecracker.Paused)
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(t, s, firecracker.Running)
	return s
}

// testRefused makes calls that a monitor refuses, in its own words.
func testRefused(t *testing.T, program string, m firecracker.Machine, state string) {
	t.Helper()
	s := start(t, program, "refused")
	says(t, s.Pause(t.Context()), "not supported before starting the microVM")
	bad := m
	bad.CPUs = 0
	says(t, s.Boot(t.Context(), bad), "Machine config error: The number of vCPUs must be greater than 0, less than 32 and must be 1 or an even number if SMT is enabled.")
	bad = m
	bad.Kernel += "-absent"
	says(t, s.Boot(t.Context(), bad), "Boot source error: The kernel file cannot be opened: No such file or directory (os error 2)")
	says(t, s.Load(t.Context(), state, state), "Load snapshot error: Loading a microVM snapshot not allowed after configuring boot-specific resources.")
	if err := s.Boot(t.Context(), m); err != nil {
		t.Fatalf("%v\n%s", err, s.out)
	}
	says(t, s.Boot(t.Context(), m), "not supported after starting the microVM")
	says(t, s.Save(t.Context(), state+"-x", state+"-y"), "")
	_ = os.Remove(m.Socket)
	if err := unix.Kill(s.cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	err := s.Pause(t.Context())
	if _, refused := errors.AsType[*firecracker.Fault](err); err == nil || refused {
		t.Errorf("one that was killed answers: %v", err)
	}
}

// is wants a machine in a state.
func is(t *testing.T, s started, want string) {
	t.Helper()
	if got, err := s.State(t.Context()); err != nil || got != want {
		t.Errorf("the machine is %q (%v), not %q\n%s", got, err, want, s.out)
	}
}

// says wants a refusal in the monitor's words.
func says(t *testing.T, err error, words string) {
	t.Helper()
	refused, ok := errors.AsType[*firecracker.Fault](err)
	if !ok || !strings.Contains(refused.Message, words) {
		t.Errorf("%v, want a refusal that says %q", err, words)
	}
}

// toyKernel is an ELF image of which a processor does nothing, for ever.
func toyKernel() []byte {
	const at = 0x100000
	code := []byte{0xf4, 0xeb, 0xfd} // hlt, and again
	var b bytes.Buffer
	for _, part := range []any{
		[16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1},
		uint16(2), uint16(62), uint32(1), uint64(at), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(120), uint64(at), uint64(at), uint64(len(code)), uint64(len(code)), uint64(8), code,
	} {
		_ = binary.Write(&b, binary.LittleEndian, part) // to memory
	}
	return b.Bytes()
}

// TestPrograms: what is no Firecracker, or not one whose calls are known, says so.
func TestPrograms(t *testing.T) {
	for version, want := range map[string]string{
		"Firecracker v1.16.2": "", "Firecracker v1.16.10": "", "Firecracker v1.17.0-dev": "", "Firecracker v1.15.9": "need version 1.16.2",
		"Firecracker v1.16.1": "need version 1.16.2", "Firecracker v1.16": "is no Firecracker",
		"Firecracker v2.0.0": "need version 1.16.2", "QEMU emulator version 7.2": "is no Firecracker", "": "is no Firecracker",
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := firecracker.Program(t.Context(), path)
		if want == "" && (err != nil || got != version) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", version, got, err)
		}
	}
	if _, err := firecracker.Program(t.Context(), "/absent/firecracker"); err == nil || !strings.Contains(err.Error(), "does not start") {
		t.Error(err)
	}
}
