package dialer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForbidden: only what this kernel, or this container, refuses for good takes the box away.
// A limit that is reached now, and what the kernel finds invalid for another reason, do not.
func TestForbidden(t *testing.T) {
	proc := func(namespaces bool, networks, users string) string {
		dir := t.TempDir()
		write := func(name, text string) {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if namespaces {
			write("self/ns/net", "")
		}
		write("sys/user/max_net_namespaces", networks+"\n")
		write("sys/user/max_user_namespaces", users+"\n")
		return dir
	}
	usual, none, noUsers, old := proc(true, "1000", "1000"), proc(true, "0", "1000"), proc(true, "1000", "0"), proc(false, "1", "1")
	for _, c := range []struct {
		err  error
		proc string
		want bool
	}{
		{unix.EPERM, usual, true},
		{unix.EACCES, usual, true},
		{unix.ENOSYS, usual, true},
		{nil, usual, false},
		{unix.EAGAIN, usual, false},
		{unix.ENOMEM, usual, false},
		{unix.ENOSPC, usual, false},
		{unix.EUSERS, usual, false},
		{unix.ENOSPC, none, true},
		{unix.ENOSPC, noUsers, true},
		{unix.EUSERS, noUsers, true},
		{unix.ENOSPC, t.TempDir(), false},
		{unix.EINVAL, usual, false},
		{unix.EINVAL, old, true},
		{errors.New("other"), none, false},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("fork/exec: %w", err)
		}
		if got := forbidden(err, c.proc); got != c.want {
			t.Errorf("%v under %s: %v", c.err, c.proc, got)
		}
	}
}
