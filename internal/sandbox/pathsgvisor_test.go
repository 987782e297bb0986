package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
)

// TestRealThawFollowsNoLink: of two mounts one lies in the other on the host; the guest puts
// a link where the inner one was, and waits for a pause. What comes after it shows what was
// checked, or does not come.
func TestRealThawFollowsNoLink(t *testing.T) {
	for _, files := range []bool{false, true} {
		s := newRealStudio(t)
		project, secret := t.TempDir(), t.TempDir()
		must(t, os.Chmod(project, 0o777))
		must(t, os.Mkdir(filepath.Join(project, "data"), 0o777))
		must(t, os.WriteFile(filepath.Join(project, "data", "key"), []byte("ours"), 0o644))
		must(t, os.WriteFile(filepath.Join(secret, "key"), []byte("the host's"), 0o644))
		req := s.request(open)
		req.Mounts = []mounts.Mount{
			{Source: project, Destination: "/w", ReadWrite: true},
			{Source: filepath.Join(project, "data"), Destination: "/data", ReadWrite: true},
		}
		one := s.create(req)
		id := one.Info().ID
		pause := s.Pause
		if files {
			pause = s.PauseFiles
		}
		// The control: what nobody has swapped is there again.
		must(t, pause(t.Context(), id))
		_, err := s.Resume(t.Context(), id)
		must(t, err)
		if got := s.sh(id, "cat /data/key"); got != "ours" {
			t.Fatalf("after a pause /data/key is %q", got)
		}
		s.sh(id, "mv /w/data /w/old && ln -s "+secret+" /w/data")
		must(t, pause(t.Context(), id))
		if _, err := s.Resume(t.Context(), id); err == nil {
			t.Errorf("files %t: it was resumed, and /data/key is %q", files, s.sh(id, "cat /data/key; touch /data/planted; true"))
		} else if !strings.Contains(err.Error(), filepath.Join(project, "data")) {
			t.Errorf("files %t: the refusal does not name the link: %v", files, err)
		}
		wantState(t, one, sandbox.Paused)
		// Put back, it goes on.
		must(t, os.Remove(filepath.Join(project, "data")))
		must(t, os.Rename(filepath.Join(project, "old"), filepath.Join(project, "data")))
		if _, err = s.Resume(t.Context(), id); err != nil {
			t.Errorf("files %t: put back, it is not resumed: %v", files, err)
		} else if got := s.sh(id, "cat /data/key"); got != "ours" {
			t.Errorf("files %t: put back, /data/key is %q", files, got)
		}
		if _, err := os.Stat(filepath.Join(secret, "planted")); err == nil {
			t.Error("the guest wrote to the host's directory")
		}
		must(t, s.Destroy(t.Context(), id))
	}
}
