//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unit is the service's name.
const unit = "cofferdam.service"

// kept is the sandbox that lives from one daemon to the next. It is made by restart, and
// ended by stop.
var kept box

// unitStarts: the unit of the package is one that systemd has nothing to say of, and the
// daemon tells systemd that it is ready.
func unitStarts(ctx context.Context) (string, error) {
	if _, err := must(ctx, "install", "-m", "0644", filepath.Join(payload, unit), "/etc/systemd/system/"); err != nil {
		return "", err
	}
	if _, err := must(ctx, "systemctl", "daemon-reload"); err != nil {
		return "", err
	}
	a, err := call(ctx, "systemd-analyze", "verify", unit)
	if err != nil || a.code != 0 || a.out+a.err != "" {
		return "", errors.Join(fmt.Errorf("systemd-analyze verify: %d %s %s", a.code, a.out, a.err), err)
	}
	if _, err := must(ctx, "cofferdam", "serve", "--check"); err != nil {
		return "", err
	}
	if _, err := must(ctx, "systemctl", "enable", "--now", unit); err != nil {
		log, _ := must(ctx, "journalctl", "-u", unit, "--no-pager", "-n", "50")
		return "", fmt.Errorf("%w\n%s", err, log)
	}
	pid, err := mainPID(ctx)
	if err != nil {
		return "", err
	}
	group, err := read(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || group != "0::/system.slice/"+unit {
		return "", errors.Join(fmt.Errorf("the daemon is in %q", group), err)
	}
	version, err := must(ctx, "cofferdam", "version")
	return fmt.Sprintf("active, PID %d in %s; %s", pid, group, strings.ReplaceAll(version, "\n", ", ")), err
}

// property is what systemd says of the service.
func property(ctx context.Context, name string) (string, error) {
	return must(ctx, "systemctl", "show", "--value", "-p", name, unit)
}

// mainPID is the daemon's, of a service that is active.
func mainPID(ctx context.Context) (int, error) {
	state, err := property(ctx, "ActiveState")
	if err != nil || state != "active" {
		return 0, errors.Join(fmt.Errorf("the service is %s", state), err)
	}
	value, err := property(ctx, "MainPID")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(value)
	if err == nil && pid <= 1 {
		err = fmt.Errorf("its main process is %d", pid)
	}
	return pid, err
}

// bounding is a process's bounding set of capabilities.
func bounding(pid int) (uint64, error) {
	status, err := read(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("process %d has no bounding set", pid)
}

// unitSandboxed: the daemon lacks what the unit takes from it, which PID 1 has.
func unitSandboxed(ctx context.Context) (string, error) {
	pid, err := mainPID(ctx)
	if err != nil {
		return "", err
	}
	daemon, err := bounding(pid)
	if err != nil {
		return "", err
	}
	first, err := bounding(1)
	if err != nil {
		return "", err
	}
	for name, number := range map[string]uint{
		"CAP_SYS_MODULE": unix.CAP_SYS_MODULE, "CAP_SYSLOG": unix.CAP_SYSLOG, "CAP_SYS_TIME": unix.CAP_SYS_TIME, "CAP_WAKE_ALARM": unix.CAP_WAKE_ALARM,
	} {
		if first>>number&1 == 0 {
			return "", fmt.Errorf("INCONCLUSIVE: PID 1 lacks %s, too", name)
		}
		if daemon>>number&1 == 1 {
			return "", fmt.Errorf("the daemon has %s", name)
		}
	}
	for _, number := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETUID} {
		if daemon>>number&1 == 0 {
			return "", fmt.Errorf("the daemon lacks capability %d, which it needs", number)
		}
	}
	if err := readOnlyUsr(pid); err != nil {
		return "", err
	}
	for path, want := range map[string]string{
		"/proc/%d/status": "\nSeccomp:\t2\n", "/proc/%d/limits": "Max open files            1048576              1048576", "/proc/%d/oom_score_adj": "-500",
	} {
		got, err := read(fmt.Sprintf(path, pid))
		if err != nil || !strings.Contains(got, want) {
			return "", errors.Join(fmt.Errorf("%s says %s, want %q", fmt.Sprintf(path, pid), got, want), err)
		}
	}
	return "its capabilities, /usr, its filter of system calls, its limits: as the unit says, and not as PID 1's", nil
}

// readOnlyUsr: where the daemon is, /usr can't be written; where this process is, it can.
func readOnlyUsr(pid int) error {
	own := filepath.Join("/usr", "proof-of-writing")
	if err := errors.Join(os.WriteFile(own, nil, 0o600), os.Remove(own)); err != nil {
		return fmt.Errorf("INCONCLUSIVE: /usr can't be written here, too: %w", err)
	}
	its := filepath.Join("/proc", strconv.Itoa(pid), "root", own)
	if err := os.WriteFile(its, nil, 0o600); !errors.Is(err, unix.EROFS) {
		return errors.Join(errors.New("the daemon may write /usr"), err, os.Remove(its))
	}
	return nil
}

// keeper is the process that holds the sandboxes.
func keeper() (int, error) {
	pids := running(func(argv []string) bool { return len(argv) > 1 && argv[1] == "keeper" })
	if len(pids) != 1 {
		return 0, fmt.Errorf("there are the keepers %v, want one", pids)
	}
	return pids[0], nil
}

// running are the processes of this product, by their arguments.
func running(is func(argv []string) bool) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is a good one
	for _, exe := range paths {
		program, err := os.Readlink(exe)
		name := strings.TrimSuffix(filepath.Base(program), " (deleted)")
		if err != nil || name != "cofferdam" && name != "runsc" && name != "runc" && name != "cofferdam-guest" {
			continue
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
		if err == nil && bad == nil && is(strings.Split(string(args), "\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// restart: systemd restarts the service, and the next daemon has what lived.
func restart(ctx context.Context) (string, error) {
	var err error
	if kept, err = create(ctx); err != nil {
		return "", err
	}
	if _, err := kept.sh(ctx, "echo mine >~/f; sleep 1000000 >/dev/null 2>&1 & echo $! >~/pid"); err != nil {
		return "", err
	}
	return adopted(ctx, func(int) error {
		_, err := must(ctx, "systemctl", "restart", unit)
		return err
	})
}

// killed: the daemon is killed, systemd starts it again by itself, and it has what lived.
func killed(ctx context.Context) (string, error) {
	if kept.id == "" {
		return "", errors.New("INCONCLUSIVE: there is no sandbox of the check before")
	}
	return adopted(ctx, func(pid int) error { return unix.Kill(pid, unix.SIGKILL) })
}

// adopted ends the daemon, and wants another with the same keeper and the same processes
// in the same sandbox, which go on.
func adopted(ctx context.Context, end func(pid int) error) (string, error) {
	before, err := mainPID(ctx)
	if err != nil {
		return "", err
	}
	holder, err := keeper()
	if err != nil {
		return "", err
	}
	group, pids, err := members(kept.id)
	if err != nil {
		return "", err
	}
	was := lasting(pids, kept.id)
	if err := end(before); err != nil {
		return "", err
	}
	after := 0
	if err := until(ctx, "another daemon is active", func() bool {
		after, err = mainPID(ctx)
		return err == nil && after != before
	}); err != nil {
		return "", err
	}
	if again, err := keeper(); err != nil || again != holder {
		return "", errors.Join(fmt.Errorf("the keeper was %d and is %d", holder, again), err)
	}
	then, now, err := members(kept.id)
	if is := lasting(now, kept.id); err != nil || then != group || len(was) == 0 || !slices.Equal(was, is) {
		return "", errors.Join(fmt.Errorf("the sandbox was %v in %s, and is %v in %s", was, group, is, then), err)
	}
	if state, err := kept.state(ctx); err != nil || state != "running" {
		return "", errors.Join(fmt.Errorf("it is %s", state), err)
	}
	said, err := kept.sh(ctx, "cat ~/f && kill -0 $(cat ~/pid) && echo alive")
	if err != nil || said != "mine\nalive" {
		return "", errors.Join(fmt.Errorf("inside is %q", said), err)
	}
	return fmt.Sprintf("the daemon was %d and is %d; the keeper %d and the sandbox's processes are the same", before, after, holder), nil
}

// lasting are those of a sandbox's processes that are there from its beginning to its end:
// they have its id in their arguments. Others stand for what runs inside, and come and go.
func lasting(pids, id string) (found []string) {
	for pid := range strings.FieldsSeq(pids) {
		if args, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline")); err == nil && strings.Contains(string(args), id) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found
}

// stop: a stopped service leaves its sandboxes to the next; what docs/operations.md says
// for an uninstallation leaves nothing.
func stop(ctx context.Context) (string, error) {
	if kept.id == "" {
		return "", errors.New("INCONCLUSIVE: there is no sandbox that could be left")
	}
	if _, err := must(ctx, "systemctl", "stop", unit); err != nil {
		return "", err
	}
	if _, _, err := members(kept.id); err != nil {
		return "", fmt.Errorf("stopping the service ended the sandbox: %w", err)
	}
	for _, argv := range [][]string{
		{"systemctl", "start", unit}, {"cofferdam", "stop", "--force"}, {"systemctl", "disable", "--now", unit},
	} {
		if _, err := must(ctx, argv...); err != nil {
			return "", err
		}
	}
	if pids := running(func([]string) bool { return true }); len(pids) > 0 {
		list, _ := must(ctx, "ps", "-o", "pid,ppid,args", "-p", strings.Trim(strings.ReplaceAll(fmt.Sprint(pids), " ", ","), "[]"))
		return "", fmt.Errorf("these processes are left:\n%s", list)
	}
	if left := append(groups("cofferdam*"), groups(kept.id)...); len(left) > 0 {
		return "", fmt.Errorf("these control groups are left: %v", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "cofferdam") && !strings.Contains(line, "/var/lib/cofferdam/templates ") {
			return "", fmt.Errorf("a mount is left: %s", line)
		}
	}
	if loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file"); err != nil || len(loops) > 0 {
		return "", errors.Join(fmt.Errorf("loop devices are left: %v", loops), err)
	}
	return "a stopped service left its sandbox to the next; after `cofferdam stop --force` and a disabled unit there are no processes, groups, mounts or loop devices", nil
}
