package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestASetIsOfOneMoment: whatever is done to a directory while it is opened, the set is what the directory was
// at one moment; what happens after that changes nothing of it.
func TestASetIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(dir string) error // once, while the first look is at b
		want  string                 // of the files, in their order; "": there is no set
		fails error
	}{
		"a file is replaced": {func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/.n", []byte("new a "), 0o600), os.Rename(dir+"/.n", dir+"/a"))
		}, "new a b c ", nil},
		"a file goes":            {func(dir string) error { return os.Remove(dir + "/a") }, "b c ", nil},
		"a later file goes":      {func(dir string) error { return os.Remove(dir + "/c") }, "a b ", nil},
		"a file comes":           {func(dir string) error { return os.WriteFile(dir+"/aa", []byte("aa "), 0o600) }, "a aa b c ", nil},
		"all of it goes":         {func(dir string) error { return os.Rename(dir, dir+"-gone") }, "", fs.ErrNotExist},
		"a link takes its place": {func(dir string) error { return errors.Join(os.Rename(dir, dir+"-was"), os.Symlink(dir+"-was", dir)) }, "", fs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "set")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"a", "b", "c"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(file+" "), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			state, err := hostpath.Resolve(top, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer state.Close()
			done := false
			s, err := openSet(t.Context(), state, "set", func(name string) bool {
				if name == "set/b" && !done {
					done = true
					if err := c.do(dir); err != nil {
						t.Error(err)
					}
				}
				return false
			}, nil)
			defer s.closeFiles()
			if c.fails != nil {
				if err == nil || len(s.entries) > 0 || errors.Is(c.fails, fs.ErrNotExist) && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%v, %v", s, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, m := range s.entries {
				if m.file != nil {
					_, _ = io.Copy(&got, io.NewSectionReader(m.file, 0, m.size))
				}
			}
			if got.String() != c.want {
				t.Errorf("the set is %q, want %q", got.String(), c.want)
			}
		})
	}
}
