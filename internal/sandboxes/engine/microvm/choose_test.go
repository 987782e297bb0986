package microvm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestWhichMonitor: Firecracker where it is there and KVM proved itself, else QEMU, and why.
func TestWhichMonitor(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fire, old := script("fire", "echo Firecracker v1.16.2"), script("old", "echo Firecracker v1.7.0")
	qemu := script("qemu", `case $1 in --version) echo "QEMU emulator version 7.2";; *) printf 'x\nmicrovm  y\n';; esac`)
	absent := filepath.Join(dir, "absent")
	for name, c := range map[string]struct {
		cfg        Config
		kvm        kvmVerdict
		by, no     string
		hardwareBy bool
	}{
		"both, on hardware":             {Config{Firecracker: fire, QEMU: qemu}, kvmFast, "Firecracker v1.16.2", "", true},
		"Firecracker alone":             {Config{Firecracker: fire, QEMU: absent}, kvmFast, "Firecracker v1.16.2", "", true},
		"both, on KVM that interprets":  {Config{Firecracker: fire, QEMU: qemu}, kvmInterpr, "QEMU emulator version 7.2 (Firecracker is not used: it needs hardware, and KVM is here, but interprets guest code: ", "", false},
		"both, without KVM":             {Config{Firecracker: fire, QEMU: qemu}, kvmAbsent, "QEMU emulator version 7.2 (Firecracker is not used: it needs hardware, and there is no /dev/kvm: ", "", false},
		"one that is too old":           {Config{Firecracker: old, QEMU: qemu}, kvmFast, "QEMU emulator version 7.2 (Firecracker is not used: " + old + " is Firecracker v1.7.0, ", "", true},
		"QEMU alone":                    {Config{Firecracker: absent, QEMU: qemu}, kvmFast, "QEMU emulator version 7.2 (Firecracker is not used: there is none; put ", "", true},
		"neither":                       {Config{Firecracker: absent, QEMU: absent}, kvmFast, "", getQEMU, false},
		"QEMU by name":                  {Config{Firecracker: fire, QEMU: qemu, Monitor: qemu}, kvmFast, "QEMU emulator version 7.2", "", true},
		"Firecracker by name":           {Config{Monitor: fire}, kvmFast, "Firecracker v1.16.2", "", true},
		"Firecracker by name, no KVM":   {Config{Monitor: fire, QEMU: qemu}, kvmAbsent, "", "it needs hardware, and there is no /dev/kvm", false},
		"something else by name":        {Config{Monitor: script("other", "echo hello"), QEMU: qemu}, kvmFast, "", "is no QEMU", false},
		"what is not there, by name":    {Config{Monitor: absent, QEMU: qemu}, kvmFast, "", "machine_monitor", false},
		"a path that is none, by name":  {Config{Monitor: "qemu", QEMU: qemu}, kvmFast, "", "an absolute path", false},
		"neither, and KVM is no reason": {Config{Firecracker: absent, QEMU: absent}, kvmAbsent, "", getFirecracker, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Kernel, c.cfg.StateDir = bootable(t), t.TempDir()
			e := New(c.cfg, nil)
			e.uid, e.kvm = 0, func() kvmVerdict { return c.kvm }
			caps, err := e.Capabilities(t.Context())
			if c.no != "" {
				if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), c.no) {
					t.Errorf("%v, want it to say %q", err, c.no)
				}
				return
			}
			exact := !strings.Contains(c.by, "(")
			if err != nil || !strings.HasPrefix(caps.By, c.by) || exact && caps.By != c.by || (caps.Wall == engine.WallHardware) != c.hardwareBy {
				t.Errorf("by %q, %s, %v; want %q", caps.By, caps.Wall, err, c.by)
			}
		})
	}
}

// TestAMonitorThatComes: a Firecracker that is installed under a running daemon is seen.
func TestAMonitorThatComes(t *testing.T) {
	dir := t.TempDir()
	fire, qemu := filepath.Join(dir, "fire"), filepath.Join(dir, "qemu")
	put := func(path, version string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf '"+version+"\\nmicrovm x\\n'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(qemu, "QEMU emulator version 7.2")
	e := New(Config{Firecracker: fire, QEMU: qemu, Kernel: bootable(t), StateDir: dir}, nil)
	e.uid, e.kvm = 0, func() kvmVerdict { return kvmFast }
	for _, want := range []string{"QEMU", "Firecracker", "QEMU"} {
		if caps, err := e.Capabilities(t.Context()); err != nil || !strings.HasPrefix(caps.By, want) {
			t.Errorf("by %q, want %s (%v)", caps.By, want, err)
		}
		if want == "QEMU" {
			put(fire, "Firecracker v1.16.2")
		} else if err := os.Remove(fire); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAKernelThatItCantBoot: then QEMU, which can, is taken.
func TestAKernelThatItCantBoot(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"can't be unpacked": func(dir string) error { return os.Remove(filepath.Join(dir, "boot/vmlinux-6.1.0")) },
		"has no module vmw_vsock_virtio_transport": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "lib/modules/6.1.0/modules.builtin"), []byte("kernel/"+strings.Join(append(needed(), qemu{}.modules()...), ".ko\nkernel/")+".ko\n"), 0o644)
		},
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "qemu")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf 'QEMU emulator version 7.2\\nmicrovm x\\n'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		fire := filepath.Join(dir, "fire")
		if err := os.WriteFile(fire, []byte("#!/bin/sh\necho Firecracker v1.16.2\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		e := New(Config{Firecracker: fire, QEMU: program, Kernel: bootable(t), StateDir: dir}, nil)
		e.uid, e.kvm = 0, func() kvmVerdict { return kvmFast }
		if err := spoil(e.cfg.Kernel); err != nil {
			t.Fatal(err)
		}
		if caps, err := e.Capabilities(t.Context()); err != nil || !strings.HasPrefix(caps.By, "QEMU") || !strings.Contains(caps.By, name) {
			t.Errorf("%s: by %q, %v", name, caps.By, err)
		}
	}
}

// bootable is a kernel with everything in it, for every monitor.
func bootable(t *testing.T) string {
	t.Helper()
	dir := builtinKernel(t)
	list := "kernel/" + strings.Join(Modules(), ".ko\nkernel/") + ".ko\n"
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "lib/modules/6.1.0/modules.builtin"), []byte(list), 0o644),
		os.WriteFile(filepath.Join(dir, "boot/vmlinux-6.1.0"), []byte(elfMagic), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}
