package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestRealThawFollowsNoLink: of two mounts one lies in the other on the host; the guest puts
// a link where the inner one was, and waits for a pause. A later answer shows what was checked, or does not come.
func TestRealThawFollowsNoLink(t *testing.T) {
	for _, files := range []bool{false, true} {
		s := newRealStudio(t)
		project, secret := t.TempDir(), t.TempDir()
		must(t, os.Chmod(project, 0o777))
		must(t, os.Mkdir(filepath.Join(project, "data"), 0o777))
		must(t, os.WriteFile(filepath.Join(project, "data", "key"), []byte("ours"), 0o644))
		must(t, os.WriteFile(filepath.Join(secret, "key"), []byte("the host's"), 0o644))
		req := s.request(open)
		req.Mounts = []mountpolicy.Mount{
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

// TestRealThawHidesWhatWasHidden: the guest may rename a directory above something that an
// ignore file hides; after a pause nothing else is hidden in its stead.
func TestRealThawHidesWhatWasHidden(t *testing.T) {
	s := newRealStudio(t)
	project := t.TempDir()
	must(t, os.Chmod(project, 0o777))
	must(t, os.Mkdir(filepath.Join(project, "conf"), 0o777))
	must(t, os.WriteFile(filepath.Join(project, "conf", "key.pem"), []byte("secret"), 0o644))
	must(t, os.WriteFile(filepath.Join(project, mountpolicy.IgnoreFile), []byte("conf/key.pem\n"), 0o644))
	req := s.request(open)
	req.Mounts = []mountpolicy.Mount{{Source: project, Destination: "/w", ReadWrite: true}}
	must(t, os.WriteFile(filepath.Join(s.dir, "agent", "empty"), nil, 0o444)) // lies over what is hidden
	one := s.create(req)
	id := one.Info().ID
	must(t, s.Pause(t.Context(), id))
	_, err := s.Resume(t.Context(), id)
	must(t, err)
	if got := s.sh(id, "cat /w/conf/key.pem"); got != "" { // the control
		t.Fatalf("what is hidden is %q", got)
	}
	s.sh(id, "mv /w/conf /w/conf2 && mkdir /w/conf && echo dummy > /w/conf/key.pem")
	must(t, s.Pause(t.Context(), id))
	if _, err := s.Resume(t.Context(), id); err == nil {
		t.Errorf("it is resumed, and what was hidden is %q", s.sh(id, "cat /w/conf2/key.pem; true"))
	} else if !strings.Contains(err.Error(), "/w/conf/key.pem") {
		t.Errorf("the refusal does not name it: %v", err)
	}
	wantState(t, one, sandbox.Paused)
	must(t, s.Destroy(t.Context(), id))
	if got, err := os.ReadFile(filepath.Join(project, "conf2", "key.pem")); err != nil || string(got) != "secret" {
		t.Errorf("on the host it is %q, %v", got, err)
	}
}

// TestRealCreateAgainstFlips: another sandbox swaps a source with a link while this one is
// made: it shows what was checked, or is not made.
func TestRealCreateAgainstFlips(t *testing.T) {
	s := newRealStudio(t)
	project, secret := t.TempDir(), t.TempDir()
	sub := filepath.Join(project, "sub")
	must(t, os.Mkdir(sub, 0o755))
	must(t, os.WriteFile(filepath.Join(sub, "key"), []byte("ours"), 0o644))
	must(t, os.WriteFile(filepath.Join(secret, "key"), []byte("the host's"), 0o644))
	writer := s.request(open)
	writer.Mounts = []mountpolicy.Mount{{Source: project, Destination: "/w", ReadWrite: true}}
	s.create(writer)
	req := s.request(open)
	req.Mounts = []mountpolicy.Mount{{Source: sub, Destination: "/s", ReadWrite: true}}
	if one := s.create(req); s.sh(one.Info().ID, "cat /s/key") != "ours" { // the control: two on one project
		t.Fatal("unflipped, it does not show what was asked for")
	}
	must(t, os.Rename(sub, sub+".old"))
	must(t, os.Symlink(secret, sub))
	if _, err := s.Create(t.Context(), req); err == nil || !strings.Contains(err.Error(), sub) || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link where another sandbox may write: %v", err)
	}
	must(t, os.Remove(sub))
	must(t, os.Rename(sub+".old", sub))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(sub, sub+".old")
				_ = os.Symlink(secret, sub)
				_ = os.Remove(sub)
				_ = os.Rename(sub+".old", sub)
				for range 3000 { // or none would ever be made
					_, _ = os.Lstat(sub)
				}
			}
		}
	}()
	made := 0
	for range flipRounds() {
		one, err := s.Create(t.Context(), req)
		if err != nil {
			continue
		}
		made++
		if got := s.sh(one.Info().ID, "cat /s/key; touch /s/planted; true"); got != "ours" {
			t.Errorf("it shows %q", got)
		}
		must(t, s.Destroy(t.Context(), one.Info().ID))
	}
	close(stop)
	<-stopped
	t.Logf("%d of %d were made", made, flipRounds())
	if _, err := os.Stat(filepath.Join(secret, "planted")); err == nil {
		t.Error("a guest wrote to the host's directory")
	}
}

func flipRounds() int {
	if os.Getenv("COFFERDAM_LONG") != "" {
		return 1000
	}
	return 30
}
