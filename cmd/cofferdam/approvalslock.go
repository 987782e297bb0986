package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

func readLockfile(path string) (fileEdit, error) {
	e, err := findEdit("lockfile", path, lockfile.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return fileEdit{}, fault.Invalid("the folder of the lockfile %s %s", path, because(err))
	}
	if err != nil || e.isNew {
		return e, err
	}
	if _, err := lockfile.Parse(path, e.before); err != nil {
		return fileEdit{}, err // it is none, or a hash is missing: that is the person's to mend
	}
	return e, nil
}

// pinnerOf is the client whose lockfile is written here.
func pinnerOf(file string) (installer.Pinner, pkgref.Ecosystem, bool) {
	for _, client := range all.Installers() {
		if pinner, can := client.(installer.Pinner); can && pinner.Pins(filepath.Base(file)) {
			return pinner, client.Ecosystem(), true
		}
	}
	return nil, "", false
}
