package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// ownFile are files of the state directory that only the daemon's user may read or write.
type ownFile struct {
	what string // "the key of the log"
	dir  string
	name string // a pattern, see filepath.Match
}

// keptPaths lists all of them: keys, what says who may do what, and what has people's data or
// upstreams' credentials in it.
func (p Paths) keptPaths() []ownFile {
	file := func(what, path string) ownFile { return ownFile{what, filepath.Dir(path), filepath.Base(path)} }
	database := func(what, path string) ownFile { return ownFile{what, filepath.Dir(path), filepath.Base(path) + "*"} }
	return []ownFile{
		file("the audit log's key", p.AuditKey()),
		file("the key of findings", p.FindingsKey()),
		file("the key of sandboxes' access tokens", p.AccessKey()),
		database("the file of tokens", p.Tokens()),
		database("the journal of sandboxes", p.Sandboxes()),
		database("the approval queue's file", p.Approvals()),
		{"a key of the CA", p.Authority(), "*.key"},
		{"a key of the hosts' CAs", p.HostAuthorities(), "*.key"},
		{"a key of the hosts' CAs", filepath.Join(p.HostAuthorities(), "*"), "*.key"},
		{"a key of the API's CA", p.APIAuthority(), "*.key"},
		file("the mark that tokens were made", p.TokensMade()),
		{"personal data of the audit log", p.Audit(), "*.personal"},
		{"the audit log", p.Audit(), "*.jsonl"},
		file("the log's last checkpoint", p.AuditSeen()),
		file("the clock's file", p.Clock()),
		file("the list of what has not ended", p.Unended()),
		{"a registry that was found", p.Upstreams(), "upstream-*.json"},
		file("the record of where sandboxes could write", p.Written()),
		file("the record of what ignore files hide", p.Hidden()),
		file("the list of projects that are allowed", p.Projects()),
		{"an SSH key of a sandbox", filepath.Join(p.State, "ssh", "*"), "host_key"},
		{"an SSH key of a sandbox", filepath.Join(p.State, "ssh", "*"), "id_ed25519"},
	}
}

// CheckKept refuses an installation in which one of the files that only its user may read or
// write is a link, another user's, or open to others: what it says may be theirs, and what it
// keeps may be known to them. It is for the start, before any of them is read.
func (p Paths) CheckKept() error {
	for _, k := range p.keptPaths() {
		dirs := []string{k.dir}
		if filepath.Base(k.dir) == "*" {
			dirs = subdirectories(filepath.Dir(k.dir))
		}
		for _, dir := range dirs {
			if err := k.checkKept(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k ownFile) checkKept(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if matches, err := filepath.Match(k.name, e.Name()); err != nil || !matches {
			continue
		}
		if err := privatefile.Check(k.what, filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func subdirectories(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it is looked at by itself, or is not there
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
