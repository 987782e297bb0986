package microvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

// qemu is the monitor that needs no hardware.
type qemu struct{ program string }

var _ monitor = qemu{}

// memoryID is what QEMU calls a machine's memory.
const memoryID = "ram"

// cacheMiB is what emulation may keep of translated code.
const cacheMiB = 128

// askVersion asks the program, and whether it has the machine that is used here.
func (q qemu) askVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, q.program, "--version").CombinedOutput()
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "%s does not start: %.200s", q.program, strings.TrimSpace(string(out)))
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if !strings.HasPrefix(line, "QEMU emulator version ") {
		return "", fault.New(fault.ErrUnavailable, "%s is no QEMU: it says %.100q", q.program, line)
	}
	out, err = exec.CommandContext(ctx, q.program, "-M", "help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nmicrovm ") {
		return "", fault.New(fault.ErrUnavailable, "%s does not have the machine microvm: install the package qemu-system-x86", q.program)
	}
	return strings.TrimSpace(line), nil
}

// commandLine has no network device, unless the machine is a weak one, and none that is not named here. The filter of the program's
// own system calls lets it start nothing and become nobody.
func (q qemu) commandLine(m machine) []string {
	model := "microvm"
	if m.Shared {
		model += ",memory-backend=" + memoryID
	}
	argv := []string{
		q.program, "-name", m.Name, "-M", model, "-m", fmt.Sprint(m.MiB), "-smp", fmt.Sprint(m.CPUs),
		"-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	}
	if m.Shared {
		argv = append(argv, "-object", fmt.Sprintf("memory-backend-file,id=%s,size=%dM,share=on,mem-path=%s", memoryID, m.MiB, inPlace(memoryDir, memoryFile)))
	}
	if m.Hardware {
		argv = append(argv, "-accel", "kvm", "-cpu", "host")
	} else {
		argv = append(argv, "-accel", fmt.Sprintf("tcg,thread=multi,tb-size=%d", cacheMiB), "-cpu", "max")
	}
	argv = append(
		argv, "-kernel", m.Kernel, "-initrd", m.Initrd, "-append", m.parameters(),
		"-add-fd", fmt.Sprintf("fd=%d,set=1", consoleFD), "-chardev", "file,id=console,append=on,path=/dev/fdset/1", "-serial", "chardev:console",
		"-chardev", "stdio,id=channel,signal=off", "-device", "virtio-serial-device",
		"-device", "virtserialport,chardev=channel,name="+boot.Port,
	)
	for _, d := range m.Disks {
		drive := "if=none,format=raw,file.locking=off,id=" + d.Serial + ",file=" + escaped(d.Path)
		if d.ReadOnly {
			drive += ",readonly=on"
		}
		// Where the host's disk is full the machine is told; it does not stand still.
		argv = append(argv, "-drive", drive, "-device", "virtio-blk-device,werror=report,rerror=report,drive="+d.Serial+",serial="+d.Serial)
	}
	if m.Network {
		argv = append(argv, "-netdev", "user,id=network", "-device", "virtio-net-device,netdev=network")
	}
	argv = append(argv, "-qmp", "unix:"+escaped(m.Socket)+",server=on,wait=off")
	if m.Arriving {
		argv = append(argv, "-incoming", "defer")
	}
	return argv
}

// escaped is a path in an option whose parts commas part.
func escaped(path string) string { return strings.ReplaceAll(path, ",", ",,") }

// parameters are the kernel's. Under emulation on a busy host it would fail to find out the
// rate of its clocks, so that it is told.
func (m machine) parameters() string {
	parameters := []string{"console=ttyS0", "quiet", "reboot=t", "panic=-1", "rdinit=" + boot.Program, "random.trust_cpu=on"}
	if !m.Hardware {
		parameters = append(parameters, "no_timer_check", "mitigations=off")
		if m.KHz > 0 {
			parameters = append(parameters, fmt.Sprintf("tsc_early_khz=%d", m.KHz), fmt.Sprintf("lpj=%d", 2*m.KHz))
		}
	}
	return strings.Join(parameters, " ")
}

func (qemu) modules() []string                              { return []string{"virtio_console"} }
func (qemu) vsockPort() uint32                              { return 0 }
func (qemu) unnamed() bool                                  { return false }
func (qemu) kernelImage(k kernel, _ string) (string, error) { return k.image, nil }
func (qemu) confined(int) error                             { return nil } // its filter is on before it says anything

func (q qemu) startMonitor(b bundle, p stagePlan, groups []string) ([]*os.Process, error) {
	var child *os.Process
	err := runApart(func() (err error) {
		child, err = p.shutIn(b, groups)
		return err
	})
	return []*os.Process{child}, err
}

func (qemu) dialControls(ctx context.Context, b bundle) (controls, error) {
	socket, closed, err := b.reachable(socketName)
	if err != nil {
		return nil, err
	}
	defer closed()
	q, err := dialQMP(ctx, socket)
	if err != nil {
		return nil, err
	}
	return qemuControls{q}, nil
}

// qemuControls are QEMU's, whose stream is a file of the image.
type qemuControls struct{ *qmp }

// Begin does nothing: it runs what its arguments say.
func (qemuControls) Begin(context.Context, machine) error { return nil }

func (c qemuControls) Write(ctx context.Context, b bundle, m machine, dir string) error {
	if err := drainOutput(ctx, b, c); err != nil {
		return err
	}
	if err := c.keepOut(ctx, m); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, machineName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(c.Save(ctx, f), f.Close())
	if err == nil && m.Shared {
		err = packMemory(b, m, filepath.Join(dir, memoryName))
	}
	return err
}

func (c qemuControls) Read(ctx context.Context, m machine, dir string) error {
	stream, err := os.Open(filepath.Join(dir, machineName))
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := c.keepOut(ctx, m); err != nil {
		return err
	}
	return c.Load(ctx, stream)
}

// keepOut keeps shared memory out of the stream.
func (c qemuControls) keepOut(ctx context.Context, m machine) error {
	if !m.Shared {
		return nil
	}
	return c.KeepSharedOut(ctx)
}
