// Package project reads cofferdam.yaml, which says how the runs of a directory are made, so
// that they need no flags.
//
// A project's settings are allowed once a person has said that they have read them. The content of
// the file, of the policy that it names, of the lockfiles that both name and of the ignore file
// counts, and where its paths lead: all can come with code that a stranger wrote, or be written by
// an agent for its next run. So a file that is not allowed, or has changed since, is not used, and
// its runs are refused.
package project

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// File is the name of a project's settings.
const File = "cofferdam.yaml"

// IgnoreFile is the name of the file that says what of the directory runs do not see.
const IgnoreFile = ".aiignore"

// mostBytes bounds the file, and the policy that it names.
const mostBytes = 1 << 20

// Settings are a project's. Each is what the flag of `run` with that name says; one on the
// command line goes before it.
type Settings struct {
	Template  string          `yaml:"template"`
	Policy    string          `yaml:"policy"` // a path, from the project's directory
	Isolation string          `yaml:"isolation"`
	Workspace string          `yaml:"workspace"` // copy
	Agent     string          `yaml:"agent"`
	Home      string          `yaml:"home"`
	Task      string          `yaml:"task"`
	Timeout   config.Duration `yaml:"timeout"`
	Lockfiles []string        `yaml:"lockfiles"` // paths, from the project's directory
	// Mounts are SOURCE:DESTINATION[:rw], their sources from the project's directory.
	Mounts      []string          `yaml:"mounts"`
	Ports       []string          `yaml:"ports"` // PORT or HOSTPORT:PORT
	Environment map[string]string `yaml:"environment"`
	Hooks       Hooks             `yaml:"hooks"`
	Command     []string          `yaml:"command"` // of a run that is given none
}

// Hooks are lines for the sandbox's shell. They run inside, as the command does.
type Hooks struct {
	Start []string `yaml:"start"` // before the command, which does not start if one fails
	End   []string `yaml:"end"`   // after it, however it ended
}

// Project is a directory with settings.
type Project struct {
	Dir      string // absolute
	Settings Settings
	Text     []byte // of the settings, as it was read
	Policy   []byte // the document that the settings name, as it was read; nil: none
	Ignore   []byte // what its ignore file says, as it was read; nil: none
	Leads    []Lead // where paths of the settings lead that go through links
	Locks    []Lock // the lockfiles that the settings and the policy name
	Digest   string // of all that a person has to have read

	parts map[string]string // digests of what Digest is of, by their names
}

// Path is that of the settings.
func (p Project) Path() string { return filepath.Join(p.Dir, File) }

