package hostpath

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStrangersInAUserNamespace: a user namespace that has no number for root shows every other user's files as it does root's.
// A third user's link is a stranger's there all the same. The controls are one's own link, and the host's own.
func TestStrangersInAUserNamespace(t *testing.T) {
	const me, other = 1000, 1001
	if at := os.Getenv("COFFERDAM_TEST_STRANGERS"); at != "" { // in the namespace
		for _, name := range []string{"own", "theirs", "/etc/passwd"} {
			if !filepath.IsAbs(name) {
				name = filepath.Join(at, name)
			}
			p, err := Resolve(name, nil)
			_, refused := errors.AsType[*LinkError](closed(p, err))
			stranger, serr := StrangerOf(name)
			if want := strings.HasSuffix(name, "theirs"); refused != want || (stranger != nil) != want || serr != nil || err != nil && !want {
				t.Errorf("%s: %v; %v, %v", name, err, stranger, serr)
			}
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root can make two users' links")
	}
	// Directly in /tmp, which is root's: a directory in between would be shown as another user's.
	at, err := os.MkdirTemp("", "strangers") //nolint:usetesting // see above
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	must(t, errors.Join(os.Chmod(at, 0o755), os.Chown(at, me, me)))
	for name, owner := range map[string]int{"own": me, "theirs": other} {
		link := filepath.Join(at, name)
		must(t, errors.Join(os.Symlink("/etc", link), os.Lchown(link, owner, owner)))
	}
	mapped := []syscall.SysProcIDMap{{ContainerID: 0, HostID: me, Size: 1}}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "COFFERDAM_TEST_STRANGERS="+at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapped, GidMappings: mapped, Credential: &syscall.Credential{}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("there are no user namespaces here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
}
