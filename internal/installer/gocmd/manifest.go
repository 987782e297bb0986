package gocmd

import (
	"golang.org/x/mod/modfile"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
)

// modFile is a module's own file.
const modFile = "go.mod"

// Manifests implements installer.ManifestReader.
func (client) Manifests() []installer.Manifest {
	return []installer.Manifest{{Name: modFile, Roots: moduleRoots}}
}

// moduleRoots are the direct requirements of a go.mod: with_dependencies brings the
// others.
func moduleRoots(text []byte) ([]string, error) {
	f, err := modfile.ParseLax(modFile, text, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range f.Require {
		if !r.Indirect {
			names = append(names, r.Mod.Path)
		}
	}
	return names, nil
}
