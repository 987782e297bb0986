package guest

import (
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// A Go module cache has, at pkg/mod below a GOPATH or at GOMODCACHE:
//
//	cache/download/PATH/@v/VERSION.ziphash   what was downloaded and checked
//	PATH@VERSION/                            what was unpacked
//
// with an exclamation mark before each letter that is upper case.

// goVersions takes the releases of a module from its directory of downloads.
// Metadata alone (.mod, .info) is no release on the disk.
func (t *stocktaker) goVersions(dir string) {
	cache, escaped, found := strings.Cut(filepath.Dir(dir), "/cache/download/")
	if !found {
		return
	}
	_, files := t.entries(dir)
	for _, file := range files {
		version, isHash := strings.CutSuffix(file, ".ziphash")
		if !isHash {
			if version, isHash = strings.CutSuffix(file, ".zip"); !isHash {
				continue
			}
		}
		t.addGo(cache, escaped, version, filepath.Join(dir, file))
	}
}

// isGoModule tells whether a directory is an unpacked module of a cache.
func isGoModule(dir string) bool {
	return strings.Contains(filepath.Base(dir), "@v") && strings.Contains(dir, "/pkg/mod/")
}

// addGoModule takes an unpacked module.
func (t *stocktaker) addGoModule(dir string) {
	at := strings.LastIndex(dir, "/pkg/mod/") + len("/pkg/mod")
	cache, module := dir[:at], dir[at+1:]
	at = strings.LastIndex(module, "@v")
	t.addGo(cache, module[:at], module[at+1:], dir)
}

// addGo takes a release of a module once for each cache, which has it packed and
// unpacked.
func (t *stocktaker) addGo(cache, module, version, path string) {
	key := cache + "\x00" + module + "\x00" + version
	if t.listed[key] {
		return
	}
	t.listed[key] = true
	t.add(channel.InstalledPackage{
		Ecosystem: string(pkgref.Go), Name: unescapeGo(module), Version: unescapeGo(version), Path: path,
	})
}

// unescapeGo undoes the module cache's escape of upper case.
func unescapeGo(s string) string {
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
