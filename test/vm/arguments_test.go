package vm

import (
	"fmt"
	"strings"
)

// processor is all that QEMU can emulate but what costs an emulator much and what is tried
// nothing: string instructions that are told to be fast (here they are a loop over bytes),
// a fifth level of page tables, and the guards and keys of pages, each of which is another
// table to look up.
const processor = "max,-erms,-la57,-smap,-pku,-pks"

// khz is what the processor's counter runs at: an instruction takes a nanosecond.
const khz = 1_000_000

// kernelArguments are the kernel's. The second line is known of the machine, so that the
// kernel need not measure it against a clock; the third leaves out work that a distribution's
// kernel does beside: clearing pages that are overwritten, clearing large ones of which
// little is used, looking at each system call for an auditor.
var kernelArguments = strings.Join([]string{
	"console=ttyS0 loglevel=4 reboot=t panic=-1 systemd.show_status=false",
	fmt.Sprintf("tsc_early_khz=%d lpj=%d no_timer_check", khz, khz*4),
	"mitigations=off init_on_alloc=0 transparent_hugepage=never audit=0 clearcpuid=rep_good",
}, " ")

// arguments are the emulator's. An instruction takes a nanosecond of the machine's time,
// whatever it takes here (icount); one processor, since with two the kernel's start hangs
// under icount. Bytes that are written to the disks go with the process (-snapshot). A reboot is
// the end.
func (w workshop) arguments(m machine, results string) []string {
	argv := []string{
		"-accel", "tcg", "-icount", "shift=0,sleep=on", "-smp", "1", "-rtc", "clock=vm",
		"-M", "microvm", "-cpu", processor, "-m", "3072", "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-snapshot",
		"-kernel", m.kernel, "-initrd", m.initrd, "-serial", "file:" + w.console(), "-append", kernelArguments,
		"-chardev", "file,id=results,path=" + results, "-device", "virtio-serial-device", "-device", "virtserialport,chardev=results,name=results",
		"-netdev", "user,id=net", "-device", "virtio-net-device,netdev=net",
	}
	for _, d := range [][2]string{{"root", m.root}, {"payload", m.payload}, {"template", m.template}} {
		argv = append(argv, "-drive", "file="+d[1]+",if=none,id="+d[0]+",format=raw,cache=unsafe", "-device", "virtio-blk-device,drive="+d[0]+",serial="+d[0])
	}
	return argv
}
