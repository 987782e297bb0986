package mountpolicy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestNobodysFilesAreTold: whoever is not root, and can't be given what is another's, is told so.
func TestNobodysFilesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		owner, user int
		readOnly    bool
		want        bool
	}{
		"one's own":      {1000, 1000, false, false},
		"another's":      {1234, 1000, false, true},
		"root's":         {0, 1000, false, true},
		"only to read":   {1234, 1000, true, false},
		"root's sandbox": {1234, 0, false, false},
	} {
		dir := t.TempDir()
		if err := os.Chown(dir, c.owner, c.owner); err != nil {
			t.Fatal(err)
		}
		notes := mountpolicy.NobodysFiles([]engine.Mount{{Destination: "/tmp"}, {Source: dir, Destination: "/workspace", ReadOnly: c.readOnly}}, c.user)
		if got := len(notes) == 1 && strings.HasPrefix(notes[0], "/workspace belongs to the user "); got != c.want || len(notes) > 1 {
			t.Errorf("%s: %q", name, notes)
		}
	}
}
