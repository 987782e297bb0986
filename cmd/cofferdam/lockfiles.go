package main

import (
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// lockfiles reads those that the policy names and those of --lockfile, each
// once, and refuses a wrong one here, where the person can see the line.
// document is the policy's absolute path, or "".
func (f runFlags) lockfiles(cwd, document string, rules policy.LockRules) ([]api.Lockfile, error) {
	var sources []lockfile.Source
	read := func(shown, path string) error {
		if slices.ContainsFunc(sources, func(s lockfile.Source) bool { return s.Name == path }) {
			return nil
		}
		data, err := f.lockData(shown, path)
		if err != nil {
			return err
		}
		if _, err := lockfile.Parse(shown, data); err != nil {
			return err
		}
		sources = append(sources, lockfile.Source{Name: path, Data: data})
		return nil
	}
	for _, file := range rules.Files {
		path := lockfile.Path(document, file)
		if err := read(path, path); err != nil {
			return nil, err
		}
	}
	for _, file := range f.locks {
		path := filepath.Clean(file)
		if !filepath.IsAbs(path) {
			path = filepath.Join(resolved(cwd), file) // the name by which somebody is asked about it
		}
		if err := read(file, path); err != nil {
			return nil, err
		}
	}
	if _, err := lockfile.Give(document, rules, policy.LockMode(f.lockMode), sources); err != nil {
		return nil, err
	}
	var sent []api.Lockfile
	for _, s := range sources {
		sent = append(sent, api.Lockfile{Source: s.Name, Document: s.Data})
	}
	return sent, nil
}

// lockData reads a lockfile. That of a project is what was read when the project was found
// allowed, and not what stands there by now.
func (f runFlags) lockData(shown, path string) ([]byte, error) {
	var data []byte
	var named bool
	if f.allowedLocks != nil {
		data, named = f.allowedLocks(path)
	}
	if data != nil {
		return data, nil
	}
	data, err := readDeciding("lockfile", shown, lockfile.MaxBytes)
	if err == nil && named {
		return nil, fault.New(fault.ErrConflict, "the lockfile %s was put there while the project was looked at; try again", shown)
	}
	return data, err
}
