package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// bareBoot is the floor of a machine's create: the same QEMU, kernel, first root, template
// and disks, whose copies are made before, in a control group like a sandbox's, and nothing
// of Cofferdam but the agent inside. It ends with the agent's first word.
type bareBoot struct {
	groups *cgroup.Hierarchy
	argv   []string // of a monitor that lives
	paths  map[string]string
	own    string // of that one, with its files
	dir    string
	n      int
}

// Names in the root of a machine's monitor, as its arguments have them.
const (
	ownFiles     = "/own/"
	kernelInRoot = "/kernel"
	imageInRoot  = "/root"
)

// newBareBoot takes the monitor of a sandbox that lives as its model.
func newBareBoot(b *bench, sandbox string) (*bareBoot, error) {
	from := filepath.Join(b.state(), "sandboxes", sandbox, machinesEngine)
	var plan struct{ Kernel, Root string }
	var running []struct{ Pid int } // the monitor, and what it needs beside
	for name, to := range map[string]any{"plan.json": &plan, "monitor.json": &running} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(running) == 0 {
		return nil, errors.New("monitor.json names no process")
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(running[0].Pid), "cmdline"))
	if err != nil {
		return nil, err
	}
	boot := &bareBoot{
		groups: cgroup.New(cgroup.Config{Parent: benchGroups(), UID: os.Geteuid()}),
		argv:   strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"),
		paths:  map[string]string{kernelInRoot: plan.Kernel, imageInRoot: plan.Root},
		own:    filepath.Join(b.dir, "boot-model"), dir: filepath.Join(b.dir, "boot"),
	}
	// The sandbox is gone when the floor is measured. It has not written much, and
	// none of what is read at a boot.
	return boot, copyFiles(filepath.Join(from, "own"), boot.own)
}

// kernelOfMachines configures the kernel that scripts/deps fetched, unless the host has its own.
func (b *bench) kernelOfMachines() error {
	dir, err := filepath.Abs(filepath.Join(b.opts.bin, "..", ".tools", "kernel"))
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, "boot"))
	if errors.Is(err, fs.ErrNotExist) { // then machines take the host's
		return nil
	}
	if err != nil {
		return err
	}
	return appendTo(filepath.Join(b.state(), "config.yaml"), fmt.Sprintf("guest_kernel: %q\n", dir))
}

// copyFiles copies a folder of sparse files.
func copyFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue // the socket of its controls
		}
		out, err := exec.Command("cp", "--sparse=always", "--", filepath.Join(from, entry.Name()), to).CombinedOutput() // it ends by itself
		if err != nil {
			return fmt.Errorf("copy %s: %w: %s", entry.Name(), err, out)
		}
	}
	return nil
}

// joins enters control groups and becomes what is behind "--".
const joins = `while [ "$1" != -- ]; do echo 0 >"$1" || exit 1; shift; done; shift; exec "$@"`

// once boots it; the making of its files and group is not counted.
func (m *bareBoot) once(ctx context.Context) (took time.Duration, err error) {
	m.n++
	dir := filepath.Join(m.dir, strconv.Itoa(m.n))
	if err := copyFiles(m.own, dir); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"-c", joins, "sh"}
	if len(m.groups.Missing()) == 0 {
		group, err := m.groups.Create("", "boot-"+strconv.Itoa(m.n), cgroup.Limits{MemoryBytes: 3 << 30, CPU: 2, Pids: 256})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, group.Remove(context.WithoutCancel(ctx))) }()
		args = append(args, group.Joins()...)
	}
	console, err := os.OpenFile(filepath.Join(dir, "console"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) // QEMU asks for just that
	if err != nil {
		return 0, err
	}
	defer console.Close()
	host, guest, err := channel.SocketPair()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append(append(args, "--"), m.command(dir)...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = guest, guest, console, []*os.File{console}
	began := time.Now()
	err = errors.Join(cmd.Start(), guest.Close())
	if err != nil {
		return 0, errors.Join(err, host.Close())
	}
	err = firstWord(ctx, host)
	took = time.Since(began)
	if err != nil {
		said, _ := os.ReadFile(console.Name())
		err = fmt.Errorf("the bare machine does not answer: %w: %.2000s", err, said)
	}
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return took, err
}

// command is the model's, with paths outside of its root, and with plain memory: the file that
// a machine has for it is there for copies.
func (m *bareBoot) command(dir string) []string {
	argv := slices.Clone(m.argv)
	if i := slices.IndexFunc(argv, func(arg string) bool { return strings.HasPrefix(arg, "memory-backend-file,") }); i > 0 {
		argv = slices.Delete(argv, i-1, i+1)
	}
	for i, arg := range argv {
		arg, _, _ = strings.Cut(arg, ",memory-backend=")
		arg = strings.ReplaceAll(arg, ownFiles, dir+"/")
		for inside, path := range m.paths {
			if arg == inside {
				arg = path
			}
			arg = strings.ReplaceAll(arg, "file="+inside+",", "file="+path+",")
		}
		argv[i] = arg
	}
	return argv
}

// firstWord asks the agent and waits for its answer.
func firstWord(ctx context.Context, host net.Conn) error {
	session, err := channel.NewHostSession(host)
	if err != nil {
		return errors.Join(err, host.Close())
	}
	defer session.Close() // the machine goes with it
	stream, err := session.Open(ctx)
	if err != nil {
		return err
	}
	if err := stream.WriteJSON(channel.FrameOpen, channel.Call{Kind: channel.CallPing}); err != nil {
		return err
	}
	kind, _, err := stream.ReadFrame()
	if err == nil && kind != channel.FrameReply {
		err = fmt.Errorf("it answers with a frame of the type %d", kind)
	}
	return err
}
