package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// readLock reads a run's lockfiles; nil for a run without.
func readLock(given *lockfile.Given) (*lockfile.Set, error) {
	if given == nil {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	return given.Set()
}

// lockPaths are the lockfiles' paths on the host.
func lockPaths(given *lockfile.Given) []string {
	if given == nil {
		return nil
	}
	var paths []string
	for _, s := range given.Sources {
		paths = append(paths, s.Name)
	}
	return paths
}

// keepLock stores the lockfiles as they were given under the set's digest, so
// that a restarted daemon holds its sandboxes to the same ones.
func (m *Manager) keepLock(given *lockfile.Given, set *lockfile.Set) error {
	if set == nil {
		return nil
	}
	path := m.lockPath(set.Digest())
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := given.Encode()
	if err == nil {
		err = wholefile.Replace(path, data, 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the lockfiles can't be kept in %s", m.cfg.PolicyDir)
	}
	return nil
}

func (m *Manager) lockPath(digest string) string {
	return filepath.Join(m.cfg.PolicyDir, strings.TrimPrefix(digest, "sha256:")+".lock.json")
}

// loadLock reads the kept lockfiles of a digest; nil for "".
func (m *Manager) loadLock(digest string) (*lockfile.Set, error) {
	if digest == "" {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	data, err := os.ReadFile(m.lockPath(digest))
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
