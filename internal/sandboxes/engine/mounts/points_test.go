package mounts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// pointsFixture is a project, mounted, with a mount inside of it.
type pointsFixture struct {
	project, guarded string
	spec             engine.Spec
}

func pointsIn(t *testing.T, place string, file bool) pointsFixture {
	t.Helper()
	f := pointsFixture{project: t.TempDir()}
	f.guarded = filepath.Join(f.project, "cofferdam.yaml")
	source := t.TempDir()
	if file {
		source = filepath.Join(source, "settings.json")
		if err := os.WriteFile(source, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(f.guarded, []byte("name: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	mount := func(path, destination string) engine.Mount {
		p, err := hostpath.Follow(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return engine.Mount{Source: p.Name, Origin: p.ID, Destination: destination, ReadOnly: true}
	}
	f.spec = engine.Spec{Mounts: []engine.Mount{mount(f.project, "/w"), mount(source, "/w/"+place)}, Owner: engine.Owner{HostUID: os.Geteuid(), HostGID: os.Getegid()}}
	return f
}

// TestPointsMakePlaces: what is not there is made, the owner's where the owner may write and root's where not; what is there stays as it is.
func TestPointsMakePlaces(t *testing.T) {
	for _, file := range []bool{false, true} {
		for _, owners := range []bool{false, true} {
			f := pointsIn(t, "a/b", file)
			want := 0
			if owners && os.Geteuid() == 0 {
				f.spec.Owner.HostUID, f.spec.Owner.HostGID, want = 12345, 12345, 12345
				if err := os.Chown(f.project, want, want); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := Points(f.spec); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"a", "a/b"} {
				info, err := os.Lstat(filepath.Join(f.project, name))
				if err != nil {
					t.Fatal(err)
				}
				if st := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (int(st.Uid) != want || int(st.Gid) != want) {
					t.Errorf("%s is %d:%d's, want %d", name, st.Uid, st.Gid, want)
				}
				if isFile := file && name == "a/b"; info.Mode().IsRegular() != isFile || info.IsDir() == isFile {
					t.Errorf("%s is %v", name, info.Mode())
				}
			}
		}
	}
}

// TestPointsFollowNoLink: whoever has the outer mount read-write elsewhere leaves a link where a place is to be.
func TestPointsFollowNoLink(t *testing.T) {
	for name, to := range map[string]string{"a file": "cofferdam.yaml", "nothing": "made.yaml", "out of it": "/etc/passwd"} {
		for place, link := range map[string]string{"place": "place", "way/place": "way"} {
			f := pointsIn(t, place, true)
			if err := os.Symlink(to, filepath.Join(f.project, link)); err != nil {
				t.Fatal(err)
			}
			err := Points(f.spec)
			if !errors.Is(err, fault.ErrConflict) {
				t.Errorf("%s at %s: %v", name, link, err)
			}
			text, err := os.ReadFile(f.guarded)
			if _, made := os.Lstat(filepath.Join(f.project, "made.yaml")); made == nil || string(text) != "name: x" || err != nil {
				t.Errorf("%s at %s: a file was made, or cofferdam.yaml is %q, %v", name, link, text, err)
			}
		}
	}
}

// TestPointsAgainstExchanges: the link comes and goes while the place is made.
func TestPointsAgainstExchanges(t *testing.T) {
	f := pointsIn(t, "place", true)
	ctx, cancel := context.WithCancel(t.Context())
	var other sync.WaitGroup
	other.Go(func() {
		place := filepath.Join(f.project, "place")
		for ctx.Err() == nil {
			_ = unix.Unlink(place)
			_ = unix.Symlink("cofferdam.yaml", place)
		}
	})
	for range 2_000 {
		_ = Points(f.spec) // taken or not
	}
	cancel()
	other.Wait()
	if text, err := os.ReadFile(f.guarded); err != nil || string(text) != "name: x" {
		t.Errorf("cofferdam.yaml is %q, %v", text, err)
	}
}

// TestPointsMeet: sandboxes that are made at the same time make one another's places.
func TestPointsMeet(t *testing.T) {
	for range 50 {
		for _, file := range []bool{false, true} {
			f := pointsIn(t, "a/b/c", file)
			var both sync.WaitGroup
			for range 4 {
				both.Go(func() {
					if err := Points(f.spec); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		}
	}
}
