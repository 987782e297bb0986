package project

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Lock is a lockfile that says what a project's runs may install.
type Lock struct {
	Path   string `json:"path"`   // absolute
	SHA256 string `json:"sha256"` // of its content, in hex; "": it could not be read, so that no run begins
	// Trusted tells that the policy lets it stand for the list of what is allowed.
	Trusted bool `json:"trusted,omitempty"`

	Data []byte `json:"-"` // as it was read
}

// readLocks reads the lockfiles that the settings and their policy name, each once.
func (p *Project) readLocks() []Lock {
	rules, named := p.lockfilePaths()
	var all []Lock
	for _, path := range named {
		if slices.ContainsFunc(all, func(l Lock) bool { return l.Path == path }) {
			continue
		}
		lock := Lock{Path: path, Trusted: rules.Trust}
		if data, err := limited(path, lockfile.MaxBytes); err == nil {
			sum := sha256.Sum256(data)
			lock.Data, lock.SHA256 = data, hex.EncodeToString(sum[:])
		}
		all = append(all, lock)
	}
	return all
}

// lockfilePaths are the policy's rules for lockfiles, and where those lie that it and the settings
// name. A policy that can't be read names none: no run is made by it.
func (p *Project) lockfilePaths() (rules policy.LockRules, paths []string) {
	if p.Policy != nil {
		document := filepath.Clean(p.Inside(p.Settings.Policy))
		if parsed, err := policy.Parse(document, p.Policy); err == nil {
			rules = parsed.Lockfiles()
			for _, file := range rules.Files {
				paths = append(paths, lockfile.Path(document, file))
			}
		}
	}
	for _, file := range p.Settings.Lockfiles {
		if file != "" {
			paths = append(paths, filepath.Clean(p.Inside(file)))
		}
	}
	return rules, paths
}

// locksText is what of the lockfiles is in the digest.
func locksText(all []Lock) []byte {
	var text strings.Builder
	for _, l := range all {
		text.WriteString(l.Path + "\x00" + l.SHA256 + "\x00")
	}
	return []byte(text.String())
}

// LockData is a lockfile as it was read when the project was, by its absolute path; nil: it could
// not be read. named is false for one that the project does not name.
func (p *Project) LockData(path string) (data []byte, named bool) {
	for _, l := range p.Locks {
		if l.Path == path {
			return l.Data, true
		}
	}
	return nil, false
}

// Deciding are the files that say how the runs of a directory are made and what they may do:
// those that its settings name, and those of the directories above it, with what they name in
// turn, and the links on the way. Absolute. Settings that are wrong name nothing, since no run
// is made by them.
func Deciding(dir string) []string {
	var all []string
	for {
		for _, path := range decidingIn(dir) {
			all = append(all, path)
			resolved, links, err := hostpath.Links(path)
			if all = append(all, links...); err == nil && resolved != path {
				all = append(all, resolved)
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return all
		}
		dir = parent
	}
}

// decidingIn are the files that the settings of just this directory name.
func decidingIn(dir string) []string {
	p := &Project{Dir: dir}
	text, err := limited(p.Path(), mostBytes)
	if err != nil {
		return nil
	}
	if p.Settings, err = Parse(p.Path(), text); err != nil {
		return nil
	}
	all := []string{p.Path()}
	if p.Settings.Policy != "" {
		all = append(all, filepath.Clean(p.Inside(p.Settings.Policy)))
		if document, err := limited(p.Inside(p.Settings.Policy), mostBytes); err == nil {
			p.Policy = document
		}
	}
	_, locks := p.lockfilePaths()
	return append(all, locks...)
}
