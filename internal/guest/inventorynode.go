package guest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
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
	if head, err := readHead(t.root + dir + "/package.json"); err == nil {
		own, version := parseManifest(head)
		if own != "" {
			found.Name = own
		}
		found.Version = version
	}
	t.add(found)
	if t.entries(dir, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == "node_modules" }) != nil {
		t.nodeModules(filepath.Join(dir, "node_modules"), depth+1)
	}
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
