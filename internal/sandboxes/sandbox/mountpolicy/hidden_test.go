package mountpolicy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestHiddenStaysHidden: whoever may write to a directory renames what is in it, so that the ignore
// file's patterns name something else. A file that was hidden is hidden in each sandbox that is made later,
// also by the next daemon; without the record of it, as the control, it is shown.
func TestHiddenStaysHidden(t *testing.T) {
	t.Parallel()
	exchange := func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}
	for name, test := range map[string]struct {
		do   func(at func(string) string) error
		want string // where it is then
		same bool   // a pattern names it there, too
	}{
		"nothing":       {func(func(string) string) error { return nil }, "/w/conf/key.pem", true},
		"renamed":       {func(at func(string) string) error { return os.Rename(at("conf/key.pem"), at("conf/plain")) }, "/w/conf/plain", false},
		"its directory": {func(at func(string) string) error { return os.Rename(at("conf"), at("plain")) }, "/w/plain/key.pem", false},
		"into another":  {func(at func(string) string) error { return os.Rename(at("conf/key.pem"), at("other/plain")) }, "/w/other/plain", false},
		"exchanged":     {func(at func(string) string) error { return exchange(at("conf/key.pem"), at("other/file")) }, "/w/other/file", false},
		"directories":   {func(at func(string) string) error { return exchange(at("conf"), at("other")) }, "/w/other/key.pem", false},
		"a link in its place": {func(at func(string) string) error {
			return errors.Join(os.Rename(at("conf"), at("plain")), os.Symlink("plain", at("conf")))
		}, "/w/plain/key.pem", false},
		"a second name": {func(at func(string) string) error { return os.Link(at("conf/key.pem"), at("other/second")) }, "/w/other/second", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, record := t.TempDir(), filepath.Join(t.TempDir(), "hidden")
			at := func(name string) string { return filepath.Join(dir, name) }
			for name, text := range map[string]string{IgnoreFile: "/conf/key.pem\n/vault/\n", "conf/key.pem": "key", "other/file": "file", "vault/x": "x"} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			hidden := func(h *Hidden) (all []string) {
				t.Helper()
				over, err := Rules{EmptyFile: "/empty", Hidden: h}.Hide(t.Context(), opened(t, Mount{Source: dir, Destination: "/w"})[0], NewComparing())
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range over {
					all = append(all, m.Destination)
				}
				return all
			}
			open := func() *Hidden {
				t.Helper()
				h, err := OpenHidden(record)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			h := open()
			hidden(h)
			if err := errors.Join(test.do(at), os.Rename(at("vault"), at("seen"))); err != nil {
				t.Fatal(err)
			}
			for _, h := range []*Hidden{h, open()} {
				if got := hidden(h); !slices.Contains(got, test.want) || !slices.Contains(got, "/w/seen") {
					t.Errorf("%v are hidden, and not %s and /w/seen", got, test.want)
				}
			}
			source := opened(t, Mount{Source: dir, Destination: "/w"})[0].path
			for _, h := range []*Hidden{h, open(), nil} { // a copy does not have it either; without the record it does
				hides, err := Rules{Hidden: h}.Ignored(t.Context(), source)
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Lstat(at(strings.TrimPrefix(test.want, "/w/")))
				if err != nil {
					t.Fatal(err)
				}
				if got := hides(strings.TrimPrefix(test.want, "/w/"), fs.FileInfoToDirEntry(info)); got != (h != nil || test.same) {
					t.Errorf("a copy would be without %s: %v, record: %v", test.want, got, h != nil)
				}
			}
			if got := hidden(nil); slices.Contains(got, test.want) != test.same || slices.Contains(got, "/w/seen") { // the control
				t.Errorf("without the record %v are hidden", got)
			}
			// A person who changes the ignore file says anew what is hidden.
			if err := os.WriteFile(at(IgnoreFile), []byte("/nothing\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, h := range []*Hidden{h, open()} {
				if got := hidden(h); len(got) > 0 {
					t.Errorf("another ignore file hides %v", got)
				}
			}
		})
	}
}

