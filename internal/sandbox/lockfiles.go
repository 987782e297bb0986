package sandbox

import "github.com/cofferdam-dev/cofferdam/internal/lockfile"

// Lockfiles are the kept lockfiles of a run, by the digest in its started record;
// nil for "". fault.ErrNotFound if they are not kept any more.
func (m *Manager) Lockfiles(digest string) (*lockfile.Set, error) { return m.loadLock(digest) }
