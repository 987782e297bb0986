package privatefile_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// setList gives a file an access control list by which a user may write, with a mask that lets them.
func setList(file string, user uint32) error {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, rights uint16
		id          uint32
	}{{0x01, 6, ^uint32(0)}, {0x02, 6, user}, {0x04, 4, ^uint32(0)}, {0x10, 6, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.rights)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return unix.Setxattr(file, "system.posix_acl_access", list, 0)
}

// TestCheckDirThroughLinks: the directory that a link leads to counts, whatever the link's own name says.
func TestCheckDirThroughLinks(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	all, link := filepath.Join(top, "all"), filepath.Join(top, "link")
	if err := errors.Join(os.Mkdir(all, 0o755), os.Symlink(all, link)); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[fs.FileMode]bool{0o755: true, 0o777: false, 0o777 | fs.ModeSticky: true} {
		if err := os.Chmod(all, mode); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{link, filepath.Join(link, "none", "deep")} {
			if err := privatefile.CheckDir("the directory", dir); (err == nil) != want {
				t.Errorf("%s of mode %v: %v", dir, mode, err)
			}
		}
	}
}

// TestReadTrusted: what another user could have written is not read, wherever on its way they could.
func TestReadTrusted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("takes root to give files to others")
	}
	const other = 65534
	for name, test := range map[string]struct {
		do   func(top, file string) error
		want string // of the refusal; "": it is read
	}{
		"ours":            {func(_, _ string) error { return nil }, ""},
		"a group of ours": {func(_, file string) error { return os.Chmod(file, 0o664) }, ""},
		"a link of ours": {func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		}, ""},
		"another user's":       {func(_, file string) error { return os.Chown(file, other, 0) }, "belongs to another user"},
		"everybody writes":     {func(_, file string) error { return os.Chmod(file, 0o666) }, "others can write"},
		"another group writes": {func(_, file string) error { return errors.Join(os.Chown(file, 0, other), os.Chmod(file, 0o664)) }, "others can write"},
		"a link to another user's": {func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file), os.Chown(file+".real", other, 0))
		}, "belongs to another user"},
		"a link of another user's": {func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file), os.Lchown(file, other, 0))
		}, "belongs to another user"},
		"its directory is another's":     {func(_, file string) error { return os.Chown(filepath.Dir(file), other, 0) }, "belongs to another user"},
		"everybody writes its directory": {func(_, file string) error { return os.Chmod(filepath.Dir(file), 0o777) }, "others can write"},
		"as in /tmp":                     {func(_, file string) error { return os.Chmod(filepath.Dir(file), 0o777|fs.ModeSticky) }, ""},
		"one above is another's":         {func(top, _ string) error { return os.Chown(top, other, 0) }, "belongs to another user"},
		"everybody writes one above":     {func(top, _ string) error { return os.Chmod(top, 0o777) }, "others can write"},
		"another could have taken it": {func(_, file string) error {
			return errors.Join(os.Remove(file), os.Chown(filepath.Dir(file), other, 0))
		}, "belongs to another user"},
		"a link into another's directory": {func(top, file string) error {
			dir := filepath.Join(filepath.Dir(top), "theirs")
			return errors.Join(os.Mkdir(dir, 0o755), os.Rename(file, filepath.Join(dir, "x")), os.Symlink(filepath.Join(dir, "x"), file), os.Chown(dir, other, 0))
		}, "belongs to another user"},
		"its directory is a link, and it is not there": {func(top, file string) error {
			dir := filepath.Join(filepath.Dir(top), "all")
			return errors.Join(os.RemoveAll(filepath.Dir(file)), os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777), os.Symlink(dir, filepath.Dir(file)))
		}, "others can write"},
		"a link that leads to nothing": {func(_, file string) error {
			return errors.Join(os.Remove(file), os.Symlink("/tmp/cofferdam-no-such-file", file))
		}, "leads to nothing"},
		"a list lets another write": {func(_, file string) error { return setList(file, other) }, "access control list"},
		"a list lets root write":    {func(_, file string) error { return setList(file, 0) }, ""},
		"a named pipe":              {func(_, file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, "no regular file"},
		"a directory":               {func(_, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := filepath.Join(t.TempDir(), "top")
			file := filepath.Join(top, "dir", "config.yaml")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("text"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := test.do(top, file); err != nil {
				t.Fatal(err)
			}
			got, err := privatefile.ReadTrusted("the configuration file", file, 100, nil)
			if test.want == "" {
				if err != nil || string(got.Data) != "text" {
					t.Errorf("%q, %v", got.Data, err)
				}
				return
			}
			if !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("%q, %v", got.Data, err)
			}
		})
	}
	if _, err := privatefile.ReadTrusted("a file", filepath.Join(t.TempDir(), "none"), 1, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := privatefile.ReadTrusted("a file", large, 2, nil); err == nil {
		t.Errorf("read %q past its bound", got.Data)
	}
}