// TestTheRecordOfWhatIsHidden: one that can't be read is no empty one, and it has a bound.
func TestTheRecordOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "hidden")
	if err := os.WriteFile(record, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHidden(record); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("half a record: %v", err)
	}
	h := &Hidden{path: record, most: 1, mostIDs: 10}
	first := ""
	for i, want := range []error{nil, fault.ErrConflict, nil} {
		dir := t.TempDir()
		switch i {
		case 0:
			first = dir
		case 2: // one that is not there any more makes room
			if err := os.RemoveAll(first); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, IgnoreFile), []byte("key\n"), 0o600), os.WriteFile(filepath.Join(dir, "key"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := Rules{EmptyFile: "/empty", Hidden: h}.Hide(t.Context(), opened(t, Mount{Source: dir, Destination: "/w"})[0], NewComparing())
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), record) {
			t.Errorf("directory %d: %v", i, err)
		}
	}
}

// TestHiddenFilesThatAreMadeAnew: files that each build makes anew fill no record, and no run is
// refused for them; one that was renamed before stays hidden.
func TestHiddenFilesThatAreMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at(IgnoreFile), []byte("/*.log\n"), 0o600), os.WriteFile(at("key.log"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &Hidden{path: filepath.Join(t.TempDir(), "hidden"), most: 1, mostIDs: 5}
	held := []*os.File{} // so that no inode is given again
	for i := range 10 {
		file, err := os.CreateTemp(dir, "*.log")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, file)
		over, err := Rules{EmptyFile: "/empty", Hidden: h}.Hide(t.Context(), opened(t, Mount{Source: dir, Destination: "/w"})[0], NewComparing())
		if err != nil || len(over) != 2 {
			t.Fatalf("build %d: %v, %v", i, over, err)
		}
		err = os.Remove(file.Name())
		if i == 0 {
			err = errors.Join(err, os.Rename(at("key.log"), at("plain")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range held {
		_ = file.Close()
	}
	if n := len(h.all[0].IDs); n > 5 {
		t.Errorf("%d are kept", n)
	}
}

// TestAnIgnoreFileThatAnAgentChanged shows nothing of what it has hidden before a person has seen it. The controls: it is as it
// was, a person changed it, and one that has hidden nothing before hides more.
func TestAnIgnoreFileThatAnAgentChanged(t *testing.T) {
	t.Parallel()
	unseen := errors.New("nobody has seen it")
	for name, c := range map[string]struct {
		change  func(path string) error
		asked   bool
		refused error
	}{
		"emptied":             {func(path string) error { return os.WriteFile(path, nil, 0o600) }, true, unseen},
		"another text":        {func(path string) error { return os.WriteFile(path, []byte("/other\n"), 0o600) }, true, unseen},
		"removed":             {os.Remove, true, unseen},
		"control: a person":   {func(path string) error { return os.WriteFile(path, nil, 0o600) }, true, nil},
		"control: as it was":  {func(string) error { return nil }, false, unseen},
		"control: it was new": {nil, false, unseen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ignore := filepath.Join(dir, IgnoreFile)
			for name, text := range map[string]string{"key.pem": "key", IgnoreFile: "key.pem\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			record, err := OpenHidden(filepath.Join(t.TempDir(), "hidden"))
			if err != nil {
				t.Fatal(err)
			}
			asked := false
			rules := Rules{EmptyFile: "/empty", Hidden: record, Seen: func(_, path string, _ []byte) error {
				asked = asked || path == ignore
				return c.refused
			}}
			hide := func() ([]string, error) {
				over, err := rules.Hide(t.Context(), opened(t, Mount{Source: dir, Destination: "/w"})[0], NewComparing())
				var all []string
				for _, m := range over {
					all = append(all, m.Destination)
				}
				return all, err
			}
			if c.change != nil {
				if all, err := hide(); err != nil || !slices.Equal(all, []string{"/w/key.pem"}) {
					t.Fatalf("hidden: %q, %v", all, err)
				}
				if err := c.change(ignore); err != nil {
					t.Fatal(err)
				}
			}
			all, err := hide()
			if asked != c.asked || (err != nil) != (c.asked && c.refused != nil) || err != nil && len(all) > 0 {
				t.Errorf("asked: %v, shown without %q, %v", asked, all, err)
			}
		})
	}
}
