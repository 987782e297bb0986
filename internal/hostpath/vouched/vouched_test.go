package vouched_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath/vouched"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheck: a file decides as its owner left it, or as a person has said. The controls are the same
// steps where no agent could write.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	project := filepath.Join(dir, "project")
	must(t, os.Mkdir(project, 0o755))
	file, elsewhere := filepath.Join(project, "policy.yaml"), filepath.Join(dir, "policy.yaml")
	theirs := []hostpath.Tree{{Path: project}}
	anywhere := []hostpath.Tree{{Path: "/"}}
	book := vouched.Open(filepath.Join(dir, "state", "vouched.json"))
	check := func(path, text string, trees []hostpath.Tree) error {
		return book.Check(t.Context(), "policy", path, []byte(text), trees)
	}
	refused := func(when string, err error) {
		t.Helper()
		unseen, is := errors.AsType[*vouched.UnseenError](err)
		if !is || !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "cofferdam project allow "+unseen.Path) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("nobody has seen it", check(file, "one", theirs))
	refused("nobody knows where agents could write", check(file, "one", anywhere))
	must(t, check(file, "one", nil)) // before an agent could write there
	must(t, check(file, "one", theirs))
	must(t, check(project+"/sub/../policy.yaml", "one", theirs))
	refused("an agent wrote it", check(file, "two", theirs))
	must(t, book.Vouch(t.Context(), file, []byte("two")))
	must(t, check(file, "two", theirs))
	must(t, check(file, "two", anywhere))
	refused("an agent put back what was", check(file, "one", theirs))
	for _, text := range []string{"one", "two"} {
		must(t, check(elsewhere, text, theirs)) // the control
	}
	if known, err := book.Forget(t.Context(), file); err != nil || !known {
		t.Errorf("forgotten: %v, %v", known, err)
	}
	refused("it was taken back", check(file, "two", theirs))
	covered := []hostpath.Tree{theirs[0].Cover(map[string]hostpath.Mark{"policy.yaml": ""})}
	must(t, check(file, "three", covered))
}

// TestBrokenBook: what can't be read vouches for nothing.
func TestBrokenBook(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path := filepath.Join(dir, "vouched.json")
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	err = vouched.Open(path).Check(t.Context(), "policy", filepath.Join(dir, "p"), nil, []hostpath.Tree{{Path: dir}})
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// TestBookIsBounded: the one that was noted first is forgotten first.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path := filepath.Join(dir, "vouched.json")
	var text strings.Builder
	for i := range 4096 {
		fmt.Fprintf(&text, `,"/f%d":{"digest":"sha256:00","noted":"2026-01-01T00:00:%02d.%06dZ"}`, i, 1+i/1000, i)
	}
	must(t, os.WriteFile(path, []byte("{"+text.String()[1:]+"}"), 0o600))
	book := vouched.Open(path)
	must(t, book.Vouch(t.Context(), "/new", []byte("x")))
	for name, want := range map[string]bool{"/f0": false, "/f1": true, "/new": true} {
		if known, err := book.Forget(t.Context(), name); err != nil || known != want {
			t.Errorf("%s: %v, %v", name, known, err)
		}
	}
}
