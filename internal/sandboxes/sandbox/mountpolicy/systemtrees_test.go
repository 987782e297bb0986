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
)

// TestKernelsTreesUnderOtherNames: /proc, /sys and /dev are never shown. They are no less the host's kernel's where
// they are mounted a second time, as in every chroot that somebody builds in a project.
func TestKernelsTreesUnderOtherNames(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root")
	}
	for _, tree := range systemTrees() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked: the thread ends with its namespace
			project := t.TempDir()
			inner := filepath.Join(project, "rootfs", filepath.Base(tree))
			check := func(source string) error {
				c, err := Rules{}.Check(Mount{Source: source, Destination: "/w"})
				if err == nil {
					c.Close()
				}
				if copied := CheckCopied(source); (copied == nil) != (err == nil) {
					t.Errorf("%s may be mounted: %v, and copied: %v", source, err, copied)
				}
				return err
			}
			if err := errors.Join(os.MkdirAll(inner, 0o755), unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), check(project)); err != nil { // the control
				t.Error(err)
				return
			}
			if err := check(tree); !errors.Is(err, fault.ErrInvalid) { // the control
				t.Errorf("%s itself: %v", tree, err)
			}
			if err := unix.Mount(tree, inner, "", unix.MS_BIND, ""); err != nil {
				t.Error(err)
				return
			}
			for _, source := range []string{inner, project} {
				if err := check(source); !errors.Is(err, fault.ErrInvalid) {
					t.Errorf("%s with %s at %s may be shown: %v", source, tree, inner, err)
				}
			}
			if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
			// Of its own, it is no part of those three, and the kernel's all the same.
			if err := unix.Mount("devpts", inner, "devpts", 0, ""); err != nil {
				t.Error(err)
				return
			}
			if err := check(project); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%s with terminals of the kernel's at %s may be shown: %v", project, inner, err)
			}
			if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}()
		<-done
	}
}

// TestACopyOfWhatAnothersLinkLeadsTo: it is said what to do about it, and of the kernel's file systems that it was a copy that
// was wanted.
func TestACopyOfWhatAnothersLinkLeadsTo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can make another user's links")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(t.TempDir(), link), CheckCopied(link), os.Lchown(link, 1000, 1000)); err != nil { // the control
		t.Fatal(err)
	}
	for dir, want := range map[string]string{link: "go to the directory that it leads to", "/proc": "can't be copied"} {
		if err := CheckCopied(dir); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
