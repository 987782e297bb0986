package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

func readLockfile(path string) (fileEdit, error) {
	actual, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fileEdit{}, fault.Invalid("the folder of the lockfile %s %s", path, because(err))
		}
		return fileEdit{path: path, isNew: true}, nil
	}
	if err != nil {
		return fileEdit{}, fault.Invalid("the lockfile %s %s", path, because(err))
	}
	text, err := readDocument("lockfile", actual, lockfile.MaxBytes)
	if err != nil {
		return fileEdit{}, err
	}
	if _, err := lockfile.Parse(path, text); err != nil {
		return fileEdit{}, err // it is none, or a hash is missing: that is the person's to mend
	}
	return fileEdit{path: actual, before: text}, nil
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
