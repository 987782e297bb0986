//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is where control groups are mounted.
const tree = "/sys/fs/cgroup"

// control looks for what must not be here. It is the check that fails.
func control(context.Context) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " - cgroup ") {
			return "a controller of version 1 is mounted: " + line, nil
		}
	}
	return "", errors.New("no controller of version 1 is mounted")
}

// guest is what the host says of this machine: systemd, and control groups of version 2
// alone.
func guest(ctx context.Context) (string, error) {
	if _, err := control(ctx); err == nil {
		return "", errors.New("control groups of version 1 are mounted beside")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(tree, &st); err != nil {
		return "", err
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return "", fmt.Errorf("%s is of the type %#x", tree, st.Type)
	}
	var host unix.Utsname
	if err := unix.Uname(&host); err != nil {
		return "", err
	}
	first, err := os.ReadFile("/proc/1/comm")
	if err != nil || strings.TrimSpace(string(first)) != "systemd" {
		return "", errors.Join(fmt.Errorf("PID 1 is %q", first), err)
	}
	version, err := must(ctx, "systemctl", "--version")
	if err != nil {
		return "", err
	}
	failed, err := must(ctx, "systemctl", "--failed", "--no-legend", "--plain")
	if err != nil || failed != "" {
		return "", errors.Join(fmt.Errorf("units have failed: %s", failed), err)
	}
	systemd, _, _ := strings.Cut(version, "\n")
	return fmt.Sprintf("Linux %s, %s, cgroup2fs alone", unix.ByteSliceToString(host.Release[:]), systemd), nil
}

// groups are the control groups with a name.
func groups(name string) (found []string) {
	_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // groups come and go meanwhile
		}
		if ok, _ := filepath.Match(name, d.Name()); d.IsDir() && ok {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// processesName ends the name of the group of an installation's own processes, which is there for
// as long as its daemon is.
const processesName = "-processes"

// sandboxGroups are the groups of sandboxes, and those above them.
func sandboxGroups() []string {
	return slices.DeleteFunc(groups("cofferdam-*"), func(group string) bool { return strings.HasSuffix(group, processesName) })
}

// processes: the gateway and the keeper are in groups of their own, whose limits the kernel has.
func processes(context.Context) (string, error) { return processesBelow(tree) }

// processesBelow is that for an installation whose groups are below a directory.
func processesBelow(above string) (string, error) {
	found := slices.DeleteFunc(groups("cofferdam-*"+processesName), func(group string) bool { return !strings.HasPrefix(group, above+"/") })
	if len(found) != 1 {
		return "", fmt.Errorf("below %s the groups of processes are %v, want one", above, found)
	}
	var seen []string
	for _, name := range []string{"gateway", "keeper"} {
		group := filepath.Join(found[0], name)
		pids, err := read(filepath.Join(group, "cgroup.procs"))
		if err != nil {
			return "", err
		}
		isNamed := func(argv []string) bool { return len(argv) > 1 && argv[1] == name }
		if !slices.ContainsFunc(running(isNamed), func(pid int) bool { return slices.Contains(strings.Fields(pids), strconv.Itoa(pid)) }) {
			return "", fmt.Errorf("in %s are the processes %q, and of the %s %v", group, pids, name, running(isNamed))
		}
		for _, file := range []string{"memory.max", "pids.max"} {
			limit, err := read(filepath.Join(group, file))
			if err != nil || limit == "max" {
				return "", errors.Join(fmt.Errorf("%s of %s is %q", file, group, limit), err)
			}
			seen = append(seen, fmt.Sprintf("%s %s %s", name, file, limit))
		}
	}
	return strings.Join(seen, ", "), nil
}

// members are the processes of a sandbox, by its one group.
func members(id string) (group, pids string, err error) {
	found := groups(id)
	if len(found) != 1 {
		return "", "", fmt.Errorf("sandbox %s has the control groups %v, want one", id, found)
	}
	// A container's own processes may be in a group below.
	var all []string
	err = filepath.WalkDir(found[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, strings.Fields(string(data))...)
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no process is in %s", found[0])
	}
	return found[0], strings.Join(all, " "), err
}

// limited is the policy of a sandbox whose limits are looked for in its group.
const limited = "defaults: { max_memory_mb: 512, max_cpu: 1.5, max_pids: 100 }\npackages: { default: deny }\n"

// limits: the kernel has the policy's limits of each engine's sandboxes, and counts what
// they use.
func limits(ctx context.Context) (string, error) {
	policy, err := policyFile(limited)
	if err != nil {
		return "", err
	}
	var seen []string
	for _, engine := range []string{"gvisor", "runc"} {
		b, err := create(ctx, "--engine", engine, "--policy", policy)
		if err != nil {
			return "", err
		}
		told, err := b.limits(engine)
		if err := errors.Join(err, b.remove(ctx)); err != nil {
			return "", fmt.Errorf("%s: %w", engine, err)
		}
		seen = append(seen, told)
	}
	if left := sandboxGroups(); len(left) > 0 {
		return "", fmt.Errorf("the last sandbox left %v", left)
	}
	return strings.Join(seen, "; "), nil
}

func (b box) limits(engine string) (string, error) {
	group, pids, err := members(b.id)
	if err != nil {
		return "", err
	}
	for file, want := range map[string]string{
		"memory.max": "536870912", "memory.swap.max": "0", "cpu.max": "150000 100000",
	} {
		if got, err := read(filepath.Join(group, file)); err != nil || got != want {
			return "", errors.Join(fmt.Errorf("%s of %s is %q, want %q", file, group, got, want), err)
		}
	}
	for _, file := range []string{"pids.max", "memory.current", "pids.current"} {
		if got, err := read(filepath.Join(group, file)); err != nil || got == "max" || got == "0" {
			return "", errors.Join(fmt.Errorf("%s of %s is %q", file, group, got), err)
		}
	}
	return fmt.Sprintf("%s: %d processes in %s", engine, len(strings.Fields(pids)), group), nil
}

func read(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}