// Find looks for the settings that hold in a directory: its own, or the nearest of one above it,
// up to one that has .git. nil: there are none. A file that can't be read, or is wrong, is
// fault.ErrInvalid.
//
// kept is where it is kept what somebody has allowed; "": nothing is. Allowed settings hold for
// all that is below them: a .git between, which an agent may have made, does not end the search for
// them, and if they are gone it is fault.ErrConflict, since the next run would be made without them.
func Find(dir, kept string) (*Project, error) {
	known, err := readAllowed(kept)
	if err != nil {
		return nil, err
	}
	outside := false // of the repository that the search began in
	for {
		_, expected := known[dir]
		if expected || !outside {
			p, err := Read(dir)
			if err == nil {
				return p, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if expected {
				return nil, goneError(dir)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			outside = true
		}
		parent := filepath.Dir(dir)
		if parent == dir || outside && len(known) == 0 {
			return nil, nil //nolint:nilnil // most directories have none
		}
		dir = parent
	}
}

// goneError says that allowed settings are not there any more.
func goneError(dir string) error {
	return fault.New(fault.ErrConflict, "%s, by which you have allowed runs to be made, is not there any more, and a run may have removed it: put it back, or say that runs need none: cofferdam project forbid %s; or run with --no-project", filepath.Join(dir, File), dir)
}

// CheckPlace returns fault.ErrConflict if a directory on the way of a path, as somebody goes it, has allowed
// settings and is a link by now: who follows it comes to where others hold, or none.
func CheckPlace(way, kept string) error {
	known, err := readAllowed(kept)
	if err != nil || len(known) == 0 {
		return err
	}
	for dir := filepath.Clean(way); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, is := known[dir]; !is {
			continue
		}
		if to, links, err := hostpath.Links(dir); err == nil && len(links) > 0 {
			return fault.New(fault.ErrConflict, "%s, for which you have allowed settings, is reached through the link %s now, and is %s: go there by its own name, or say that there are no settings any more: cofferdam project forbid %s", dir, links[0], to, dir)
		}
	}
	return nil
}

// Read reads a directory's settings; fs.ErrNotExist: it has none.
func Read(dir string) (*Project, error) {
	path := filepath.Join(dir, File)
	text, err := limited(path, mostBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "%s can't be read", path)
	}
	p := &Project{Dir: dir, Text: text}
	if p.Settings, err = Parse(path, text); err != nil {
		return nil, err
	}
	if p.Settings.Policy != "" {
		if p.Policy, err = limited(p.Inside(p.Settings.Policy), mostBytes); err != nil {
			// Not wrapped: that the policy is not there must not look as if there were no settings.
			return nil, fault.Invalid("%s names the policy %s, which can't be read: %s", path, p.Settings.Policy, err)
		}
	}
	if p.Leads, err = p.listLeads(); err != nil {
		return nil, err
	}
	parts := [][]byte{text, p.Policy}
	if len(p.Leads) > 0 {
		parts = append(parts, leadsText(p.Leads))
	}
	if p.Locks = p.readLocks(); len(p.Locks) > 0 {
		parts = append(parts, []byte("lockfiles"), locksText(p.Locks))
	}
	ignore, err := limited(filepath.Join(dir, IgnoreFile), mostBytes)
	switch {
	case err == nil:
		p.Ignore = ignore
		parts = append(parts, []byte("ignore"), ignore)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Invalid("%s, which says what runs do not see, can't be read: %s", filepath.Join(dir, IgnoreFile), err)
	}
	p.Digest = digest(parts...)
	p.parts = map[string]string{File: digest(text), "the policy": digest(p.Policy), "where its paths lead": digest(leadsText(p.Leads)), "a lockfile": digest(locksText(p.Locks)), IgnoreFile: digest(ignore)}
	return p, nil
}

// Inside is a path of the settings, from the directory; "" stays that.
func (p *Project) Inside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Dir, path)
}

// digest is one of parts whose borders can't be moved.
func digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		sum.Write(size[:])
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// limited reads a regular file. One that is none is not waited for: an agent may have made it. Links
// are followed, and what they lead to is part of what is allowed (Leads).
func limited(path string, most int64) ([]byte, error) {
	file, err := hostpath.Follow(path)
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return nil, errors.New("it is no regular file")
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.ID.Type != hostpath.File {
		return nil, errors.New("it is no regular file")
	}
	text, err := file.ReadFile(most)
	if int64(len(text)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return text, err
}

// Parse reads settings strictly. Errors name path, line and what to do.
func Parse(path string, text []byte) (Settings, error) {
	var s Settings
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, fault.Invalid("%s is wrong: %s", path, config.Plainly(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return s, fault.Invalid("%s has more than one document; keep the first", path)
	}
	if s.Workspace != "" && s.Workspace != "copy" {
		return s, fault.Invalid("%s: workspace is %q; it can be copy, or be left out", path, s.Workspace)
	}
	for name := range s.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return s, fault.Invalid("%s: environment: %q is no variable", path, name)
		}
	}
	for _, line := range append(append([]string{}, s.Hooks.Start...), s.Hooks.End...) {
		if strings.TrimSpace(line) == "" {
			return s, fault.Invalid("%s: hooks: a line is empty", path)
		}
	}
	return s, nil
}
