package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// documents are the policies and lockfiles that sandboxes were made with, in files by
// their digests, so that a restarted daemon holds its sandboxes to the same ones and
// `policy suggest` finds them.
type documents struct {
	*keptLocks

	dir string
}

func newDocuments(dir string) documents { return documents{newKeptLocks(dir), dir} }

// keepDocuments stores what a sandbox is to be made with, for the create of which it is held: see keptLocks.
func (d documents) keepDocuments(req Request, set *lockfile.Set) (release func(), err error) {
	if err := d.keepPolicy(req.Policy.Digest(), req.PolicyText); err != nil {
		return nil, err
	}
	return d.keepLock(req.Owner.Token, req.Lock, set)
}

// keepPolicy stores a document under its policy's digest.
func (d documents) keepPolicy(digest string, text []byte) error {
	path := d.policyPath(digest)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := atomicfile.Replace(path, text, 0o600); err != nil {
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
