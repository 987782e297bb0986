package lockfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// MaxFiles bounds the lockfiles of one run.
const MaxFiles = 64

// Set are the lockfiles of a run with the rules that they are under. It never
// changes.
type Set struct {
	mode   policy.LockMode
	trust  bool
	files  []*Lockfile
	digest string
}

// NewSet puts lockfiles under rules; a mode of "" is frozen. A file that is
// given twice counts once.
func NewSet(rules policy.LockRules, files []*Lockfile) (*Set, error) {
	s := &Set{mode: rules.Mode, trust: rules.Trust}
	switch s.mode {
	case "":
		s.mode = policy.LockFrozen
	case policy.LockFrozen, policy.LockPrefer:
	default:
		return nil, unknownMode(s.mode)
	}
	if len(files) == 0 || len(files) > MaxFiles {
		return nil, fault.Invalid("a run has %d lockfiles; it can have 1 to %d", len(files), MaxFiles)
	}
	var names []string
	for _, f := range files {
		// A file's name says how it is read: the same bytes are another lockfile
		// under another one.
		if name := f.Digest + " " + path.Base(f.Name); !slices.Contains(names, name) {
			names, s.files = append(names, name), append(s.files, f)
		}
	}
	slices.Sort(names)
	h := sha256.New()
	fmt.Fprintf(h, "%s %t\n", s.mode, s.trust)
	for _, name := range names {
		fmt.Fprintf(h, "%q\n", name)
	}
	s.digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return s, nil
}

func unknownMode(mode policy.LockMode) error {
	return fault.Invalid("unknown lock mode %q; known modes: frozen, prefer", text.Shorten(string(mode), maxQuoted))
}

// Digest names the set: over its lockfiles' digests and base names, the mode and
// the trust.
func (s *Set) Digest() string { return s.digest }

// Mode is how the set rules.
func (s *Set) Mode() policy.LockMode { return s.mode }

// Trusted tells that the set stands for the allowlist.
func (s *Set) Trusted() bool { return s.trust }

// Files are the set's lockfiles.
func (s *Set) Files() []*Lockfile { return slices.Clone(s.files) }

// mostRemarks bounds those of a set.
const mostRemarks = 16

// Remarks are those of its lockfiles.
func (s *Set) Remarks() (remarks []string) {
	for _, f := range s.files {
		remarks = append(remarks, f.Remarks()...)
	}
	if more := len(remarks) - mostRemarks; more > 0 {
		remarks = append(remarks[:mostRemarks], fmt.Sprintf("%d more remarks about lockfiles are left out", more))
	}
	return remarks
}

// For says what the set has about a package; nil if no lockfile of its
// ecosystem is in it.
func (s *Set) For(pkg pkgref.Ref) *policy.Lock {
	var lock *policy.Lock
	for _, f := range s.files {
		if f.Ecosystem != pkg.Ecosystem {
			continue
		}
		if lock == nil {
			lock = &policy.Lock{Mode: s.mode, Trusted: s.trust}
		}
		lock.Pins = append(lock.Pins, f.Pins[pkg.Name]...)
		lock.Unpinned = append(lock.Unpinned, f.Unpinned[pkg.Name]...)
	}
	return lock
}
