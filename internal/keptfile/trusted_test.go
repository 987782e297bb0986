package keptfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keptfile"
)

// TestReadTrusted: what another user could have written is not read, wherever on its way they could.
func TestReadTrusted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("takes root to give files to others")
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
		"a named pipe": {func(_, file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, "no regular file"},
		"a directory":  {func(_, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }, "no regular file"},
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
			got, err := keptfile.ReadTrusted("the configuration file", file, 100)
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
	if _, err := keptfile.ReadTrusted("a file", filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := keptfile.ReadTrusted("a file", large, 2); err == nil {
		t.Errorf("read %q past its bound", got.Data)
	}
}
