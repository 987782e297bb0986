package microvm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A device that opens, and a machine that says it was started, prove nothing: there are hosts
// whose KVM interprets the guest's code, and no Linux gets through. So a toy guest counts,
// and it has to be fast.
const (
	toyLoops = 50_000_000 // two instructions each; a processor needs some 20 ms
	toyTime  = time.Second
)

// kvmVerdict is what a toy guest showed.
type kvmVerdict string

// The verdicts.
const (
	kvmFast    kvmVerdict = ""
	kvmAbsent  kvmVerdict = "there is no /dev/kvm"
	kvmClosed  kvmVerdict = "/dev/kvm can't be used"
	kvmInterpr kvmVerdict = "KVM is here, but interprets guest code"
	kvmBroken  kvmVerdict = "KVM is here, but does not run guest code"
)

// whyAndRemedy is the verdict with what can be done about it.
func (v kvmVerdict) whyAndRemedy() string {
	switch v {
	case kvmAbsent:
		return string(v) + ": load the module kvm_intel or kvm_amd, after virtualization is switched on in the firmware, or in what runs this machine"
	case kvmClosed:
		return string(v) + ": the daemon needs to read and write it"
	case kvmInterpr, kvmBroken:
		return string(v) + ": this host is a machine without nested virtualization; switch that on in what runs it, or take a host with a processor of its own"
	case kvmFast:
	}
	return string(v)
}

// The numbers of the kernel's interface: linux/kvm.h.
const (
	kvmGetAPIVersion   = 0xae00
	kvmCreateVM        = 0xae01
	kvmGetVCPUMmapSize = 0xae04
	kvmCreateVCPU      = 0xae41
	kvmSetMemory       = 0x4020ae46
	kvmRun             = 0xae80
	kvmSetRegs         = 0x4090ae82
	kvmGetSregs        = 0x8138ae83
	kvmSetSregs        = 0x4138ae84

	kvmVersion   = 12
	kvmExitHalt  = 5
	toyAddress   = 0x1000
	sizeOfRegs   = 0x90
	sizeOfSregs  = 0x138
	offsetRIP    = 16 * 8
	offsetFlags  = 17 * 8
	offsetImmed  = 1 // immediate_exit, in what is shared with the kernel
	offsetReason = 8 // exit_reason
)

// toyProgram counts down and halts, in 16-bit code.
func toyProgram() []byte {
	code := []byte{
		0x66, 0xb9, 0, 0, 0, 0, // mov ecx, toyLoops
		0x66, 0x49, // dec ecx
		0x75, 0xfc, // jnz to the dec
		0xf4, // hlt
	}
	binary.LittleEndian.PutUint32(code[2:], toyLoops)
	return code
}

// judgeToy tells what a run of the toy shows: whether it came to its end in time, and if not,
// whether it ended otherwise.
func judgeToy(halted bool, took time.Duration, failed error) kvmVerdict {
	switch {
	case failed != nil:
		return kvmBroken
	case !halted || took > toyTime:
		return kvmInterpr
	default:
		return kvmFast
	}
}

// probeKVM runs the toy. It takes at most a moment more than toyTime.
func probeKVM(path string) (kvmVerdict, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return kvmAbsent, err
	}
	if err != nil {
		return kvmClosed, err
	}
	defer f.Close()
	halted, took, err := runToy(int(f.Fd()))
	return judgeToy(halted, took, err), err
}

// toyMachine is a machine with one page and one processor.
type toyMachine struct {
	vm, cpu        int
	memory, shared []byte
}

func (m *toyMachine) closeToy() {
	for _, fd := range []int{m.cpu, m.vm} {
		if fd > 0 {
			_ = unix.Close(fd)
		}
	}
	for _, mapped := range [][]byte{m.shared, m.memory} {
		if mapped != nil {
			_ = unix.Munmap(mapped)
		}
	}
}

