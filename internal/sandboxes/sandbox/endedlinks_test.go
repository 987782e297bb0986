package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestLinksThatEndedSandboxesLeft: a link lies in a directory that a sandbox was given to write
// to. That has ended, and so has the daemon that made it: nobody follows the link all the same,
// under whatever name the directory has by then.
func TestLinksThatEndedSandboxesLeft(t *testing.T) {
	s := newStudio(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	project, secret, mine := filepath.Join(top, "project"), filepath.Join(top, "secret"), filepath.Join(top, "mine")
	for _, dir := range []string{filepath.Join(project, "deep"), filepath.Join(secret, "x"), mine} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.Symlink(secret, filepath.Join(mine, "link"))) // the person's, where no sandbox could write
	shows := func(source string, readWrite bool) error {
		req := s.request(house)
		req.Mounts = []mountpolicy.Mount{{Source: source, Destination: "/w", ReadWrite: readWrite}}
		one, err := s.Create(t.Context(), req)
		if err == nil {
			err = s.Destroy(t.Context(), one.Info().ID)
		}
		return err
	}
	must(t, shows(project, true))
	must(t, os.Symlink(secret, filepath.Join(project, "deep", "link"))) // as that sandbox could have
	must(t, os.Symlink("../secret", filepath.Join(project, "link")))
	must(t, shows(mine, false)) // to be read, so that it holds nobody's links but the person's

	check := func(project string) {
		t.Helper()
		for _, link := range []string{"link", "link/x", "deep/link", "deep/../link"} {
			for _, readWrite := range []bool{false, true} {
				err := shows(project+"/"+link, readWrite)
				if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "which some sandbox was given to write to") || !strings.Contains(err.Error(), project) {
					t.Errorf("%s of %s: %v, want a refusal that names the link", link, project, err)
				}
			}
		}
		// The controls: without a link, and through one that no sandbox can have left.
		for _, source := range []string{project, project + "/deep", secret, mine + "/link", mine + "/link/x"} {
			if err := shows(source, false); err != nil {
				t.Errorf("%s: %v", source, err)
			}
		}
	}
	check(project)
	s.restart("sha256:template")
	check(project)
	must(t, os.Rename(project, project+"-moved"))
	s.restart("sha256:template")
	check(project + "-moved")
}

// TestASandboxWaitsForTheRecord: what a sandbox may write of the host is kept before it may, or
// there is no sandbox.
func TestASandboxWaitsForTheRecord(t *testing.T) {
	s := newStudio(t)
	must(t, os.Mkdir(filepath.Join(s.dir, "written"), 0o700)) // in the file's place
	req := s.request(house)
	s.create(req) // the control: it may write nothing of the host
	req.Mounts = []mountpolicy.Mount{{Source: t.TempDir(), Destination: "/w", ReadWrite: true}}
	if one, err := s.Create(t.Context(), req); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "where sandboxes may write can't be kept") {
		t.Errorf("got %v, %v", one, err)
	}
}
