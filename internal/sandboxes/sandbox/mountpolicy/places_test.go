package mountpolicy

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestOwnUnderOtherNames: the installation's state is told by where it lies, as when a container
// has one volume for it and another one with all of its parent.
func TestOwnUnderOtherNames(t *testing.T) {
	t.Parallel()
	table := hostpath.ParseTable(`1 0 0:40 / / rw - overlay overlay rw
2 1 8:1 /srv/cofferdam /var/lib/cofferdam rw - ext4 /dev/sda1 rw
3 1 8:1 /srv /projects rw - ext4 /dev/sda1 rw
4 1 0:41 / /run rw - tmpfs tmpfs rw
5 1 8:1 /srv/cofferdam/sandboxes /home/u/a\040b/deep rw - ext4 /dev/sda1 rw
`)
	own := []string{"/var/lib/cofferdam", "/run/cofferdam"}
	for path, at := range map[string]string{
		"/projects": "/projects", "/projects/cofferdam": "/projects/cofferdam", "/projects/cofferdam/authority": "/projects/cofferdam/authority",
		"/home/u/a b": "/home/u/a b/deep", "/home/u/a b/deep/x": "/home/u/a b/deep/x", "/home": "/home/u/a b/deep",
		// The controls.
		"/projects/other": "", "/projects/cofferdam-2": "", "/home/u/c": "", "/srv/cofferdam": "", "/var/lib/other": "",
	} {
		if _, got := findShownOwn(table, own, path); got != at {
			t.Errorf("%s shows it at %q, want %q", path, got, at)
		}
	}
}

// TestOwnBoundElsewhere is the same with a real mount.
func TestOwnBoundElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		own, project := t.TempDir(), t.TempDir()
		inner := filepath.Join(project, "inner")
		rules := Rules{Own: []string{own}}
		check := func() error {
			c, err := rules.Check(Mount{Source: project, Destination: "/w"})
			if err == nil {
				c.Close()
			}
			return err
		}
		err := errors.Join(os.Mkdir(inner, 0o755), unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), check()) // the control
		if err == nil {
			err = unix.Mount(own, inner, "", unix.MS_BIND, "")
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := check(); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a project with the state in it: %v", err)
		}
		if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	<-done
}

// TestGuardedUnderOtherNames: a policy that lies in a read-write mount by another of its names
// is covered there, or refused.
func TestGuardedUnderOtherNames(t *testing.T) {
	t.Parallel()
	table := hostpath.ParseTable(`1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 /srv/p /p rw - ext4 /dev/sdb1 rw
3 1 8:2 /srv /srv rw - ext4 /dev/sdb1 rw
4 1 8:1 /etc/policies /home/u/project/policies rw - ext4 /dev/sda1 rw
`)
	for _, c := range []struct{ path, dir, want string }{
		{"/p/policy.yaml", "/srv/p", "/srv/p/policy.yaml"},
		{"/p/policy.yaml", "/srv", "/srv/p/policy.yaml"},
		{"/srv/p/policy.yaml", "/p", "/p/policy.yaml"},
		{"/etc/policies/a.yaml", "/home/u/project", "/home/u/project/policies/a.yaml"},
		{"/home/u/project/a.yaml", "/home/u/project", "/home/u/project/a.yaml"},
		// The controls.
		{"/srv/q/policy.yaml", "/p", ""},
		{"/etc/other/a.yaml", "/home/u/project", ""},
		{"/p-2/policy.yaml", "/srv/p", ""},
	} {
		if got, _ := table.NameUnder(c.path, c.dir); got != c.want {
			t.Errorf("%s below %s is %q, want %q", c.path, c.dir, got, c.want)
		}
	}
}

// TestGuardOfBoundPolicy is the same with a real mount.
func TestGuardOfBoundPolicy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		project, other := t.TempDir(), t.TempDir()
		if err := errors.Join(
			os.WriteFile(filepath.Join(project, "policy.yaml"), nil, 0o644), os.WriteFile(filepath.Join(other, "apart.yaml"), nil, 0o644),
			unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		); err != nil {
			t.Error(err)
			return
		}
		alias := t.TempDir()
		if err := unix.Mount(project, alias, "", unix.MS_BIND, ""); err != nil {
			t.Error(err)
			return
		}
		asked := []Mount{{Source: project, Destination: "/w", ReadWrite: true}}
		all, err := Rules{}.Lay(t.Context(), asked, []string{filepath.Join(alias, "policy.yaml")})
		if err != nil || len(all) != 2 || all[1].Destination != "/w/policy.yaml" || !all[1].ReadOnly {
			t.Errorf("the policy is not covered: %+v, %v", all, err)
		}
		if all, err := (Rules{}).Lay(t.Context(), asked, []string{filepath.Join(other, "apart.yaml")}); err != nil || len(all) != 1 { // the control
			t.Errorf("%+v, %v", all, err)
		}
		if err := unix.Unmount(alias, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	<-done
}
