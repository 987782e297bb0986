// Package node finds the packages of npm's registry and its kin: in node_modules, and
// projects by their package.json.
package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Layout implements inventory.Layout.
type Layout struct{}

var _ inventory.Layout = Layout{}

// Usual implements inventory.Layout.
func (Layout) Usual() []string {
	return []string{"/usr/local/lib/node_modules", "/usr/lib/node_modules"}
}

// Tells implements inventory.Layout.
func (Layout) Tells(entry fs.DirEntry) bool { return entry.Name() == "package.json" }

// Holds implements inventory.Layout.
func (Layout) Holds(string) bool { return false }

// Skips implements inventory.Layout.
func (Layout) Skips(base string) bool { return base == "_cacache" }

// Sources implements inventory.Layout.
func (Layout) Sources(w *inventory.Walk, dir string, files []string) {
	if !slices.Contains(files, "package.json") {
		return
	}
	if own, err := readManifest(w, dir); err == nil {
		w.AddSource(channel.InstalledPackage{Ecosystem: string(pkgref.Node), Name: own.name, Version: own.version, Path: dir})
	}
}

// File implements inventory.Layout.
func (Layout) File(*inventory.Walk, string, string) {}

// Directory implements inventory.Layout.
func (Layout) Directory(w *inventory.Walk, d inventory.Directory) bool {
	if d.Base != "node_modules" {
		return false
	}
	nodeModules(w, d.Path)
	return true
}

// nodeModules takes the packages of a node_modules directory and of those
// nested in it. In a store of pnpm's each release lies in a node_modules of its
// own, beside links to what it requires.
func nodeModules(w *inventory.Walk, dir string) {
	children, _ := w.Visit(dir)
	for _, child := range children {
		path := filepath.Join(dir, child)
		switch {
		case strings.HasPrefix(child, "@"):
			scoped, _ := w.Visit(path)
			for _, inner := range scoped {
				nodePackage(w, filepath.Join(path, inner), child+"/"+inner)
			}
		case child == ".pnpm":
			releases, _ := w.Visit(path)
			for _, release := range releases {
				nested(w, filepath.Join(path, release))
			}
		case strings.HasPrefix(child, "."): // .bin and what tools keep for themselves
		default:
			nodePackage(w, path, child)
		}
	}
}

// nodePackage takes one package by its package.json; one that can't be read is
// taken by its directory's name. A hollow directory is none: clients make those of a whole
// tree before they ask for its packages, and leave them behind where one is refused.
func nodePackage(w *inventory.Walk, dir, name string) {
	found := channel.InstalledPackage{Ecosystem: string(pkgref.Node), Name: name, Path: dir}
	own, err := readManifest(w, dir)
	switch {
	case err == nil:
		found.Name, found.Version = cmp.Or(own.name, name), own.version
	case w.Hollow(dir):
		return
	}
	w.Add(found)
	nested(w, dir)
}

// nested takes the packages of the node_modules in a directory. A link of that name is none: it
// may lead back to where it lies.
func nested(w *inventory.Walk, dir string) {
	if dirs, _ := w.Entries(dir); slices.Contains(dirs, "node_modules") {
		nodeModules(w, filepath.Join(dir, "node_modules"))
	}
}

// manifest is a package as its package.json names it.
type manifest struct{ name, version string }

// readManifest reads the package.json in a directory.
func readManifest(w *inventory.Walk, dir string) (manifest, error) {
	return inventory.Recall(w, dir+"/package.json", "manifest", func(head []byte) (m manifest) {
		m.name, m.version = parseManifest(head)
		return m
	})
}

// parseManifest takes name and version from the top level of a package.json,
// of which only the beginning may be there.
func parseManifest(head []byte) (name, version string) {
	dec := json.NewDecoder(bytes.NewReader(head))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return "", ""
	}
	for dec.More() && (name == "" || version == "") {
		key, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		var text string
		if key != "name" && key != "version" || json.Unmarshal(value, &text) != nil {
			continue
		}
		if key == "name" {
			name = text
		} else {
			version = text
		}
	}
	return name, version
}
