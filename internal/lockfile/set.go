package lockfile

import (
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Set are the lockfiles of a run with the rules that they are under. It never
// changes.
type Set struct {
	mode   policy.LockMode
	trust  bool
	files  []*Lockfile
	digest string
}

// Digest names the set: over its lockfiles' digests, the mode and the trust.
func (s *Set) Digest() string { return s.digest }

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
	}
	return lock
}
