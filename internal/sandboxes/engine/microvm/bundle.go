package microvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

// logName is what the stage, the monitor, the kernel and the agent write to.
const logName = "microvm.log"

// bundle is the layout of an instance's files. The files that the monitor may touch are in a folder of their own.
type bundle struct {
	dir string
}

func (b bundle) logFile() string       { return filepath.Join(b.dir, logName) }
func (b bundle) planFile() string      { return filepath.Join(b.dir, "plan.json") }
func (b bundle) recipe() string        { return filepath.Join(b.dir, "recipe.json") }
func (b bundle) running() string       { return filepath.Join(b.dir, "monitor.json") }
func (b bundle) rootPlace() string     { return filepath.Join(b.dir, "place") }
func (b bundle) ownDir() string        { return filepath.Join(b.dir, "own") }
func (b bundle) socket() string        { return filepath.Join(b.ownDir(), socketName) }
func (b bundle) initrd() string        { return filepath.Join(b.ownDir(), initrdName) }
func (b bundle) diskFile(n int) string { return filepath.Join(b.ownDir(), diskName(n)) }
func (b bundle) copied(n int) string   { return filepath.Join(b.ownDir(), copiedName(n)) }

// Names in the monitor's folder.
const (
	socketName = "control"
	initrdName = "first"
)

func diskName(n int) string   { return "disk-" + strconv.Itoa(n) }
func copiedName(n int) string { return "copy-" + strconv.Itoa(n) }

// stagePlan is what a stage reads.
type stagePlan struct {
	Machine machine  `json:"machine"`
	Kind    string   `json:"kind,omitempty"` // of monitor
	Program string   `json:"program"`
	Carrier []string `json:"carrier,omitempty"` // argv, behind the program, of what carries a channel
	Device  string   `json:"device,omitempty"`  // of KVM
	UID     int      `json:"uid"`               // the monitor's, which nobody else has
	Kernel  string   `json:"kernel"`
	Root    string   `json:"root"`  // the template's image
	Disks   []int64  `json:"disks"` // sizes; the first is the root's writable layer
	Images  int      `json:"images"`
	Most    int64    `json:"most"` // bytes of the largest file that the monitor may write
	Arrive  string   `json:"arrive,omitempty"`
	Env     []string `json:"env"`
}

func saveJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func loadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// processes are the monitor's, and those that it needs beside, as the stage wrote them down.
func (b bundle) processes() ([]process.ID, error) {
	var ids []process.ID
	err := loadJSON(b.running(), &ids)
	if err != nil { // a stage of an older keeper's wrote the one
		ids = make([]process.ID, 1)
		err = loadJSON(b.running(), &ids[0])
	}
	if err != nil {
		return nil, fmt.Errorf("what runs the machine is not on record: %w", err)
	}
	for _, id := range ids {
		if !process.Ordinary(id.Pid) || id.Start == 0 {
			return nil, fault.New(fault.ErrUnavailable, "the record says that process %v runs the machine", id)
		}
	}
	if len(ids) == 0 {
		return nil, fault.New(fault.ErrUnavailable, "the record says that nothing runs the machine")
	}
	return ids, nil
}

// reachable is a path of a socket in the monitor's folder that is short enough for a
// socket's name, until it is closed. The folder is the monitor's, which may have been taken
// over: a link there, or another name of somebody else's socket, is refused, since it would
// have root speak with another machine, or with anybody.
func (b bundle) reachable(name string) (path string, closed func(), err error) {
	own, err := hostpath.Follow(b.ownDir()) // nobody but root writes above it
	if err != nil {
		return "", nil, err
	}
	defer own.Close()
	at := filepath.Join(b.ownDir(), name)
	fd, err := unix.Openat(own.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: at, Err: err}
	}
	socket := os.NewFile(uintptr(fd), at)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Nlink != 1) {
		err = fault.New(fault.ErrConflict, "%s is not the socket that the monitor made, but a link, or another file; the machine is not to be trusted: destroy it", at)
	}
	if err != nil {
		return "", nil, errors.Join(err, socket.Close())
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(fd)), func() { _ = socket.Close() }, nil
}

// firstRoot writes what the kernel unpacks at its start.
func (b bundle) firstRoot(m boot.Machine, agent []byte, modules []module, files map[string][]byte) error {
	description, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(b.initrd(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	archive := &cpio{to: f}
	for _, dir := range []string{"dev", boot.ModuleDir[1:], boot.FileDir[1:]} {
		archive.addEntry(cpioEntry{name: dir, mode: cpioDir | 0o755})
	}
	// The kernel opens it for its first program before that has mounted anything.
	archive.addEntry(cpioEntry{name: "dev/console", mode: cpioChar | 0o600, major: 5, minor: 1})
	archive.addEntry(cpioEntry{name: boot.Program[1:], mode: cpioFile | 0o755, data: agent})
	archive.addEntry(cpioEntry{name: boot.MachineFile[1:], mode: cpioFile | 0o600, data: description})
	for _, module := range modules {
		archive.addEntry(cpioEntry{name: boot.ModuleDir[1:] + "/" + module.name + ".ko", mode: cpioFile | 0o600, data: module.data})
	}
	for name, data := range files {
		archive.addEntry(cpioEntry{name: boot.FileDir[1:] + "/" + name, mode: cpioFile | 0o444, data: data})
	}
	return errors.Join(archive.Close(), f.Close())
}

// makeDisk makes a sparse file with an empty file system, with a journal: copies are made of
// it while the machine stands still, in the middle of anything.
func makeDisk(ctx context.Context, file string, bytes int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(bytes), f.Close()); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mkfsDisk(), "-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", "-O", "^resize_inode", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", file)
	cmd.Env = programEnvironment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("a disk of %d bytes: %w: %.300s", bytes, err, out)
	}
	return nil
}

// programEnvironment is that of all programs that are run here.
func programEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// Sizes of the memory file systems that every sandbox has.
const (
	runBytes = 16 << 20
	// A memory file system of no more than this is one; a larger one is a disk, so that
	// filling it costs disk and not the machine's memory.
	smallBytes = 1 << 20
	mostDisks  = 8
	mostImages = 8
)

// ownMounts are those that every sandbox has, unless its spec has others there.
func ownMounts(spec engine.Spec) []engine.Mount {
	asked := map[string]bool{}
	for _, m := range spec.Mounts {
		asked[m.Destination] = true
	}
	var all []engine.Mount
	for _, m := range []engine.Mount{
		{Destination: "/run", SizeBytes: runBytes, Mode: 0o755},
		{Destination: "/dev/shm", SizeBytes: spec.Limits.SharedMemory(), Mode: 0o1777},
		{Destination: "/tmp", SizeBytes: spec.Limits.DiskBytes, Mode: 0o1777},
	} {
		if !asked[m.Destination] {
			all = append(all, m)
		}
	}
	return all
}
