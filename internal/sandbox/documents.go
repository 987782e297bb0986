package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// documents are the policies and lockfiles that sandboxes were made with, in files by
// their digests, so that a restarted daemon holds its sandboxes to the same ones and
// `policy suggest` finds them.
type documents struct{ dir string }

// keepPolicy stores a document under its policy's digest.
func (d documents) keepPolicy(digest string, text []byte) error {
	path := d.policyPath(digest)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := wholefile.Replace(path, text, 0o600); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy can't be kept in %s", d.dir)
	}
	return nil
}

func (d documents) policyPath(digest string) string {
	return filepath.Join(d.dir, strings.TrimPrefix(digest, "sha256:")+".yaml")
}

// policyText returns the document of a digest, or fault.ErrNotFound.
func (d documents) policyText(digest string) ([]byte, error) {
	data, err := os.ReadFile(d.policyPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the policy %s is not kept any more", digest)
	}
	return data, nil
}

// policy reads the policy of a digest.
func (d documents) policy(digest string) (*policy.Policy, error) {
	p, _, err := d.policyFrom(digest, digest)
	return p, err
}

// policyFrom reads the policy of a digest as it was given, from a source.
func (d documents) policyFrom(source, digest string) (*policy.Policy, []byte, error) {
	text, err := d.policyText(digest)
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.Parse(source, text)
	if err != nil {
		return nil, nil, err
	}
	if p.Digest() != digest {
		return nil, nil, fault.New(fault.ErrConflict, "the kept policy %s has another digest now", digest)
	}
	return p, text, nil
}

// readLock reads a run's lockfiles; nil for a run without.
func readLock(given *lockfile.Given) (*lockfile.Set, error) {
	if given == nil {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	return given.Set()
}

// keepLock stores the lockfiles as they were given under the set's digest.
func (d documents) keepLock(given *lockfile.Given, set *lockfile.Set) error {
	if set == nil {
		return nil
	}
	path := d.lockPath(set.Digest())
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := given.Encode()
	if err == nil {
		err = wholefile.Replace(path, data, 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the lockfiles can't be kept in %s", d.dir)
	}
	return nil
}

func (d documents) lockPath(digest string) string {
	return filepath.Join(d.dir, strings.TrimPrefix(digest, "sha256:")+".lock.json")
}

// lock reads the kept lockfiles of a digest; nil for "".
func (d documents) lock(digest string) (*lockfile.Set, error) {
	if digest == "" {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	data, err := os.ReadFile(d.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	set, err := lockfile.Decode(data)
	if err != nil {
		return nil, err
	}
	if set.Digest() != digest {
		return nil, fault.New(fault.ErrConflict, "the kept lockfiles %s have another digest now", digest)
	}
	return set, nil
}

// givenLock reads the kept lockfiles of a digest as they were given.
func (d documents) givenLock(digest string) (*lockfile.Given, error) {
	if _, err := d.lock(digest); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(d.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	given := &lockfile.Given{}
	return given, json.Unmarshal(data, given)
}
