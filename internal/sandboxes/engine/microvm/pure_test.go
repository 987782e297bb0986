package microvm

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

func TestArchiveIsRead(t *testing.T) {
	var b bytes.Buffer
	archive := &cpio{to: &b}
	archive.addEntry(cpioEntry{name: "d", mode: cpioDir | 0o755})
	archive.addEntry(cpioEntry{name: "d/odd", mode: cpioFile | 0o644, data: []byte("12345")})
	archive.addEntry(cpioEntry{name: "console", mode: cpioChar | 0o600, major: 5, minor: 1})
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Len()%4 != 0 {
		t.Errorf("%d bytes are no multiple of four", b.Len())
	}
	for _, want := range []string{"070701", "d/odd\x00", "12345", "TRAILER!!!\x00"} {
		if !bytes.Contains(b.Bytes(), []byte(want)) {
			t.Errorf("there is no %q", want)
		}
	}
	path, err := exec.LookPath("cpio")
	if err != nil {
		return // the long tests have a kernel read one
	}
	cmd := exec.CommandContext(t.Context(), path, "-tv")
	cmd.Stdin = &b
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "d/odd") || !strings.Contains(string(out), "5,   1") {
		t.Errorf("cpio lists %s (%v)", out, err)
	}
}

func TestModulesComeAfterTheirDependencies(t *testing.T) {
	depends := map[string][]string{"blk": {"virtio", "ring"}, "virtio": {"ring"}, "ring": nil, "erofs": {"crc"}, "crc": nil}
	order := func(names ...string) ([]string, error) {
		all, err := inOrder(names, func(name string) (*module, []string, error) {
			if name == "part" {
				return nil, nil, nil
			}
			d, ok := depends[name]
			if !ok {
				return nil, nil, fault.New(fault.ErrUnavailable, "no %s", name)
			}
			return &module{name: name}, d, nil
		})
		var got []string
		for _, m := range all {
			got = append(got, m.name)
		}
		return got, err
	}
	got, err := order("blk", "part", "erofs")
	if want := []string{"ring", "virtio", "blk", "crc", "erofs"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := order("absent"); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a module that is not there: %v", err)
	}
}

