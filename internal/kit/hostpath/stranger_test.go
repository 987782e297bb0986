package hostpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksOfOtherUsers: a link is followed that root or this process's user has made, where nobody else may write, and no
// other, on every walk that opens something: what another user's agents leave is on another record. The controls are the same
// steps before somebody else has a part in it, and Follow, which guards nothing.
func TestLinksOfOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can make another user's links")
	}
	const other = 1000
	for name, c := range map[string]struct {
		change func(top, dir, link string) error
		where  string // "": it is followed
	}{
		"control: root's own":       {func(_, _, _ string) error { return nil }, ""},
		"the link":                  {func(_, _, link string) error { return os.Lchown(link, other, other) }, "link"},
		"the directory of the link": {func(_, dir, _ string) error { return os.Chown(dir, other, other) }, "belongs to user 1000"},
		"a directory above":         {func(top, _, _ string) error { return os.Chown(top, other, other) }, "belongs to user 1000"},
		"everybody writes there":    {func(_, dir, _ string) error { return os.Chmod(dir, 0o777) }, "others can write"},
		"a group writes there":      {func(_, dir, _ string) error { return errors.Join(os.Chown(dir, 0, other), os.Chmod(dir, 0o775)) }, "others can write"},
		"control: root's group may": {func(_, dir, _ string) error { return os.Chmod(dir, 0o775) }, ""},
		"control: as in /tmp":       {func(_, dir, _ string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) }, ""},
		"as in /tmp, another user's own": {func(_, dir, link string) error {
			return errors.Join(os.Chmod(dir, 0o777|fs.ModeSticky), os.Lchown(link, other, other))
		}, "link"},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			top := filepath.Join(base, "top")
			dir, secret := filepath.Join(top, "dir"), filepath.Join(base, "secret")
			link := filepath.Join(dir, "link")
			must(t, errors.Join(os.MkdirAll(dir, 0o755), os.Mkdir(secret, 0o755), os.WriteFile(filepath.Join(secret, "file"), nil, 0o600), os.Symlink(secret, link)))
			must(t, c.change(top, dir, link))
			for walk, open := range map[string]func() error{
				"Resolve":  func() error { p, err := Resolve(filepath.Join(link, "file"), nil); return closed(p, err) },
				"Find":     func() error { _, err := Find(filepath.Join(link, "file"), nil); return err },
				"MakeDirs": func() error { p, err := MakeDirs(filepath.Join(link, "made"), 0o755, nil); return closed(p, err) },
			} {
				err := open()
				refused, is := errors.AsType[*LinkError](err)
				switch {
				case c.where == "" && err != nil:
					t.Errorf("%s: %v", walk, err)
				case c.where != "" && (!is || refused.Link != link || !strings.Contains(err.Error(), c.where) || !strings.Contains(refused.Reason(), "an agent could have put it there")):
					t.Errorf("%s: got %v, want a refusal of %s because of %s", walk, err, link, c.where)
				}
			}
			if err := closed(Follow(filepath.Join(link, "file"))); err != nil { // the control
				t.Errorf("Follow: %v", err)
			}
			if at, err := StrangerOf(filepath.Join(link, "file")); (at != nil) != (c.where != "") || err != nil {
				t.Errorf("StrangerOf: %v, %v", at, err)
			}
		})
	}
}

// TestFilesOfOtherUsers: who else could have written what a path leads to. The controls are root's own files.
func TestFilesOfOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can make another user's files")
	}
	const other = 1000
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	theirs, sticky := filepath.Join(dir, "theirs"), filepath.Join(dir, "sticky")
	must(t, errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, other, other)))
	must(t, errors.Join(os.Mkdir(sticky, 0o755), os.Chmod(sticky, 0o777|os.ModeSticky))) // as /tmp is
	for name, c := range map[string]struct {
		path string
		make func(path string) error
		want bool
	}{
		"control: root's":              {filepath.Join(dir, "ours"), func(path string) error { return os.WriteFile(path, nil, 0o644) }, false},
		"control: not there":           {filepath.Join(dir, "absent", "deep"), func(string) error { return nil }, false},
		"another user's":               {filepath.Join(dir, "other"), func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Chown(path, other, 0)) }, true},
		"everybody may write to it":    {filepath.Join(dir, "open"), func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o666)) }, true},
		"root's in their directory":    {filepath.Join(theirs, "ours"), func(path string) error { return os.WriteFile(path, nil, 0o600) }, true},
		"control: not in a sticky one": {filepath.Join(sticky, "ours", "absent"), func(string) error { return os.Mkdir(filepath.Join(sticky, "ours"), 0o755) }, false},
		"not in a sticky one itself":   {filepath.Join(sticky, "absent", "deep"), func(string) error { return nil }, true},
		"control: root's in a sticky":  {filepath.Join(sticky, "file"), func(path string) error { return os.WriteFile(path, nil, 0o644) }, false},
		"not there, but they may":      {filepath.Join(theirs, "absent"), func(string) error { return nil }, true},
		"by a root's link, to theirs":  {filepath.Join(dir, "to"), func(path string) error { return os.Symlink(theirs, path) }, true},
	} {
		must(t, c.make(c.path))
		if at, err := StrangerOf(c.path); (at != nil) != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, at, err)
		}
	}
}

func closed(p *Path, err error) error {
	if err == nil {
		p.Close()
	}
	return err
}
