package vouched_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
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
		must(t, os.WriteFile(filepath.Clean(path), []byte(text), 0o600))
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

// TestFilesOfAnotherUser: what another user could have written, whose agents are on another record, decides nothing that
// nobody has seen. The control is root's own file.
func TestFilesOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can make another user's files")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	file := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(file, []byte("one"), 0o644))
	book := vouched.Open(filepath.Join(dir, "state", "vouched.json"))
	must(t, book.Check(t.Context(), "policy", file, []byte("one"), nil)) // the control
	must(t, os.Chown(file, 1000, 1000))
	must(t, book.Check(t.Context(), "policy", file, []byte("one"), nil)) // as it was seen
	err = book.Check(t.Context(), "policy", file, []byte("two"), nil)
	unseen, is := errors.AsType[*vouched.UnseenError](err)
	if !is || unseen.Stranger == nil || !strings.Contains(err.Error(), "belongs to user 1000") || !strings.Contains(err.Error(), "cofferdam project allow "+file) {
		t.Fatalf("another user's: %v", err)
	}
	must(t, book.Vouch(t.Context(), file, []byte("two")))
	must(t, book.Check(t.Context(), "policy", file, []byte("two"), nil))
}

// TestAFileThatAnotherUserTakesAway between its reading and the question who could have written it: in a directory such as
// /tmp they may, and nobody else has decided what was read. The control: it is asked about while it lies there, and a file of
// one's own that is gone is nobody else's.
func TestAFileThatAnotherUserTakesAway(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("INCONCLUSIVE: only root can make another user's files")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	shared, own := filepath.Join(dir, "shared"), filepath.Join(dir, "own")
	theirs := filepath.Join(shared, "theirs")
	must(t, errors.Join(os.MkdirAll(theirs, 0o755), os.Mkdir(own, 0o755), os.Chmod(shared, 0o777|os.ModeSticky), os.Chown(theirs, 1000, 1000)))
	file := filepath.Join(theirs, "policy.yaml")
	must(t, os.WriteFile(file, []byte("theirs"), 0o644))
	book := vouched.Open(filepath.Join(dir, "state", "vouched.json"))
	refused := func(when string) {
		t.Helper()
		err := book.Check(t.Context(), "policy", file, []byte("theirs"), nil)
		if unseen, is := errors.AsType[*vouched.UnseenError](err); !is || unseen.Stranger == nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("the control")
	must(t, os.Rename(theirs, theirs+".away"))
	refused("it is taken away")
	must(t, book.Check(t.Context(), "policy", filepath.Join(own, "gone.yaml"), []byte("mine"), nil)) // the control
}

// TestWhatNoFileHasIsNotNoted: what somebody tries, or has read from elsewhere, is not what a person has put into a file,
// and takes nothing away from what they have. The controls are the same texts once the file has them.
func TestWhatNoFileHasIsNotNoted(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	file := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(file, []byte("had"), 0o600))
	book := vouched.Open(filepath.Join(t.TempDir(), "vouched.json"))
	theirs := []hostpath.Tree{{Path: dir}}
	check := func(text string, trees []hostpath.Tree) error {
		return book.Check(t.Context(), "policy", file, []byte(text), trees)
	}
	must(t, check("had", nil))
	must(t, check("tried", nil)) // no agent could have written it
	must(t, check("had", theirs))
	if err := check("tried", theirs); err == nil {
		t.Error("what was only tried is taken from an agent")
	}
	must(t, os.WriteFile(file, []byte("tried"), 0o600))
	must(t, check("tried", nil))
	must(t, check("tried", theirs)) // the control
}

// TestALinkBeforeDots: the ".." after a link lead to where the link's directory lies, and that is the file that was read.
// The control: the same without a link.
func TestALinkBeforeDots(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "project", "deep"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "plain"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "project", "policy.yaml"), nil, 0o600))
	must(t, os.Symlink(filepath.Join(dir, "project", "deep"), filepath.Join(dir, "link")))
	book := vouched.Open(filepath.Join(dir, "state", "vouched.json"))
	trees := []hostpath.Tree{{Path: filepath.Join(dir, "project")}}
	must(t, book.Check(t.Context(), "policy", dir+"/plain/../policy.yaml", []byte("control"), trees))
	err = book.Check(t.Context(), "policy", dir+"/link/../policy.yaml", []byte("an agent's"), trees)
	if _, is := errors.AsType[*vouched.UnseenError](err); !is {
		t.Errorf("an agent wrote it: %v", err)
	}
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

// TestBookIsBounded: the one that was noted or used first is forgotten first.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path := filepath.Join(dir, "vouched.json")
	var text strings.Builder
	for i := range 4096 {
		fmt.Fprintf(&text, `,"/f%d":{"digest":"sha256:00","noted":"2026-01-01T00:00:%02d.%06dZ"}`, i, 1+i/1000, i)
	}
	book := vouched.Open(path)
	used := strings.Replace("{"+text.String()[1:]+"}", `"/f0":{"digest":"sha256:00"`, `"/f0":{"digest":"`+vouched.Digest(nil)+`"`, 1)
	must(t, os.WriteFile(path, []byte(used), 0o600))
	must(t, book.Check(t.Context(), "policy", "/f0", nil, []hostpath.Tree{{Path: "/"}}))
	must(t, book.Vouch(t.Context(), "/new", []byte("x")))
	for name, want := range map[string]bool{"/f0": true, "/f1": false, "/f2": true, "/new": true} {
		if known, err := book.Forget(t.Context(), name); err != nil || known != want {
			t.Errorf("%s: %v, %v", name, known, err)
		}
	}
}
