// Package namedpolicy keeps the policies that have a name, which tokens are bound
// to and clients choose from.
//
// The default is in force where no policy was put under a name. A policy's history is the digests
// that its name stood for.
//
// The files on the disk, in one directory:
//
//	NAME.yaml      the document
//	NAME.history   JSON lines, one for each change, the oldest first
//
// A document is replaced in one step, and only by one that was parsed: whatever
// goes wrong, the old one stays in force. The directory is read once, by Open; a
// document in it that can't be read is refused by name, and no other is.
package namedpolicy

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// DefaultName is the policy of whoever names none.
const DefaultName = "default"

// Default is what DefaultName means until something is put there: nothing may
// be installed.
const Default = "name: default\npackages:\n  default: deny\n"

const (
	suffix   = ".yaml"
	maxNamed = 1_000
)

// Named is a policy with a name. It never changes.
type Named struct {
	Name    string
	Text    []byte         // do not write to it
	Policy  *policy.Policy // its Source is Path, or for the built-in one its name
	Path    string         // of the document; "": it is the built-in default
	Changed time.Time      // zero: it is the built-in default
}

// Store is the named policies of an installation. Safe for concurrent use; a
// directory has one Store.
type Store struct {
	dir   string
	users func(name string) []string

	writing sync.Mutex // held over a change of the directory and of what follows

	mu     sync.RWMutex // guards what follows
	named  map[string]*Named
	broken map[string]error // documents that can't be read
}

// Open reads a directory, making it if need be. users tells which tokens may
// use a policy (token.Book.Users).
func Open(dir string, users func(name string) []string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the named policies can't be kept in %s", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the named policies in %s can't be read", dir)
	}
	s := &Store{dir: dir, users: users, named: map[string]*Named{}, broken: map[string]error{}}
	for _, e := range entries {
		name, isDocument := strings.CutSuffix(e.Name(), suffix)
		if !isDocument || checkName(name) != nil {
			continue
		}
		n, err := s.loadPolicy(name)
		if err != nil {
			s.broken[name] = err
			continue
		}
		s.named[name] = n
	}
	return s, nil
}

func (s *Store) pathOf(name string) string { return filepath.Join(s.dir, name+suffix) }

// mostBytes bounds a document.
const mostBytes = 16 << 20

func (s *Store) loadPolicy(name string) (*Named, error) {
	path := s.pathOf(name)
	file, err := privatefile.ReadTrusted("the policy "+name, path, mostBytes, nil) // links in the state are config.Config.Believed
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the policy %s can't be read", name)
	}
	text := file.Data
	p, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	return &Named{Name: name, Text: text, Policy: p, Path: path, Changed: file.Modified.UTC()}, nil
}

// Get returns a named policy. An unknown name is a fault.ErrNotFound, one whose
// document can't be read a fault of what is wrong with it.
func (s *Store) Get(name string) (*Named, error) {
	s.mu.RLock()
	n, err := s.named[name], s.broken[name]
	s.mu.RUnlock()
	switch {
	case err != nil:
		return nil, err
	case n != nil:
		return n, nil
	case name == DefaultName:
		return builtIn()
	}
	return nil, fault.New(fault.ErrNotFound, "there is no policy named %q", text.Shorten(name, maxQuoted))
}

func builtIn() (*Named, error) {
	p, err := policy.Parse("the built-in policy", []byte(Default))
	if err != nil {
		return nil, err
	}
	return &Named{Name: DefaultName, Text: []byte(Default), Policy: p}, nil
}

// List returns all named policies in the order of their names, the built-in
// default included. Those that can't be read are left out; see Broken.
func (s *Store) List() ([]*Named, error) {
	s.mu.RLock()
	all := make([]*Named, 0, len(s.named)+1)
	for _, n := range s.named {
		all = append(all, n)
	}
	hidden := s.named[DefaultName] != nil || s.broken[DefaultName] != nil
	s.mu.RUnlock()
	if !hidden {
		n, err := builtIn()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *Named) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Broken are the names whose documents could not be read, and why.
func (s *Store) Broken() map[string]error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.broken)
}

// Put sets a policy under a name. origin says for people where the text comes
// from, usually a path. On any error what was there stays in force.
func (s *Store) Put(name, origin string, text []byte) (*Named, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if _, err := Parse(origin, text); err != nil {
		return nil, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.RLock()
	_, known := s.named[name]
	full := !known && len(s.named) >= maxNamed
	s.mu.RUnlock()
	if full {
		return nil, fault.New(fault.ErrConflict, "there are %d named policies already, and no more are kept", maxNamed)
	}
	if err := s.publishDocument(name, origin, text); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the policy %s can't be written to %s", name, s.dir)
	}
	n, err := s.loadPolicy(name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[name] = n
	delete(s.broken, name)
	return n, nil
}

// Remove takes a policy away; DefaultName is the built-in one then. It is a
// fault.ErrConflict while a token may use it. Its history stays.
func (s *Store) Remove(name string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.RLock()
	known := s.named[name] != nil || s.broken[name] != nil
	s.mu.RUnlock()
	switch users := s.users(name); {
	case !known && name == DefaultName:
		return fault.New(fault.ErrConflict, "the policy %s is the built-in one, which can't be removed", name)
	case !known:
		return fault.New(fault.ErrNotFound, "there is no policy named %q", text.Shorten(name, maxQuoted))
	case len(users) > 0 && name != DefaultName:
		return fault.New(fault.ErrConflict, "the policy %s is used by the tokens %s; revoke them first", name, firstFew(users))
	}
	if err := os.Remove(s.pathOf(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy %s can't be removed", name)
	}
	s.mu.Lock()
	delete(s.named, name)
	delete(s.broken, name)
	s.mu.Unlock()
	if err := s.noteChange(name, Change{Time: time.Now().UTC()}); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy %s was removed, but its history could not be written", name)
	}
	return nil
}

// firstFew shows the first few names.
func firstFew(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// Parse reads a document as a named one: who uses it comes over the network, so
// it can neither write to the host nor wait for files that a client brings.
func Parse(source string, text []byte) (*policy.Policy, error) {
	p, err := policy.Parse(source, text)
	if err != nil {
		return nil, err
	}
	if p.Lockfiles().Given {
		return nil, fault.Invalid("%s: packages.lockfile can't be in a named policy: its sandboxes bring no lockfiles", source)
	}
	for _, m := range p.Mounts() {
		if m.ReadWrite {
			return nil, fault.Invalid("%s: %s can't be mounted read-write by a named policy: its sandboxes belong to no user of this host", source, m.Source)
		}
	}
	return p, nil
}

var policyName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func checkName(name string) error {
	if !policyName.MatchString(name) {
		return fault.Invalid("the policy's name %q is not valid: 1 to 63 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit", text.Shorten(name, maxQuoted))
	}
	return nil
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 64
