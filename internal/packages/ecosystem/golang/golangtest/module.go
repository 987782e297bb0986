// Package golangtest is a test fixture: modules that build, the files that a
// module proxy has of them, and a small signed checksum database, whose every
// answer can be had as bytes to publish or to falsify.
package golangtest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
)

// Module is one release of a module.
type Module struct {
	Path    string
	Version string
	Mod     []byte
	Info    []byte
	Zip     []byte
	ZipSum  string // "h1:..."
	ModSum  string
}

// New makes a module with one package, whose requirements are "PATH VERSION".
// Its package imports theirs, so that a build needs them.
func New(tb testing.TB, path, version string, requires ...string) Module {
	tb.Helper()
	var mod, source strings.Builder
	fmt.Fprintf(&mod, "module %s\n\ngo 1.21\n", path)
	fmt.Fprintf(&source, "package p\n\n")
	for _, r := range requires {
		fmt.Fprintf(&mod, "\nrequire %s\n", r)
		name, _, _ := strings.Cut(r, " ")
		fmt.Fprintf(&source, "import _ %q\n", name)
	}
	fmt.Fprintf(&source, "\nconst Version = %q\n", version)
	return Pack(tb, path, version, [2]string{"go.mod", mod.String()}, [2]string{"p.go", source.String()})
}

// Pack makes a module of files: name, content.
func Pack(tb testing.TB, path, version string, files ...[2]string) Module {
	tb.Helper()
	m := Module{Path: path, Version: version, Mod: fmt.Appendf(nil, "module %s\n", path)}
	sums := map[string]string{}
	var below [][2]string
	for _, f := range files {
		if f[0] == "go.mod" {
			m.Mod = []byte(f[1])
		}
		name := path + "@" + version + "/" + f[0]
		sums[name] = f[1]
		below = append(below, [2]string{name, f[1]})
	}
	m.Zip = Zip(tb, below...)
	m.ZipSum, m.ModSum = sumFiles(sums), sumFiles(map[string]string{"go.mod": string(m.Mod)})
	info, err := json.Marshal(map[string]any{
		"Version": version, "Time": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "Origin": map[string]string{"VCS": "git"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	m.Info = info
	return m
}

// sumFiles is the "h1:" digest of files, by name to content.
func sumFiles(files map[string]string) string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Zip packs files: name, content.
func Zip(tb testing.TB, files ...[2]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f[0])
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Escaped is PATH@VERSION or, with a file's ending, PATH/@v/VERSION.ending, as
// proxies spell it.
func (m Module) Escaped(tb testing.TB, ending string) string {
	tb.Helper()
	path, err := module.EscapePath(m.Path)
	if err != nil {
		tb.Fatal(err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		tb.Fatal(err)
	}
	if ending == "" {
		return path + "@" + version
	}
	return path + "/@v/" + version + "." + ending
}

// Answer is one body and its content type.
type Answer struct {
	ContentType string
	Body        []byte
}

// Proxy gives the answers of a module proxy, by path below its base. Modules
// are listed in the order given, pseudo-versions not.
func Proxy(tb testing.TB, modules ...Module) map[string]Answer {
	tb.Helper()
	answers := map[string]Answer{}
	for _, m := range modules {
		answers[m.Escaped(tb, "info")] = Answer{"application/json", m.Info}
		answers[m.Escaped(tb, "mod")] = Answer{"text/plain; charset=utf-8", m.Mod}
		answers[m.Escaped(tb, "zip")] = Answer{"application/zip", m.Zip}
		path, _, _ := strings.Cut(m.Escaped(tb, ""), "@")
		list := answers[path+"/@v/list"]
		if !module.IsPseudoVersion(m.Version) {
			list.Body = append(list.Body, m.Version+"\n"...)
		}
		answers[path+"/@v/list"] = Answer{"text/plain; charset=utf-8", list.Body}
	}
	return answers
}
