// Package gomodules finds Go's modules in module caches.
package gomodules

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Layout implements inventory.Layout.
type Layout struct{}

var _ inventory.Layout = Layout{}

// Usual implements inventory.Layout.
func (Layout) Usual() []string { return nil }

// Tells implements inventory.Layout.
func (Layout) Tells(entry fs.DirEntry) bool {
	name := entry.Name()
	return (strings.HasSuffix(name, ".ziphash") || strings.HasSuffix(name, ".zip")) && entry.Type().IsRegular()
}

// Holds implements inventory.Layout.
func (Layout) Holds(string) bool { return false }

// Skips implements inventory.Layout.
func (Layout) Skips(string) bool { return false }

// Sources implements inventory.Layout.
func (Layout) Sources(*inventory.Walk, string, []string) {}

// File implements inventory.Layout.
func (Layout) File(*inventory.Walk, string, string) {}

// Directory implements inventory.Layout.
func (Layout) Directory(w *inventory.Walk, d inventory.Directory) bool {
	switch {
	case d.Base == "@v":
		versions(w, d.Path)
	case isUnpacked(d.Path):
		addUnpacked(w, d.Path)
	default:
		return false
	}
	return true
}

// A Go module cache has, at pkg/mod below a GOPATH or at GOMODCACHE:
//
//	cache/download/PATH/@v/VERSION.ziphash   what was downloaded and checked
//	PATH@VERSION/                            what was unpacked
//
// with an exclamation mark before each letter that is upper case.

// versions takes the releases of a module from its directory of downloads.
// Metadata alone (.mod, .info) is no release on the disk.
func versions(w *inventory.Walk, dir string) {
	cache, escaped, found := strings.Cut(filepath.Dir(dir), "/cache/download/")
	if !found {
		return
	}
	_, files := w.Entries(dir)
	for _, file := range files {
		version, isHash := strings.CutSuffix(file, ".ziphash")
		if !isHash {
			if version, isHash = strings.CutSuffix(file, ".zip"); !isHash {
				continue
			}
		}
		addModule(w, cache, escaped, version, filepath.Join(dir, file))
	}
}

// isUnpacked tells whether a directory is an unpacked module of a cache.
func isUnpacked(dir string) bool {
	return strings.Contains(filepath.Base(dir), "@v") && strings.Contains(dir, "/pkg/mod/")
}

// addUnpacked takes an unpacked module.
func addUnpacked(w *inventory.Walk, dir string) {
	at := strings.LastIndex(dir, "/pkg/mod/") + len("/pkg/mod")
	cache, module := dir[:at], dir[at+1:]
	at = strings.LastIndex(module, "@v")
	addModule(w, cache, module[:at], module[at+1:], dir)
}

// addModule takes a release of a module once for each cache, which has it packed and
// unpacked.
func addModule(w *inventory.Walk, cache, module, version, path string) {
	if !w.Once(cache + "\x00" + module + "\x00" + version) {
		return
	}
	w.Add(channel.InstalledPackage{
		Ecosystem: string(pkgref.Go), Name: unescape(module), Version: unescape(version), Path: path,
	})
}

// unescape undoes the module cache's escape of upper case.
func unescape(s string) string {
	if !strings.Contains(s, "!") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '!' && i+1 < len(s) && 'a' <= s[i+1] && s[i+1] <= 'z' {
			i++
			b.WriteByte(s[i] - 'a' + 'A')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
