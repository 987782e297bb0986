package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The oldest kernel with all that the parts need: pidfds that can be waited
// for, and clone into a control group where there is version 2.
const (
	oldestMajor = 5
	oldestMinor = 4
)

func kernel(_ context.Context, in Inputs) []Check {
	const name = "kernel"
	release := readLine(in, "proc/sys/kernel/osrelease")
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return []Check{failCheck(name, "use an x86-64 or arm64 machine", "%s on %s: no engine runs there", release, runtime.GOARCH)}
	}
	var major, minor int
	if n, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || n != 2 {
		return []Check{warnCheck(name, "", "the kernel's version %q is not understood", release)}
	}
	if major < oldestMajor || (major == oldestMajor && minor < oldestMinor) {
		return []Check{failCheck(name, "use a kernel from "+fmt.Sprintf("%d.%d on", oldestMajor, oldestMinor), "Linux %s is too old", release)}
	}
	return []Check{okCheck(name, "Linux %s on %s", release, runtime.GOARCH)}
}

// namespaces reads what may forbid a normal user to make namespaces; whether
// they can be made in fact, the engine's own probe tells.
func namespaces(_ context.Context, in Inputs) []Check {
	const name = "user namespaces"
	if limit, err := strconv.Atoi(readLine(in, "proc/sys/user/max_user_namespaces")); err == nil && limit == 0 {
		return []Check{failCheck(name, "sysctl -w user.max_user_namespaces=10000", "switched off (user.max_user_namespaces is 0)")}
	}
	if in.UID == 0 {
		return []Check{okCheck(name, "available")}
	}
	if readLine(in, "proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return []Check{failCheck(name, "sudo sysctl -w kernel.unprivileged_userns_clone=1, or run cofferdam as root", "not for normal users (kernel.unprivileged_userns_clone is 0)")}
	}
	if readLine(in, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		return []Check{failCheck(name, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for runsc, or run cofferdam as root", "AppArmor keeps them from normal users")}
	}
	return []Check{okCheck(name, "available to normal users")}
}

func controlGroups(_ context.Context, in Inputs) []Check {
	const name = "control groups"
	dir := filepath.Join(in.Root, "sys/fs/cgroup")
	exists := func(p string) bool { _, err := os.Stat(filepath.Join(dir, p)); return err == nil }
	version := ""
	switch {
	case exists("cgroup.controllers"):
		version = "version 2"
	case exists("memory") && exists("unified"):
		version = "version 1 with an empty version 2 beside it"
	case exists("memory"):
		version = "version 1"
	default:
		return []Check{warnCheck(name, "mount a cgroup hierarchy at /sys/fs/cgroup", "none are mounted: memory, CPU and process limits cannot be enforced, of sandboxes and of the gateway, the keeper and stages")}
	}
	if in.UID != 0 {
		return []Check{okCheck(name, "%s; what is delegated to this user, the engine's line says: without it the gateway, the keeper and stages have no limits of memory, tasks and processors either", version)}
	}
	writable := dir
	if version != "version 2" {
		writable = filepath.Join(dir, "memory")
	}
	if err := unix.Access(writable, unix.W_OK); err != nil {
		return []Check{warnCheck(name, "in a container: run it with a writable /sys/fs/cgroup", "%s, but not writable here: limits cannot be enforced, of sandboxes and of the gateway, the keeper and stages", version)}
	}
	return []Check{okCheck(name, "%s, writable", version)}
}

func stateDirectory(_ context.Context, in Inputs) []Check {
	const name = "state directory"
	if in.State == "" {
		return nil
	}
	info, err := os.Stat(in.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Check{okCheck(name, "%s is made at the first start", in.State)}
	case err != nil:
		return []Check{failCheck(name, "look at the directories above it", "%s cannot be looked at: %v", in.State, err)}
	case !info.IsDir():
		return []Check{failCheck(name, "move it away, or set COFFERDAM_STATE", "%s is not a directory", in.State)}
	}
	var st unix.Stat_t
	if err := unix.Stat(in.State, &st); err == nil && int(st.Uid) != in.UID {
		return []Check{failCheck(name, "set COFFERDAM_STATE to a directory of your own", "%s belongs to user %d, and this is user %d", in.State, st.Uid, in.UID)}
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return []Check{failCheck(name, "chmod go-w "+in.State, "%s can be written by others (mode %04o): nothing in it can be trusted", in.State, mode)}
	}
	if err := unix.Access(in.State, unix.W_OK); err != nil {
		return []Check{failCheck(name, "set COFFERDAM_STATE to a directory that can be written", "%s cannot be written: %v", in.State, err)}
	}
	return []Check{okCheck(name, "%s", in.State)}
}

const (
	littleSpace = 3 << 30 // a template's build with room for a cache
	noSpace     = 300 << 20
)

func diskSpace(_ context.Context, in Inputs) []Check {
	const name = "disk space"
	if in.State == "" {
		return nil
	}
	dir := in.State
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return []Check{warnCheck(name, "", "%s does not say how much is free: %v", dir, err)}
	}
	free := int64(st.Bavail) * st.Bsize
	const fix = "free some, or set COFFERDAM_STATE to a larger disk"
	switch {
	case free < noSpace:
		return []Check{failCheck(name, fix, "%d MB free at %s: sandboxes cannot write", free>>20, dir)}
	case free < littleSpace:
		return []Check{warnCheck(name, fix, "%d MB free at %s: little for templates and the cache", free>>20, dir)}
	}
	return []Check{okCheck(name, "%d GB free at %s", free>>30, dir)}
}

// readLine reads a one-line file of the host; "" if it is not there.
func readLine(in Inputs, path string) string {
	raw, err := os.ReadFile(filepath.Join(in.Root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