func runToy(kvm int) (halted bool, took time.Duration, err error) {
	if version, err := ioctlPlain(kvm, kvmGetAPIVersion); err != nil || version != kvmVersion {
		return false, 0, fmt.Errorf("its interface has the version %d, not %d: %w", version, kvmVersion, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m, err := newToyMachine(kvm)
	defer m.closeToy()
	if err != nil {
		return false, 0, err
	}
	return m.runToy()
}

func newToyMachine(kvm int) (*toyMachine, error) {
	m := &toyMachine{}
	var err error
	if m.vm, err = ioctlPlain(kvm, kvmCreateVM); err != nil {
		return m, fmt.Errorf("make a machine: %w", err)
	}
	page := os.Getpagesize()
	if m.memory, err = unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS); err != nil {
		return m, err
	}
	copy(m.memory, toyProgram())
	region := struct {
		slot, flags               uint32
		at, size, memory, padding uint64
	}{at: toyAddress, size: uint64(page), memory: uint64(uintptr(unsafe.Pointer(&m.memory[0])))} //nolint:gosec // the call takes a pointer
	if err := ioctlAt(m.vm, kvmSetMemory, unsafe.Pointer(&region)); err != nil { //nolint:gosec // the call takes a pointer
		return m, fmt.Errorf("give it memory: %w", err)
	}
	if m.cpu, err = ioctlPlain(m.vm, kvmCreateVCPU); err != nil {
		return m, fmt.Errorf("give it a processor: %w", err)
	}
	size, err := ioctlPlain(kvm, kvmGetVCPUMmapSize)
	if err != nil {
		return m, err
	}
	if m.shared, err = unix.Mmap(m.cpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return m, err
	}
	return m, m.beginToy()
}

// beginToy points the processor at the toy, with all segments at 0.
func (m *toyMachine) beginToy() error {
	var sregs [sizeOfSregs]byte
	if err := ioctlAt(m.cpu, kvmGetSregs, unsafe.Pointer(&sregs[0])); err != nil { //nolint:gosec // the call takes a pointer
		return err
	}
	clear(sregs[:8])                                                               // the base of cs,
	clear(sregs[12:14])                                                            // and its selector
	if err := ioctlAt(m.cpu, kvmSetSregs, unsafe.Pointer(&sregs[0])); err != nil { //nolint:gosec // the call takes a pointer
		return err
	}
	var regs [sizeOfRegs]byte
	binary.LittleEndian.PutUint64(regs[offsetRIP:], toyAddress)
	binary.LittleEndian.PutUint64(regs[offsetFlags:], 2)        // the one bit that is always set
	return ioctlAt(m.cpu, kvmSetRegs, unsafe.Pointer(&regs[0])) //nolint:gosec // the call takes a pointer
}

// runToy runs the toy until it halts, or its time is over: then the kernel is told to come back.
func (m *toyMachine) runToy() (halted bool, took time.Duration, err error) {
	thread := unix.Gettid()
	began := time.Now()
	done, stopped := make(chan struct{}), make(chan struct{})
	safego.Go(func() {
		defer close(stopped)
		m.stopAfter(toyTime, thread, done)
	})
	defer func() {
		close(done)
		<-stopped
	}()
	for {
		_, err := ioctlPlain(m.cpu, kvmRun)
		took = time.Since(began)
		switch {
		case errors.Is(err, unix.EINTR) && took < toyTime:
			continue
		case errors.Is(err, unix.EINTR):
			return false, took, nil
		case err != nil:
			return false, took, fmt.Errorf("run it: %w", err)
		}
		if reason := binary.LittleEndian.Uint32(m.shared[offsetReason:]); reason != kvmExitHalt {
			return false, took, fmt.Errorf("it ended for the reason %d", reason)
		}
		return true, took, nil
	}
}

// stopAfter has the kernel come back from the guest, again and again until done is closed: a
// signal alone may come too early.
func (m *toyMachine) stopAfter(limit time.Duration, thread int, done <-chan struct{}) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		m.shared[offsetImmed] = 1
		_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // one that the runtime knows, and which does nothing
		timer.Reset(10 * time.Millisecond)
	}
}

// ioctlPlain is one without an argument.
func ioctlPlain(fd int, request uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// ioctlAt is one with something in memory, which stays where it is meanwhile.
func ioctlAt(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}