func TestTheNewestKernelForClouds(t *testing.T) {
	dir := t.TempDir()
	put := func(release string, modules bool) {
		if modules {
			if err := os.MkdirAll(filepath.Join(dir, "lib/modules", release), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "boot"), 0o755), os.WriteFile(filepath.Join(dir, "boot", imagePrefix+release), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := findKernel(dir); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "linux-image-cloud-amd64") {
		t.Errorf("no kernel at all: %v", err)
	}
	for _, k := range []struct {
		release string
		modules bool
	}{{"6.12.9-amd64", true}, {"6.1.0-9-cloud-amd64", true}, {"6.1.0-56-cloud-amd64", true}, {"6.1.0-99-cloud-amd64", false}} {
		put(k.release, k.modules)
	}
	if k, err := findKernel(dir); err != nil || k.release != "6.1.0-56-cloud-amd64" {
		t.Errorf("found %+v, %v", k, err)
	}
}

func TestCompareReleases(t *testing.T) {
	sorted := []string{"5.10.0-9", "6.1.0-9", "6.1.0-10", "6.12.0", "6.12.0-1"}
	for i := range sorted {
		for j := range sorted {
			if got, want := compareReleases(sorted[i], sorted[j]), i-j; (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("%s against %s is %d", sorted[i], sorted[j], got)
			}
		}
	}
}

func TestWhatAToyShows(t *testing.T) {
	for name, c := range map[string]struct {
		halted bool
		took   time.Duration
		err    error
		want   kvmVerdict
	}{
		"a processor":                   {true, 20 * time.Millisecond, nil, kvmFast},
		"an interpreter":                {false, toyTime, nil, kvmInterpr},
		"one that came to its end late": {true, toyTime + time.Second, nil, kvmInterpr},
		"an error":                      {false, time.Millisecond, errors.New("no"), kvmBroken},
	} {
		if got := judgeToy(c.halted, c.took, c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhyThereIsNoHardware: each verdict but the good one comes with what can be done.
func TestWhyThereIsNoHardware(t *testing.T) {
	for _, v := range []kvmVerdict{kvmAbsent, kvmClosed, kvmInterpr, kvmBroken} {
		if why := v.whyAndRemedy(); !strings.HasPrefix(why, string(v)+": ") || len(why) < len(v)+20 {
			t.Errorf("%q comes with nothing that can be done: %q", v, why)
		}
	}
}

// TestAMachineIsNoOther: what was written of an emulated machine is no machine in hardware
// afterwards, nor the other way.
func TestAMachineIsNoOther(t *testing.T) {
	spec := engine.Spec{ID: "i", Init: []string{"/init"}}
	for _, was := range []bool{false, true} {
		for _, v := range []kvmVerdict{kvmFast, kvmInterpr} {
			r := imageRecipe{Contents: engine.ContentsMemory, Spec: spec, Machine: machine{Hardware: was}, Agent: "a"}
			h := &host{kvm: v}
			err := r.checkSpec(spec, h, "a")
			if same := was == (v == kvmFast); same != (err == nil) {
				t.Errorf("written in hardware %t, on a host where %q: %v", was, v, err)
			}
			if err != nil && !errors.Is(err, fault.ErrConflict) {
				t.Error(err)
			}
			if r.Contents = engine.ContentsFiles; r.checkSpec(spec, h, "a") != nil {
				t.Errorf("files of one don't fit: %v", r.checkSpec(spec, h, "a"))
			}
		}
	}
}

// TestAMachineWithMoreThanItMayUse: the host bounds what its own kernel does not.
func TestAMachineWithMoreThanItMayUse(t *testing.T) {
	p := stagePlan{Machine: machine{MiB: 256}}
	if got := p.hostMemory(256 << 20); got != 256<<20+ownMemory {
		t.Errorf("a machine of its own size may take %d MB", got>>20)
	}
	if got := p.hostMemory(128 << 20); got <= 128<<20 || got >= (256+64)<<20 {
		t.Errorf("a machine of 256 MB that is given 128 may take %d MB", got>>20)
	}
}

// TestTheMonitorsUser: who uses KVM is in its device's group, and nobody else is in any.
func TestTheMonitorsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root gives files away")
	}
	device := filepath.Join(t.TempDir(), "kvm")
	if err := errors.Join(os.WriteFile(device, nil, 0o600), os.Chown(device, 0, 4321), os.Chmod(device, 0o660)); err != nil {
		t.Fatal(err)
	}
	p := stagePlan{UID: 1234567890}
	if who, err := p.credential(device); err != nil || who.Uid != 1234567890 || who.Gid != 1234567890 || len(who.Groups) != 0 {
		t.Errorf("emulated: %+v, %v", who, err)
	}
	p.Machine.Hardware = true
	if who, err := p.credential(device); err != nil || who.Uid != 1234567890 || !slices.Equal(who.Groups, []uint32{4321}) {
		t.Errorf("in hardware: %+v, %v", who, err)
	}
	if err := os.Chown(device, 0, 0); err != nil {
		t.Fatal(err)
	}
	if who, err := p.credential(device); err != nil || len(who.Groups) != 0 {
		t.Errorf("of root's group: %+v, %v", who, err)
	}
	if _, err := p.credential(device + "-gone"); err == nil {
		t.Error("a device that is gone has a user")
	}
}

// TestWhatIsMissingOnTheHost: each is unavailable, and says what to install.
func TestWhatIsMissingOnTheHost(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		cfg  Config
		uid  int
		says string
	}{
		"no root":     {Config{}, 1000, "needs a daemon that is root"},
		"no QEMU":     {Config{QEMU: filepath.Join(dir, "none")}, 0, "install the package qemu-system-x86"},
		"no kernel":   {Config{QEMU: script("a", "exit 0"), Kernel: dir}, 0, "linux-image-cloud-amd64"},
		"QEMU's heir": {Config{QEMU: script("b", "echo something else")}, 0, "is no QEMU"},
		"one that does not start": {
			Config{QEMU: script("c", "echo its library is missing >&2; exit 127")}, 0, "does not start: its library is missing",
		},
		"one without the machine": {
			Config{QEMU: script("d", "echo QEMU emulator version 7.2")}, 0, "does not have the machine microvm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Kernel == "" {
				c.cfg.Kernel = builtinKernel(t)
			}
			c.cfg.StateDir = dir
			e := New(c.cfg, nil)
			e.uid = c.uid
			if _, err := e.Capabilities(t.Context()); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want it to say %q", err, c.says)
			}
		})
	}
}

