package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// Bounds of a look at a project's sources: it is for a hint.
const (
	mostSources = 500
	mostSought  = 200 // directories
)

// noteScripts notes the roots of which a lockfile or a manifest says that something runs, or may run, when they are installed: the document that is
// written refuses that.
func (p *projectWants) noteScripts(ecosystem pkgref.Ecosystem, w *manifest.Wants, locked map[string]manifest.Place) {
	for _, root := range p.roots[ecosystem] {
		name, _ := packageName(ecosystem, root)
		runs := "runs"
		at, says := locked[name]
		if !says { // pnpm's settings list what may, whether it does or not
			runs = "may run"
			at, says = w.MayBuild(name)
		}
		if says {
			p.notes = append(p.notes, fmt.Sprintf("%s: %s %s something when it is installed, and the policy has install_scripts: deny: such a release is withheld until its entry says install_scripts: true, or packages says install_in: throwaway", at, root, runs))
		}
	}
}

// noteUntidy notes, once, that a client has a manifest yet to fill: a source file imports what no manifest has.
func (p *projectWants) noteUntidy(files projectFiles, client installer.Installer, read []string) {
	tidier, can := client.(installer.Tidier)
	if !can {
		return
	}
	var manifests [][]byte
	var dirs []string
	for _, name := range read {
		if path.Base(name) != tidier.TidiedManifest() {
			continue
		}
		text, err := files.Read(name)
		if err != nil {
			return
		}
		manifests, dirs = append(manifests, text), append(dirs, path.Dir(name))
	}
	unrequired := tidier.Unrequired(manifests)
	for _, source := range sourcesIn(files, dirs, tidier) {
		text, err := files.Read(source)
		if err != nil {
			continue
		}
		if name, line := unrequired(text); name != "" {
			p.notes = append(p.notes, fmt.Sprintf("%s: no %s has a module for %s, so that it is no root of the policy: run %s, and init again", manifest.Place{File: source, Line: line}, tidier.TidiedManifest(), name, tidier.Tidy()))
			return
		}
	}
}

// sourcesIn are source files in the directories of manifests and below, as many as are looked at. Hidden directories, and those that go
// passes over, are none of the project's, and neither are those of a manifest that was not read.
func sourcesIn(files projectFiles, dirs []string, tidier installer.Tidier) (sources []string) {
	seen, read := map[string]bool{}, slices.Clone(dirs)
	for len(dirs) > 0 && len(seen) < mostSought && len(sources) < mostSources {
		dir := dirs[0]
		if dirs = dirs[1:]; seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := files.entries(dir)
		another := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == tidier.TidiedManifest() }) && !slices.Contains(read, dir)
		if err != nil || another {
			continue
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case e.Type() == fs.ModeDir && !slices.Contains([]string{"testdata", "vendor", "node_modules"}, e.Name()) && !strings.ContainsAny(e.Name()[:1], "._"):
				dirs = append(dirs, name)
			case e.Type().IsRegular() && tidier.IsSource(e.Name()):
				sources = append(sources, name)
			}
		}
	}
	return sources[:min(len(sources), mostSources)]
}
