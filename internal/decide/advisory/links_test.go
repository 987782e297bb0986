package advisory_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestImportsFollowNoLinkOfAgents: what is imported is opened where it was named, and through no
// link in a directory that some sandbox could write to.
func TestImportsFollowNoLinkOfAgents(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, mine, list := filepath.Join(top, "project"), filepath.Join(top, "mine"), filepath.Join(top, "list.txt")
	for _, dir := range []string{project, mine} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(list, filepath.Join(dir, "link.txt")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(list, []byte("# ecosystem: python\nrequests\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := advisory.Open(t.TempDir(), advisory.Options{Trees: func() []hostpath.Tree { return []hostpath.Tree{{Path: project}} }})
	take := func(path string) error {
		_, err := db.Import(t.Context(), advisory.Job{Path: path, Label: "list"}, func(advisory.Progress) {})
		return err
	}
	if err := take(filepath.Join(project, "link.txt")); err == nil || !strings.Contains(err.Error(), "which some sandbox was given to write to") {
		t.Errorf("a link of an agent's: %v", err)
	}
	for _, path := range []string{filepath.Join(mine, "link.txt"), list} { // the controls
		if err := take(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