// builtinKernel is one with everything in it.
func builtinKernel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(dir, "lib/modules/6.1.0")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "boot"), 0o755), os.WriteFile(filepath.Join(dir, "boot", imagePrefix+"6.1.0"), nil, 0o644),
		os.MkdirAll(filepath.Join(modules, "kernel"), 0o755),
		os.WriteFile(filepath.Join(modules, "modules.builtin"), []byte("kernel/"+strings.Join(needed(), ".ko\nkernel/")+".ko\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestADeviceThatIsNone(t *testing.T) {
	if v, err := probeKVM(filepath.Join(t.TempDir(), "kvm")); v != kvmAbsent || err == nil {
		t.Errorf("no device: %q, %v", v, err)
	}
	file := filepath.Join(t.TempDir(), "kvm")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := probeKVM(file); v != kvmBroken || err == nil {
		t.Errorf("a file: %q, %v", v, err)
	}
}

func TestCommandHasNoNetwork(t *testing.T) {
	m := machine{
		Name: "/x/i", Kernel: "/kernel", Initrd: "/own/first", MiB: 256, CPUs: 2, Socket: "/own/control", KHz: 2000,
		Disks: []blockDevice{{Serial: "template", Path: "/ro,ot", ReadOnly: true}, {Serial: "disk-0", Path: "/own/disk-0"}},
	}
	argv := qemu{program: "/q"}.commandLine(m)
	line := strings.Join(argv, " ")
	for _, never := range []string{"net", "vhost", "virtfs", "usb", "vnc", "-incoming", "kvm"} {
		if strings.Contains(line, never) {
			t.Errorf("the command has %q: %s", never, line)
		}
	}
	for _, want := range []string{
		"-nodefaults", "-no-user-config", "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"file=/ro,,ot,readonly=on", "tsc_early_khz=2000 lpj=4000", "-name /x/i", "serial=disk-0",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the command lacks %q: %s", want, line)
		}
	}
	m.Hardware, m.Arriving = true, true
	line = strings.Join(qemu{program: "/q"}.commandLine(m), " ")
	if !strings.Contains(line, "-accel kvm -cpu host") || !strings.Contains(line, "-incoming defer") || strings.Contains(line, "tsc_early") {
		t.Errorf("in hardware: %s", line)
	}
}

// TestCommandOfMemory: a machine of today has a file for it, which it alone has; one of an older
// version has none.
func TestCommandOfMemory(t *testing.T) {
	m := machine{MiB: 256, Disks: []blockDevice{{Serial: "template", Path: "/root", ReadOnly: true}}}
	if line := strings.Join(qemu{program: "/q"}.commandLine(m), " "); strings.Contains(line, "memory-backend") || !strings.Contains(line, "-M microvm -m 256") {
		t.Errorf("of an older version: %s", line)
	}
	m.Shared = true
	line := strings.Join(qemu{program: "/q"}.commandLine(m), " ")
	for _, want := range []string{"-M microvm,memory-backend=ram ", "-object memory-backend-file,id=ram,size=256M,share=on,mem-path=/memory/ram "} {
		if !strings.Contains(line, want) {
			t.Errorf("the command lacks %q: %s", want, line)
		}
	}
}

func TestHowAMachineEnded(t *testing.T) {
	for words, want := range map[string]engine.Exit{
		"": {Reason: "agent exited"},
		"[ 1.2] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300": {Code: 3, Reason: "agent exited"},
		"Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b":        {Code: 139, Reason: "killed"},
		"Kernel panic - not syncing: System is deadlocked on memory":                     {Code: 137, OOM: true, Reason: "out of memory"},
		"Kernel panic - not syncing: Fatal exception":                                    {Code: 134, Reason: "the sandbox's kernel panicked"},
	} {
		if got := ending(engine.Exit{Reason: "agent exited"}, []byte(words)); got != want {
			t.Errorf("%q: %+v, want %+v", words, got, want)
		}
	}
}

func TestPackedDisk(t *testing.T) {
	dir := t.TempDir()
	disk, packed, again := filepath.Join(dir, "disk"), filepath.Join(dir, "packed"), filepath.Join(dir, "again")
	f, err := os.Create(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, text := range map[int64]string{0: "begin", 5 << 20: "middle", 64<<20 - 3: "end"} {
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt(make([]byte, 3<<20), 70<<20); err != nil { // zeros that take room
		t.Fatal(err)
	}
	if err := f.Truncate(96 << 20); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(packDisk(disk, packed), unpack(packed, again)); err != nil {
		t.Fatal(err)
	}
	one, err := os.ReadFile(disk)
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(again)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("it is another (%v), of %d bytes", err, len(two))
	}
	whole, err := os.ReadFile(packed)
	if err != nil || len(whole) > 16<<10 {
		t.Errorf("texts in three blocks, beside blocks of zeros, take %d bytes (%v)", len(whole), err)
	}
	// A kernel that is cut short or was changed to say too much is refused.
	for name, bad := range map[string][]byte{
		"no magic": []byte("something else altogether"), "cut": whole[:len(whole)-9], "cut early": whole[:30],
		"a huge part": append(bytes.Clone(whole[:24]), bytes.Repeat([]byte{0x7f}, 16)...),
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unpack(path, filepath.Join(dir, "bad-"+name)); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
	}
}
