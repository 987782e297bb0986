package microvm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestHiddenFilesThatWereMovedAreRefused: another sandbox, which may write to the directory, moved what an
// ignore file hides, after that was looked at and before the machine gets its copy of the directory. The machine is
// refused, as a container of gVisor and of runc is (mounts.TestPinsCover). The control is what was not moved.
func TestHiddenFilesThatWereMovedAreRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	orFail(t, err)
	conf := filepath.Join(dir, "project", "conf")
	orFail(t, os.MkdirAll(conf, 0o755))
	none := filepath.Join(dir, "none")
	orFail(t, os.WriteFile(none, nil, 0o644))
	orFail(t, os.WriteFile(filepath.Join(conf, "key"), []byte("what nobody inside may read"), 0o644))
	identity := func(path string) hostpath.Identity {
		p, err := hostpath.Resolve(path, nil)
		orFail(t, err)
		defer p.Close()
		return p.ID
	}
	spec := engine.Spec{
		Limits: engine.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}, Owner: engine.Owner{UID: 1000, GID: 1000, HostUID: os.Geteuid(), HostGID: os.Getegid()},
		Mounts: []engine.Mount{
			{Source: filepath.Dir(conf), Destination: "/w", ReadOnly: true, Origin: identity(filepath.Dir(conf))},
			{Source: none, Destination: "/w/conf/key", ReadOnly: true, Around: identity(conf)},
		},
	}
	l, err := layOut(t.Context(), spec)
	if err != nil || len(l.images) != 1 || len(l.images[0].hidden) != 1 {
		t.Fatal("the control:", err, l.images)
	}
	orFail(t, os.Rename(conf, conf+"2"))
	orFail(t, os.Mkdir(conf, 0o755))
	orFail(t, os.WriteFile(filepath.Join(conf, "key"), nil, 0o644))
	if _, err := layOut(t.Context(), spec); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("the machine is shown conf2/key, which is hidden: %v", err)
	}
}

func orFail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsHiddenIsInNoImage: root inside a machine could look below what is laid over what an
// ignore file hides, so the image has none of it, and has the rest.
func TestWhatIsHiddenIsInNoImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounts need root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	orFail(t, err)
	folder := filepath.Join(dir, "project")
	orFail(t, os.MkdirAll(filepath.Join(folder, "hidden-dir"), 0o755))
	for _, name := range []string{"shown", "key", "hidden-dir/key"} {
		orFail(t, os.WriteFile(filepath.Join(folder, name), []byte("the text of "+name), 0o644))
	}
	none := filepath.Join(dir, "none")
	orFail(t, os.WriteFile(none, nil, 0o644))
	p, err := hostpath.Resolve(folder, nil)
	orFail(t, err)
	defer p.Close()
	whole := folderImage{Mount: engine.Mount{Source: folder, Destination: "/w", ReadOnly: true, Origin: p.ID}}
	less := whole
	less.hidden = []engine.Mount{
		{Source: none, Destination: "/w/key", ReadOnly: true, Around: p.ID},
		{Destination: "/w/hidden-dir", ReadOnly: true, SizeBytes: 1 << 20, Around: p.ID},
	}
	other, err := hostpath.Resolve(dir, nil)
	orFail(t, err)
	defer other.Close()
	_, below := hiddenIn(whole.Mount, []engine.Mount{
		whole.Mount,
		{Source: dir, Destination: "/w/hidden-dir"},
		{Source: none, Destination: "/w/hidden-dir/key", ReadOnly: true, Around: other.ID},
		{Source: none, Destination: "/w/hidden-dir/absent", ReadOnly: true, Around: other.ID},
	})
	mounted := whole
	mounted.below = below
	for name, c := range map[string]struct {
		of    folderImage
		texts []string
	}{
		"control": {whole, []string{"the text of shown", "the text of key", "the text of hidden-dir/key"}},
		"hidden":  {less, []string{"the text of shown"}},
		"mounted": {mounted, []string{"the text of shown", "the text of key"}},
	} {
		to := filepath.Join(dir, name+".img")
		orFail(t, copyFolder(t.Context(), c.of, engine.Owner{UID: 1000, GID: 1000}, to))
		made, err := os.ReadFile(to)
		orFail(t, err)
		for _, text := range []string{"the text of shown", "the text of key", "the text of hidden-dir/key"} {
			if got, want := bytes.Contains(made, []byte(text)), slices.Contains(c.texts, text); got != want {
				t.Errorf("%s: the image has %q: %t", name, text, got)
			}
		}
		if left, err := filepath.Glob(to + ".*"); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %q, %v", name, left, err)
		}
	}
}
