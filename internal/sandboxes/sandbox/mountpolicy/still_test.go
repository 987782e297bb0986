package mountpolicy

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestCheckStill: somebody builds a root in a project, or shows Cofferdam's state there, after it was checked.
func TestCheckStill(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
			t.Error(err)
			return
		}
		project, state := t.TempDir(), t.TempDir()
		at := filepath.Join(project, "at")
		if err := errors.Join(os.Mkdir(at, 0o755), os.Mkdir(filepath.Join(state, "homes"), 0o755)); err != nil {
			t.Error(err)
			return
		}
		rules := Rules{Own: []string{state}}
		all, err := rules.Lay(t.Context(), []Mount{{Source: project, Destination: "/w"}}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		all = append(all, engine.Mount{Source: filepath.Join(state, "homes"), Destination: "/home/agent/.claude"}, engine.Mount{Destination: "/tmp"})
		for name, tc := range map[string]struct {
			mount      func() error
			ofTemplate []string
			says       string
		}{
			"nothing":        {func() error { return unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m") }, nil, ""},
			"the kernel's":   {func() error { return unix.Mount("proc", at, "proc", 0, "") }, nil, "there is a file system of the host's kernel (proc)"},
			"the state":      {func() error { return unix.Mount(state, at, "", unix.MS_BIND, "") }, nil, "where Cofferdam keeps its own state"},
			"the template's": {func() error { return unix.Mount("proc", at, "proc", 0, "") }, []string{"/w"}, ""},
		} {
			if err := tc.mount(); err != nil {
				t.Error(err)
				return
			}
			err := rules.CheckStill(all, tc.ofTemplate)
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%s: %v, want %q", name, err, tc.says)
			}
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}
	}()
	<-done
}
