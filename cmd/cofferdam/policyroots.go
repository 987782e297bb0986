package main

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// projectWants are what a project's files ask for.
type projectWants struct {
	roots map[pkgref.Ecosystem][]string // the names, each once, sorted, as an entry has them
	// ranges are the versions that the project allows of a root, by ecosystem and name, where it says so of all that asks for it.
	ranges  map[pkgref.Ecosystem]map[string]string
	pinned  map[pkgref.Ecosystem][]pinnedEntry // further entries, sorted
	from    []string                           // the files that were read
	leftOut []manifest.LeftOut
	notes   []string // what else whoever reads the policy should know, a sentence each
	doubted bool     // something says that any name of an ecosystem may come from elsewhere
}

// countRoots counts the roots.
func (p projectWants) countRoots() (n int) {
	for _, names := range p.roots {
		n += len(names)
	}
	return n
}

// wantsOf reads the manifests of a project, for all clients. assumePublic: no names are withheld (manifest.Wants).
func wantsOf(project string, asked askedHere, assumePublic bool) (p projectWants, err error) {
	p.roots, p.ranges, p.pinned = map[pkgref.Ecosystem][]string{}, map[pkgref.Ecosystem]map[string]string{}, map[pkgref.Ecosystem][]pinnedEntry{}
	files := projectFiles(project)
	if err := files.check(); err != nil {
		return p, err
	}
	for _, client := range all.Installers() {
		reader, can := client.(installer.ManifestReader)
		if !can {
			continue
		}
		w := manifest.NewWants(files, func(name string) (string, bool) { return packageName(client.Ecosystem(), name) })
		w.AskedHere(func() (string, error) { return asked(client.Ecosystem()) })
		if assumePublic {
			w.AssumePublic()
		}
		for _, format := range reader.Manifests() {
			if _, err := w.Include(format, format.Name); err != nil {
				return p, fault.Invalid("the project's file %s", err)
			}
		}
		readParts(w, files, client)
		if namer, can := client.(installer.RegistryNamer); can {
			if err := searchRegistries(w, files, namer); err != nil {
				return p, fault.Invalid("the project's file %s", err)
			}
		}
		pins, scripts := pinnedIn(files, client.Ecosystem())
		if err := p.addManifests(client.Ecosystem(), w, pins); err != nil {
			return p, err
		}
		p.noteScripts(client.Ecosystem(), w, scripts)
		p.noteUntidy(files, client, w.Read())
	}
	p.leftOut = eachOnce(append(p.leftOut, notRead(files)...))
	return p, nil
}

// eachOnce leaves each line its first place: several clients say the same of a file.
func eachOnce(all []manifest.LeftOut) (lines []manifest.LeftOut) {
	told := map[manifest.LeftOut]bool{}
	for _, l := range all {
		if !told[l] {
			lines = append(lines, l)
		}
		told[l] = true
	}
	return lines
}

// readParts reads what parts of a project ask for in files of their own. One that can't be read may name a registry.
func readParts(w *manifest.Wants, files projectFiles, client installer.Installer) {
	reader, can := client.(installer.PartReader)
	if !can {
		return
	}
	for _, dir := range reader.PartFolders() {
		entries, err := files.entries(dir)
		if err != nil {
			w.Withhold(dir, 0, "", "what is in it can't be read, and may name a registry: "+err.Error())
		}
		for _, e := range entries {
			file := path.Join(dir, e.Name())
			format, is := reader.PartManifest(file)
			if !is || files.isFolder(file) {
				continue
			}
			if _, err := w.Include(format, file); err != nil {
				w.Withhold(file, 0, "", "it can't be read, and may name a registry: "+strings.TrimPrefix(err.Error(), file+" can't be read: "))
			}
		}
	}
}

// addManifests adds what one client's manifests ask for.
func (p *projectWants) addManifests(ecosystem pkgref.Ecosystem, w *manifest.Wants, pins pinned) error {
	roots, err := w.Roots()
	if err != nil {
		return fault.Invalid("%s", err)
	}
	for _, r := range roots {
		name, ok := rootName(ecosystem, r.Name)
		if !ok {
			p.leftOut = append(p.leftOut, manifest.LeftOut{File: r.File, Line: r.Line, Text: r.Name, Why: "it is no name of a package"})
			continue
		}
		p.roots[ecosystem] = append(p.roots[ecosystem], name)
		among := pins.rangeOf(ecosystem, r)
		p.pinned[ecosystem] = append(p.pinned[ecosystem], pins.preReleases(ecosystem, r, among)...)
		if among == "" {
			continue
		}
		if p.ranges[ecosystem] == nil {
			p.ranges[ecosystem] = map[string]string{}
		}
		p.ranges[ecosystem][name] = among
	}
	slices.Sort(p.roots[ecosystem])
	p.roots[ecosystem] = slices.Compact(p.roots[ecosystem])
	if len(p.roots[ecosystem]) > 0 {
		p.pinned[ecosystem] = sortPinned(append(p.pinned[ecosystem], pins.others(ecosystem, w, p.roots[ecosystem])...))
	}
	p.doubted = p.doubted || w.Doubted()
	p.from, p.leftOut = append(p.from, w.Read()...), append(p.leftOut, w.LeftOut()...)
	return nil
}

// notRead tells of files that ask for packages too, and that nobody reads here.
func notRead(files projectFiles) (all []manifest.LeftOut) {
	for _, one := range []struct{ name, why string }{
		{"setup.py", "it is a program, which is not run here: what it asks for is not read"},
		{"noxfile.py", "it is a program, which is not run here: what its sessions install is not read; name that in the install"},
		{".pnpmfile.cjs", "it is a program, which is not run here: what it changes is not read"},
		{"package.json5", "JSON5 is not read here: package.json is"},
		{"yarn.lock", "it is not read: package.json is"},
		{"bun.lock", "it is not read: package.json is"},
		{"bun.lockb", "it is not read: package.json is"},
		{"Cargo.toml", "crates are not served here"},
		{"Gemfile", "gems are not served here"},
		{"composer.json", "packages of PHP are not served here"},
		{"pom.xml", "artifacts of Maven are not served here"},
		{"build.gradle", "artifacts of Maven are not served here"},
		{"build.gradle.kts", "artifacts of Maven are not served here"},
		{"environment.yml", "packages of conda are not served here"},
		{"environment.yaml", "packages of conda are not served here"},
	} {
		if data, err := files.Read(one.name); err != nil || data != nil {
			all = append(all, manifest.LeftOut{File: one.name, Why: one.why})
		}
	}
	for _, name := range []string{"tox.ini", "tox.toml"} { // many have settings of other tools alone
		if data, err := files.Read(name); err != nil || bytes.Contains(data, []byte("deps")) {
			all = append(all, manifest.LeftOut{File: name, Why: "deps are not read here: name what its environments install in the install"})
		}
	}
	return all
}

// packageName is a name as the registry has it, without extras.
func packageName(ecosystem pkgref.Ecosystem, name string) (string, bool) {
	if ecosystem.Traits().Extras {
		name, _, _ = strings.Cut(name, "[")
	}
	canonical, err := pkgref.CanonicalName(ecosystem, strings.TrimSpace(name))
	return canonical, err == nil
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
