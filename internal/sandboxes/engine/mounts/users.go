package mounts

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// userNamespace is one with a mapping, for mounts to be mapped by. No process is in it: the
// one that made it is stopped before it runs anything, and killed.
func userNamespace(uids, gids []specs.LinuxIDMapping) (*os.File, error) {
	// The process is traced by the thread that starts it, and killed when that ends; other threads of ours do end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child, err := os.StartProcess("/proc/self/exe", []string{"user-namespace"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: mapped(uids), GidMappings: mapped(gids),
			Ptrace: true, Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer func() {
		_ = child.Kill()
		_, _ = child.Wait()
	}()
	return os.Open("/proc/" + strconv.Itoa(child.Pid) + "/ns/user")
}

func mapped(ids []specs.LinuxIDMapping) []syscall.SysProcIDMap {
	all := make([]syscall.SysProcIDMap, 0, len(ids))
	for _, m := range ids {
		all = append(all, syscall.SysProcIDMap{ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size)})
	}
	return all
}
