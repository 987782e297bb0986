package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// projectRoots are the names that a project asks for, each once, and the files that
// they stand in. What is no package's name (a URL, a path, an option) is left out.
func projectRoots(project string) (map[pkgref.Ecosystem][]string, []string, error) {
	roots := map[pkgref.Ecosystem][]string{}
	var from []string
	for _, client := range all.Installers() {
		reader, can := client.(installer.ManifestReader)
		if !can {
			continue
		}
		for _, m := range reader.Manifests() {
			names, found, err := rootsIn(project, m)
			if err != nil {
				return nil, nil, err
			}
			if found {
				from = append(from, m.Name)
			}
			for _, name := range names {
				if canonical, ok := rootName(client.Ecosystem(), name); ok {
					roots[client.Ecosystem()] = append(roots[client.Ecosystem()], canonical)
				}
			}
		}
	}
	for ecosystem, names := range roots {
		slices.Sort(names)
		roots[ecosystem] = slices.Compact(names)
	}
	return roots, from, nil
}

// rootsIn reads the names in one of a project's files, if it has that.
func rootsIn(project string, m installer.Manifest) (names []string, found bool, err error) {
	text, err := inProject(project, m.Name)
	if err != nil || text == nil {
		return nil, false, err
	}
	names, err = m.Roots(text)
	if err != nil {
		return nil, false, fault.Invalid("the project's file %s can't be read: %s", filepath.Join(project, m.Name), err)
	}
	return names, true, nil
}

// rootName is a name as an entry has it: with the extras that are asked for.
func rootName(ecosystem pkgref.Ecosystem, name string) (string, bool) {
	var extras []string
	if ecosystem.Traits().Extras {
		var ok bool
		if name, extras, ok = pkgref.CutExtras(name); !ok {
			return "", false
		}
	}
	canonical, err := pkgref.CanonicalName(ecosystem, name)
	if len(extras) > 0 {
		canonical += "[" + strings.Join(extras, ",") + "]"
	}
	return canonical, err == nil
}
