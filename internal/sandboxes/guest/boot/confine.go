package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
)

// capabilities are what the agent gets; it gives up most of them itself.
func capabilities() map[uintptr]bool {
	return map[uintptr]bool{
		unix.CAP_NET_BIND_SERVICE: true, unix.CAP_SETUID: true, unix.CAP_SETGID: true, unix.CAP_KILL: true,
		unix.CAP_CHOWN: true, unix.CAP_DAC_OVERRIDE: true, unix.CAP_FOWNER: true,
		unix.CAP_NET_ADMIN:    true, // addresses of its loopback
		unix.CAP_SETPCAP:      true, // to empty the bounding set
		unix.CAP_SYS_RESOURCE: true, // its threads don't count against the limit of a user that is also a command's
		unix.CAP_SYS_ADMIN:    true, // a copy's host name
		unix.CAP_SYS_TIME:     true, // the time of day of a machine that stood still
	}
}

// settings are those of the kernel, which nobody changes afterwards.
func (m Machine) settings() error {
	type setting struct{ name, value string }
	for _, s := range []setting{
		{"kernel/threads-max", strconv.Itoa(m.Tasks + kernelTasks())},
		{"kernel/printk", "4 4 1 4"}, // errors: the host keeps them, and counts kills for memory
		{"kernel/dmesg_restrict", "1"},
		{"kernel/kptr_restrict", "2"},
		{"kernel/kexec_load_disabled", "1"},
		{"kernel/unprivileged_bpf_disabled", "1"},
		{"kernel/modules_disabled", "1"},
		{"kernel/panic_on_oops", "1"},
		{"kernel/panic_on_unrecovered_nmi", "1"}, // a fault of the hardware is an end, too
		{"user/max_user_namespaces", "0"},
		{"vm/overcommit_memory", "0"},
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys", s.name), []byte(s.value), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set %s: %w", s.name, err)
		}
	}
	// Root could write these without any capability. A file that is not there needs no guard.
	for _, path := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi"} {
		at := filepath.Join(root, "proc", path)
		err := unix.Mount(at, at, "", unix.MS_BIND, "")
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("guard /proc/%s: %w", path, err)
		}
	}
	return nil
}

// kernelTasks is how many threads the kernel has itself.
func kernelTasks() int {
	found, _ := filepath.Glob("/proc/[0-9]*") // without a number of them the limit is lower
	return len(found)
}

// enterRoot makes the sandbox's root the root, and gives back the memory of the first one.
func enterRoot() error {
	for _, path := range []string{"/dev", "/sys", "/proc"} {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := errors.Join(os.RemoveAll(ModuleDir), os.Remove(Program), os.Remove(MachineFile)); err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	return errors.Join(unix.Chroot("."), os.Chdir("/"))
}

// confine sets the limits and gives up all rights but the agent's.
func (m Machine) confine() error {
	unix.Umask(0o022)
	for resource, limit := range map[int]uint64{unix.RLIMIT_NOFILE: m.Files, unix.RLIMIT_NPROC: m.NProc, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	keep := capabilities()
	for c := range uintptr(64) {
		if keep[c] {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("give up rights: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return seccomp.EnterInside() // this thread becomes the agent, and all commands are its children
}
