package guest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// nodeModules takes the packages of a node_modules directory and of those
// nested in it. In a store of pnpm's each release lies in a node_modules of its
// own, beside links to what it requires.
func (t *stocktaker) nodeModules(dir string, depth int) {
	if depth > stockDepth {
		t.truncated = true
		return
	}
	children, _ := t.visit(dir)
	for _, child := range children {
		path := filepath.Join(dir, child)
		switch {
		case strings.HasPrefix(child, "@"):
			scoped, _ := t.visit(path)
			for _, inner := range scoped {
				t.nodePackage(filepath.Join(path, inner), child+"/"+inner, depth+1)
			}
		case child == ".pnpm":
			releases, _ := t.visit(path)
			for _, release := range releases {
				t.nodeModules(filepath.Join(path, release, "node_modules"), depth+2)
			}
		case strings.HasPrefix(child, "."): // .bin and what tools keep for themselves
		default:
			t.nodePackage(path, child, depth+1)
		}
	}
}

// nodePackage takes one package by its package.json; one that can't be read is
// taken by its directory's name.
func (t *stocktaker) nodePackage(dir, name string, depth int) {
	found := channel.InstalledPackage{Ecosystem: string(pkgref.Node), Name: name, Path: dir}
	if own, err := t.manifest(dir); err == nil {
		if own.name != "" {
			found.Name = own.name
		}
		found.Version = own.version
	}
	t.add(found)
	if dirs, _ := t.entries(dir); slices.Contains(dirs, "node_modules") {
		t.nodeModules(filepath.Join(dir, "node_modules"), depth+1)
	}
}

// named is a package as its own file names it.
type named struct{ name, version string }

// manifest reads the package.json in a directory.
func (t *stocktaker) manifest(dir string) (named, error) {
	return recall(t.memory, t.root+dir+"/package.json", headManifest, func(head []byte) (n named) {
		n.name, n.version = parseManifest(head)
		return n
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
