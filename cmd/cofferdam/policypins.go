package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// pinnedEntry is an entry beside a root's own, or of what a root requires: for a pre-release that the project itself names or
// pins, which no other entry lets in.
type pinnedEntry struct {
	name, version string
	prereleases   bool
}

// pinned are the versions of one ecosystem that a project's lockfiles pin, by canonical name.
type pinned map[string][]pkgref.Version

// pinnedIn reads the lockfiles at the top of a project. One that can't be read pins nothing: then no pre-release of it is let in, and
// a root of npm has no range by it, as without a lockfile. scripts are the names of which one says that something runs when they are
// installed.
func pinnedIn(files projectFiles, ecosystem pkgref.Ecosystem) (all pinned, scripts map[string]manifest.Place) {
	all, scripts = pinned{}, map[string]manifest.Place{}
	for _, l := range ecosystem.Lockfiles() {
		if strings.Contains(l.Name, "*") {
			continue // what has such a name may be something else, and manifests are read for themselves
		}
		data, err := files.Read(l.Name)
		if err != nil || data == nil {
			continue
		}
		lock, err := lockfile.Parse(l.Name, data)
		if err != nil {
			continue
		}
		for name, line := range lock.Scripts {
			scripts[name] = manifest.Place{File: l.Name, Line: line}
		}
		for name, pins := range lock.Pins {
			for _, pin := range pins {
				v, ok := pkgref.ParseVersion(ecosystem, pin.Version)
				known := slices.ContainsFunc(all[name], func(o pkgref.Version) bool { return o.CompareSpelled(v) == 0 })
				if ok && len(pin.Digests) > 0 && !known {
					all[name] = append(all[name], v)
				}
			}
		}
	}
	return all, scripts
}

// exactly is the entry for one version.
func exactly(ecosystem pkgref.Ecosystem, name, version string) pinnedEntry {
	if ecosystem.Traits().XRanges {
		return pinnedEntry{name, version, false}
	}
	v, _ := pkgref.ParseVersion(ecosystem, version)
	return pinnedEntry{name, "==" + version, v.PreRelease()}
}

// preReleases are the entries for the pre-releases of a root that the project names, or pins. own is the range of its entry.
func (p pinned) preReleases(ecosystem pkgref.Ecosystem, root manifest.Root, own string) (all []pinnedEntry) {
	name, _ := rootName(ecosystem, root.Name)
	canonical, _ := packageName(ecosystem, root.Name)
	within, _ := pkgref.ParseRange(ecosystem, own)
	admitted := func(v pkgref.Version) bool { return own != "" && within.SelectsPreReleases() && within.Match(v) }
	var exact []pkgref.Version
	for _, v := range p[canonical] {
		if v.PreRelease() && !admitted(v) {
			exact = append(exact, v)
			all = append(all, exactly(ecosystem, name, v.String()))
		}
	}
	for _, named := range root.Named {
		if named == own && within.SelectsPreReleases() {
			continue
		}
		if e, is := preReleaseNamed(ecosystem, name, named, exact); is && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// preReleaseNamed is the entry for a range that names a pre-release: that one alone, or what npm takes by the range, unless the
// lockfile says which that is.
func preReleaseNamed(ecosystem pkgref.Ecosystem, name, named string, locked []pkgref.Version) (e pinnedEntry, is bool) {
	within, ok := pkgref.ParseRange(ecosystem, named)
	if !ok || !pkgref.MayTakePreReleases(ecosystem, named) {
		return e, false
	}
	if within.SelectsPreReleases() && len(named) <= maxRange {
		return pinnedEntry{name, named, false}, !slices.ContainsFunc(locked, within.Match)
	}
	version, one := strings.CutPrefix(named, "==")
	v, readable := pkgref.ParseVersion(ecosystem, strings.Trim(version, "= "))
	if !one || !readable || !v.PreRelease() {
		return e, false
	}
	return exactly(ecosystem, name, v.String()), true
}

// others are the entries for pre-releases that a lockfile pins of what roots require: where a resolver chooses among releases, no
// requirement need name the one that it took. Elsewhere one does, and lets it in.
func (p pinned) others(ecosystem pkgref.Ecosystem, w *manifest.Wants, roots []string) (all []pinnedEntry) {
	if !ecosystem.Traits().Backtracks {
		return nil
	}
	for name, versions := range p {
		isRoot := slices.ContainsFunc(roots, func(root string) bool { bare, _ := packageName(ecosystem, root); return bare == name })
		if isRoot || w.Kept(name) != "" || !slices.ContainsFunc(versions, pkgref.Version.PreRelease) {
			continue
		}
		for _, v := range versions { // all of them: an entry holds for whatever is had of its name
			all = append(all, exactly(ecosystem, name, v.String()))
		}
	}
	return all
}

// rangeOf is the range of a root's entry: where a tree can have a package in several versions, the one that the project names it
// with, if its lockfile has no version outside of that. An entry holds whoever requires the name, and without a lockfile nobody
// knows which others there are.
func (p pinned) rangeOf(ecosystem pkgref.Ecosystem, root manifest.Root) string {
	canonical, _ := packageName(ecosystem, root.Name)
	if !ecosystem.Traits().SeveralVersions || root.Range != "" || len(root.Named) != 1 || len(p[canonical]) == 0 {
		return root.Range
	}
	within, ok := pkgref.ParseRange(ecosystem, root.Named[0])
	outside := func(v pkgref.Version) bool { return !within.Match(v) }
	if !ok || len(root.Named[0]) > maxRange || slices.ContainsFunc(p[canonical], outside) {
		return ""
	}
	return root.Named[0]
}

// maxRange bounds a range that becomes an entry's version, in bytes.
const maxRange = 200

// sortPinned puts entries in order, each once.
func sortPinned(all []pinnedEntry) []pinnedEntry {
	slices.SortFunc(all, func(a, b pinnedEntry) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(all)
}
