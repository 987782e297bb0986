package executable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// replaceBy puts a copy of a program in the place of another, as an agent or an installer does.
func replaceBy(t *testing.T, program, at string) {
	t.Helper()
	copyOf(t, program, at+".new")
	if err := os.Rename(at+".new", at); err != nil {
		t.Fatal(err)
	}
}

func named(t *testing.T, h *executable.Held) string {
	t.Helper()
	name, err := h.Name()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestHeldIsStartedAsItWasLookedAt: between the look and the start somebody puts another program there. The control:
// by the path that one is started.
func TestHeldIsStartedAsItWasLookedAt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bin", "program")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	copyOf(t, "/bin/true", path)
	var trees []hostpath.Tree
	h := executable.Hold(path, filepath.Join(dir, "own"), func() []hostpath.Tree { return trees })
	name := named(t, h)
	if filepath.Base(name) != "program" || !strings.HasPrefix(name, filepath.Join(dir, "own")+"/") {
		t.Errorf("it is started by %s", name)
	}
	trees = []hostpath.Tree{{Path: filepath.Dir(path)}} // a cover was lost
	replaceBy(t, "/bin/false", path)
	for _, n := range []string{name, named(t, h)} {
		if err := exec.CommandContext(t.Context(), n).Run(); err != nil {
			t.Errorf("%s did not run as it was looked at: %v", n, err)
		}
	}
	if err := exec.CommandContext(t.Context(), path).Run(); err == nil {
		t.Error("the control: the other program is not there")
	}
	// A first look takes none.
	for _, own := range []string{"", filepath.Join(dir, "own2")} {
		if name, err := executable.Hold(path, own, func() []hostpath.Tree { return trees }).Name(); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "uv tool install") {
			t.Errorf("%q, %v", name, err)
		}
	}
	// An installer's is taken, where no sandbox could write.
	trees = nil
	if err := exec.CommandContext(t.Context(), named(t, h)).Run(); err == nil {
		t.Error("a program that was installed anew is not taken")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if name, err := h.Name(); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("it is gone: %q, %v", name, err)
	}
}

// TestHeldOfAnotherFileSystem: where no second name can be had it is a copy.
func TestHeldOfAnotherFileSystem(t *testing.T) {
	own, err := os.MkdirTemp("/dev/shm", "held-*") //nolint:usetesting // it is of another file system than t.TempDir
	if err != nil {
		t.Fatalf("there is no other file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	path := filepath.Join(t.TempDir(), "program")
	copyOf(t, "/bin/true", path)
	h := executable.Hold(path, filepath.Join(own, "programs"), nil)
	name := named(t, h)
	if err := exec.CommandContext(t.Context(), name).Run(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if again := named(t, executable.Hold(path, filepath.Join(own, "programs"), nil)); again != name {
		t.Errorf("another daemon starts it by %s, and not %s", again, name)
	}
}

// TestHeldThatIsWrittenTo: somebody writes to the very file that is held, where a second name shows what it is now, and a
// copy what it was. It is taken if no sandbox could have done that, and refused otherwise.
func TestHeldThatIsWrittenTo(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "held-*") //nolint:usetesting // it is of another file system than t.TempDir
	if err != nil {
		t.Fatalf("there is no other file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	for kind, own := range map[string]string{"a second name": t.TempDir(), "a copy": other} {
		path := filepath.Join(t.TempDir(), "program")
		copyOf(t, "/bin/true", path)
		var trees []hostpath.Tree
		h := executable.Hold(path, filepath.Join(own, "own"), func() []hostpath.Tree { return trees })
		first := named(t, h)
		copyOf(t, "/bin/false", path)
		if err := exec.CommandContext(t.Context(), named(t, h)).Run(); err == nil {
			t.Errorf("%s: a program that was written anew is not taken", kind)
		}
		if err := os.RemoveAll(filepath.Join(own, "own")); err != nil {
			t.Fatal(err)
		}
		if name := named(t, h); exec.CommandContext(t.Context(), name).Run() == nil {
			t.Errorf("%s: after the directory was cleared it is started by %s, first by %s", kind, name, first)
		}
		trees = []hostpath.Tree{{Path: filepath.Dir(path)}} // a cover was lost
		named(t, h)                                         // the control: nobody has written it yet
		copyOf(t, "/bin/true", path)
		if name, err := h.Name(); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s: what an agent could have written is started by %s: %v", kind, name, err)
		}
	}
}

// TestSystemAsksTheRecord: a name in a directory of the host's own may be a link of a person's. The control: nobody could
// write where it leads.
func TestSystemAsksTheRecord(t *testing.T) {
	project := t.TempDir()
	link := "/usr/local/bin/cofferdam-test-" + filepath.Base(filepath.Dir(project))
	copyOf(t, "/bin/true", filepath.Join(project, "program"))
	if err := os.Symlink(filepath.Join(project, "program"), link); err != nil {
		processtest.NeedRoot(t, err)
	}
	t.Cleanup(func() { _ = os.Remove(link) })
	trees := func() []hostpath.Tree { return []hostpath.Tree{{Path: project}} }
	if got := executable.System(filepath.Base(link), trees); got != "" {
		t.Errorf("%s is run", got)
	}
	if got := executable.System("sh", trees); got == "" {
		t.Error("the control: no shell is found")
	}
	for _, none := range []func() []hostpath.Tree{nil, func() []hostpath.Tree { return nil }} {
		if got := executable.System(filepath.Base(link), none); got != link {
			t.Errorf("the control: %q", got)
		}
	}
}
