package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestNamesThatAreNoText: the list of a copy keeps names and targets as they are, though JSON can't
// hold them: nothing has changed in a copy in which nobody worked, what a run did to such a file is
// told under its own name and left out, and a file whose name looks like that is not taken for it.
func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	const bad, alike, link = "bad\xff.txt", "bad\ufffd.txt", "link\xfe"
	dir := t.TempDir()
	write(t, dir, map[string]string{bad: "one", alike: "two", "sub\xff/in": "three"})
	if err := os.Symlink("bad\xff.txt", filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "run")
	if _, err := workspace.Make(t.Context(), dir, folder, nil); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(t, w); len(got) > 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(w.Dir(), bad), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, w); len(got) != 1 || got[bad].How != workspace.Modified {
		t.Errorf("%+v", got)
	}
	said := apply(t, w, true, ".")
	if len(said) != 1 || !strings.HasPrefix(said[0], `bad\xff.txt is left out: its name is no plain text`) {
		t.Errorf("%q", said)
	}
	if text(t, dir, bad) != "one" || text(t, dir, alike) != "two" {
		t.Error("a file was changed that was left out")
	}
}

// TestEachNameIsKeptInOneForm: a list in which a name stands in another form is refused: it could hold two
// entries of one name.
func TestEachNameIsKeptInOneForm(t *testing.T) {
	t.Parallel()
	for name, opens := range map[string]bool{`plain`: true, `\u0000YmFk/w==`: true, `\u0000cGxhaW4=`: false, `\u0000YmFk\n/w==`: false, `\u0000YmFk/x==`: false, `\u0000`: false, `\u0000-`: false} {
		folder := t.TempDir()
		list := `{"original":"/x","entries":{"` + name + `":{"kind":"file"}}}`
		if err := os.WriteFile(filepath.Join(folder, "list.json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.Open(folder); (err == nil) != opens {
			t.Errorf("%s: %v", name, err)
		}
	}
}
