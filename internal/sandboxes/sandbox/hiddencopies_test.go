package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestCopiesHideWhatIgnoreFilesHideNow: a sandbox that is made of a snapshot, or by a fork, is made
// now. It does not see what ignore files hide now, though its source had nothing there to hide: a copy of files has it hidden, and one of
// memory, whose mounts can't be others, is refused. The controls are a sandbox that is made
// without a copy, what the source had hidden, and copies before something else is hidden.
func TestCopiesHideWhatIgnoreFilesHideNow(t *testing.T) {
	for name, hideMore := range map[string]func(at func(string) string) error{
		"another file": func(at func(string) string) error { return os.WriteFile(at("new.key"), []byte("secret"), 0o600) },
		"another line": func(at func(string) string) error {
			return os.WriteFile(at(mountpolicy.IgnoreFile), []byte("*.key\nplain\n"), 0o600)
		},
		"another file above": func(at func(string) string) error {
			return os.WriteFile(at("../"+mountpolicy.IgnoreFile), []byte("plain\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t)
			must(t, os.WriteFile(filepath.Join(s.dir, "agent", "empty"), nil, 0o600)) // what lies over hidden files
			shared := filepath.Join(t.TempDir(), "shared")
			at := func(name string) string { return filepath.Join(shared, name) }
			must(t, errors.Join(os.Mkdir(shared, 0o755), os.WriteFile(at("plain"), nil, 0o600), os.WriteFile(at(mountpolicy.IgnoreFile), []byte("*.key\n"), 0o600), os.WriteFile(at("old.key"), []byte("x"), 0o600)))
			req := s.request(house)
			req.Mounts = []mountpolicy.Mount{{Source: shared, Destination: "/x"}}
			source := s.create(req).Info().ID
			for _, contents := range []engine.Contents{engine.ContentsFiles, engine.ContentsMemory} {
				_, err := s.Snapshot(t.Context(), source, string(contents), contents)
				must(t, err)
			}
			hides := func(id string) (all []string) {
				s.camera.mu.Lock()
				defer s.camera.mu.Unlock()
				for _, m := range s.camera.seen[id].Mounts {
					if !m.Around.IsZero() && m.ReadOnly {
						all = append(all, m.Destination)
					}
				}
				slices.Sort(all)
				return all
			}
			before := hides(source)
			if !slices.Equal(before, []string{"/x/old.key"}) {
				t.Fatalf("the source hides %q", before)
			}
			must(t, filesCopyHides(t, s, hides, before))
			forks, err := s.Fork(t.Context(), source, 1, sandbox.Lifetime{})
			must(t, errors.Join(err, forks[0].Err)) // the control

			must(t, hideMore(at))
			after := hides(s.create(req).Info().ID)
			if len(after) != 2 {
				t.Fatalf("a sandbox without a copy hides %q, so that the rest proves nothing", after)
			}
			must(t, filesCopyHides(t, s, hides, after))
			made := s.request(house)
			made.Snapshot = string(engine.ContentsMemory)
			_, err = s.Create(t.Context(), made)
			forks, forked := s.Fork(t.Context(), source, 1, sandbox.Lifetime{})
			for how, err := range map[string]error{"a snapshot of memory": err, "a fork": errors.Join(forked, forks[0].Err)} {
				if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "hidden by an ignore file now") {
					t.Errorf("%s: %v", how, err)
				}
			}
		})
	}
}

// filesCopyHides makes a sandbox of a snapshot of files, and tells if it hides something else.
func filesCopyHides(t *testing.T, s *studio, hides func(id string) []string, want []string) error {
	t.Helper()
	made := s.request(house)
	made.Snapshot = string(engine.ContentsFiles)
	one, err := s.Create(t.Context(), made)
	if err != nil {
		return err
	}
	if got := hides(one.Info().ID); !slices.Equal(got, want) {
		t.Errorf("a copy of files hides %q, want %q", got, want)
	}
	for _, place := range want {
		if !slices.Contains(one.Info().ReadOnlyMounts, place) {
			t.Errorf("%s is not told as a read-only mount: %q", place, one.Info().ReadOnlyMounts)
		}
	}
	return nil
}
