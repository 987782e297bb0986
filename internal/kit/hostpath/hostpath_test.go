package hostpath

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// laid is a directory with a project in it, which somebody else may write to.
func laid(t *testing.T) (dir string, project Tree) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "project", "data", "deep"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "secret"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "project", "file"), []byte("ours"), 0o600))
	must(t, os.Symlink("../secret", filepath.Join(dir, "project", "link")))
	must(t, os.Symlink("project", filepath.Join(dir, "outside")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	p, err := Resolve(filepath.Join(dir, "project"), nil)
	must(t, err)
	defer p.Close()
	return dir, Tree{Path: p.Name, ID: p.ID}
}

func TestResolve(t *testing.T) {
	dir, project := laid(t)
	for name, want := range map[string]string{
		"project/data":                 "project/data",
		"outside/data":                 "project/data",
		"project/../project/file":      "project/file",
		"outside/../secret":            "secret",
		"project/data/deep/../../file": "project/file",
	} {
		p, err := Resolve(dir+"/"+name, []Tree{project})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Name != filepath.Join(dir, want) {
			t.Errorf("%s leads to %s, want %s", name, p.Name, want)
		}
		p.Close()
	}
	var link *LinkError
	for _, name := range []string{"project/link", "outside/link", "project/link/x", "project/data/../link"} {
		if p, err := Resolve(dir+"/"+name, []Tree{project}); !errors.As(err, &link) || link.Link != filepath.Join(dir, "project", "link") {
			t.Errorf("%s: got %v, %v, want a refusal that names the link", name, p, err)
		}
		// The tree is known under another name as well: by what it is.
		if p, err := Resolve(dir+"/"+name, []Tree{{Path: "/elsewhere", ID: project.ID}}); !errors.As(err, &link) {
			t.Errorf("%s in a tree of another name: got %v, %v", name, p, err)
		}
	}
	// The control: where nobody else writes, it is followed.
	p, err := Resolve(filepath.Join(dir, "project", "link"), nil)
	must(t, err)
	p.Close()
	if p.Name != filepath.Join(dir, "secret") {
		t.Errorf("the link leads to %s", p.Name)
	}
	if _, err := Resolve(filepath.Join(dir, "loop"), nil); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
	if _, err := Resolve(filepath.Join(dir, "absent"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := Resolve("project", nil); err == nil {
		t.Error("a relative path was opened")
	}
}

// TestOpen: what has taken the name of what was looked at is not opened, in whatever way it
// got it.
func TestOpen(t *testing.T) {
	for name, swap := range map[string]func(data, other string) error{
		"link": func(data, other string) error {
			return errors.Join(os.Rename(data, data+".old"), os.Symlink(other, data))
		},
		"rename": func(data, other string) error {
			return errors.Join(os.Rename(data, data+".old"), os.Rename(other, data))
		},
		"exchange": func(data, other string) error { return unix.Renameat2(-100, data, -100, other, unix.RENAME_EXCHANGE) },
		"fifo":     func(data, _ string) error { return errors.Join(os.Rename(data, data+".old"), unix.Mkfifo(data, 0o600)) },
		"file": func(data, _ string) error {
			return errors.Join(os.Rename(data, data+".old"), os.WriteFile(data, nil, 0o600))
		},
		"remade": func(data, _ string) error { return errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o755)) },
		"gone":   func(data, _ string) error { return os.RemoveAll(data) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := laid(t)
			data := filepath.Join(dir, "project", "data")
			p, err := Resolve(data, nil)
			must(t, err)
			p.Close()
			again, err := Open(p.Name, p.ID) // the control
			must(t, err)
			again.Close()
			must(t, swap(data, filepath.Join(dir, "secret")))
			if now, err := Open(p.Name, p.ID); err == nil {
				t.Errorf("%+v was opened for %+v", now.ID, p.ID)
			}
		})
	}
}

func TestTypes(t *testing.T) {
	dir, _ := laid(t)
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	var other *TypeError
	for _, path := range []string{filepath.Join(dir, "fifo"), socket, "/dev/null"} {
		if _, err := Resolve(path, nil); !errors.As(err, &other) || other.Path != path {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := Open(path, Identity{}); !errors.As(err, &other) {
			t.Errorf("%s: %v", path, err)
		}
	}
	p, err := Open(filepath.Join(dir, "project", "file"), Identity{Type: File})
	must(t, err)
	defer p.Close()
	if text, err := p.ReadFile(4); err != nil || string(text) != "ours" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := p.ReadFile(3); err == nil {
		t.Error("more was read than was asked for")
	}
	if _, err := Open(filepath.Join(dir, "project"), Identity{Type: File}); err == nil {
		t.Error("a directory was opened as a file")
	}
}

// TestBelow: with openat2 and without it is the same.
func TestBelow(t *testing.T) {
	dir, project := laid(t)
	p, err := Open(project.Path, project.ID)
	must(t, err)
	defer p.Close()
	for rel, want := range map[string]error{
		"data": nil, "data/deep": nil, "": nil, ".": nil, "file": nil, "link": unix.ELOOP, "link/x": unix.ELOOP, "absent": unix.ENOENT,
		"../secret": unix.EXDEV, "data/../../secret": unix.EXDEV, "file/x": unix.ENOTDIR,
	} {
		for how, open := range map[string]func(int, string) (int, error){"at once": atOnce, "stepwise": stepwise} {
			if how == "at once" && rel == "" {
				continue // below makes it a dot
			}
			fd, err := open(p.Fd(), rel)
			if err == nil {
				must(t, unix.Close(fd))
			}
			// A path that ends below ".." may be one of the directory for the kernel.
			if !errors.Is(err, want) {
				t.Errorf("%q %s in %s: got %v, want %v", rel, how, dir, err, want)
			}
		}
	}
	var link *LinkError
	if _, err := p.Below("link", Identity{}); !errors.As(err, &link) {
		t.Errorf("a link below: %v", err)
	}
}

func TestIdentityAfterBoot(t *testing.T) {
	was := Identity{Type: Dir, Device: 1, Inode: 2, Birth: 3}
	now := was
	now.Device = 9
	if was.Is(now) || !was.IsAfterBoot(now) {
		t.Error("with a time of birth, a device's number is not told from another after a start, or before")
	}
	if now.Birth = 4; was.IsAfterBoot(now) {
		t.Error("another time of birth is the same directory")
	}
	was.Birth, now.Birth = 0, 0
	if was.IsAfterBoot(now) {
		t.Error("without a time of birth, another device's is the same directory")
	}
}

// TestResolveInAPartOfATreeMountedElsewhere: a link in a tree is not followed by another name of
// a part of it, which has none of the tree's own directories above it.
func TestResolveInAPartOfATreeMountedElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root mounts")
	}
	dir, project := laid(t)
	alias := filepath.Join(dir, "alias")
	must(t, errors.Join(os.Mkdir(alias, 0o755), os.Symlink(filepath.Join(dir, "secret"), filepath.Join(project.Path, "data", "link"))))
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(filepath.Join(project.Path, "data"), alias, "", unix.MS_BIND, ""))
		if err != nil {
			t.Error(err)
			return
		}
		var link *LinkError
		if p, err := Resolve(filepath.Join(alias, "link"), []Tree{project}); !errors.As(err, &link) || link.Tree != project.Path {
			t.Errorf("by another name of a part of the tree: %v, %v", p, err)
		}
		for name, trees := range map[string][]Tree{"alias/link": nil, "alias/deep": {project}, "outside/data/deep": {project}} { // the controls
			if p, err := Resolve(filepath.Join(dir, name), trees); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				p.Close()
			}
		}
	}()
	<-done
}
