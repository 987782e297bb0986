package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/linediff"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// answerFlags are what `approvals approve` and `deny` were asked for.
type answerFlags struct {
	state    approval.State
	scope    string
	expires  string
	reason   string
	yes      bool
	revision uint64 // --revision, of the one request that is named
	json     bool
	policy   string // --add-to-policy; theRunsPolicy: the run's own
	lockfile string
	force    bool

	lasts time.Duration     // of expires
	named map[string]uint64 // by id, the revisions that were given
	bare  []string          // ids that were given without one
}

// theRunsPolicy is --add-to-policy without a file: no file has this name.
const theRunsPolicy = "\x00"

// listEdits lists the changes of files that go with an approval; one that changes
// nothing is left out.
func (f *answerFlags) listEdits(requests []approval.Request) ([]fileEdit, error) {
	var edits []fileEdit
	for _, make := range []struct {
		flag   string
		wanted bool
		edit   func([]approval.Request) (fileEdit, error)
	}{{"--add-to-policy", f.policy != "", f.policyEdit}, {"--lockfile", f.lockfile != "", f.lockfileEdit}} {
		if !make.wanted {
			continue
		}
		if err := onlyReleases(requests, make.flag); err != nil {
			return nil, err
		}
		e, err := make.edit(requests)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(e.before, e.after) {
			_, _ = fmt.Fprintf(os.Stderr, "cofferdam: %s already contains it\n", ui.Printable(e.path))
			continue
		}
		e.diff = unified(e)
		edits = append(edits, e)
	}
	return edits, nil
}

func unified(e fileEdit) string {
	from := e.path
	if e.isNew {
		from = os.DevNull
	}
	return linediff.Unified(from, e.path, e.before, e.after)
}

// policyEdit adds the releases to the allowlist of the runs' policy, or of the
// file that was named.
func (f *answerFlags) policyEdit(requests []approval.Request) (fileEdit, error) {
	path, digests, err := f.policyFile(requests)
	if err != nil {
		return fileEdit{}, err
	}
	e, err := findPolicy(path)
	if err != nil {
		return fileEdit{}, err
	}
	sum := sha256.Sum256(e.before)
	if len(digests) > 0 && !slices.Contains(digests, "sha256:"+hex.EncodeToString(sum[:])) && !f.force {
		return fileEdit{}, fault.Invalid("the policy %s was changed since the run read it; look at it, and give --force to add to it as it is now", path)
	}
	var releases []pkgref.Ref
	for _, r := range requests {
		releases = append(releases, r.Package)
	}
	e.after, _, err = policy.Suggest(e.before, releases)
	return e, err
}

// findPolicy finds and reads a policy that is to be changed.
func findPolicy(path string) (fileEdit, error) {
	e, err := findEdit("policy", path, maxPolicy)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.isNew {
		return fileEdit{}, fault.Invalid("the policy %s does not exist", path)
	}
	return e, err
}

// policyFile is where the entries go, and the digests that the file had when the
// runs read it; none if it is another file.
func (f *answerFlags) policyFile(requests []approval.Request) (path string, digests []string, err error) {
	sources := map[string][]string{}
	for _, r := range requests {
		for _, a := range r.Asks {
			if a.PolicyName != "" {
				sources[a.PolicyName] = append(sources[a.PolicyName], a.Policy)
			}
		}
	}
	if f.policy != theRunsPolicy {
		absolute, err := filepath.Abs(f.policy)
		return f.policy, sources[absolute], err
	}
	var paths []string
	for source := range sources {
		paths = append(paths, source)
	}
	slices.Sort(paths)
	switch len(paths) {
	case 0:
		return "", nil, fault.Invalid("the run had the built-in policy, which is not a file; name one with --add-to-policy=FILE")
	case 1:
		return paths[0], sources[paths[0]], nil
	}
	return "", nil, fault.Invalid("the runs that asked had several policies (%s); name one with --add-to-policy=FILE", ui.JoinWords(paths))
}

// lockfileEdit writes the releases into a requirements.txt with hashes.
func (f *answerFlags) lockfileEdit(requests []approval.Request) (fileEdit, error) {
	pinner, ecosystem, known := pinnerOf(f.lockfile)
	if !known {
		return fileEdit{}, fault.Invalid("--lockfile %s: only requirements.txt with hashes (any name that ends in .txt) is written here; other lockfiles are written by their own tools, see cofferdam plan --lock", f.lockfile)
	}
	e, err := readLockfile(f.lockfile)
	if err != nil {
		return fileEdit{}, err
	}
	e.after = e.before
	for _, r := range requests {
		if r.Package.Ecosystem != ecosystem {
			return fileEdit{}, fault.Invalid("%s is no %s package: only requirements.txt is written here; other lockfiles are written by their own tools, see cofferdam plan --lock", releaseText(r), ecosystem)
		}
		if e.after, err = pinner.Pin(e.after, r.Package, approval.Digests(r.Files)); err != nil {
			return fileEdit{}, err
		}
	}
	if _, err := lockfile.Parse(f.lockfile, e.after); err != nil {
		return fileEdit{}, fmt.Errorf("the release can't be written into the lockfile: %w", err)
	}
	return e, nil
}
