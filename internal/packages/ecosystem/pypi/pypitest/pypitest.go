// Package pypitest is a test fixture: wheels that install, and the index pages
// that list them.
package pypitest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TypeJSON is the content type of Page.
const TypeJSON = "application/vnd.pypi.simple.v1+json"

// Dist is one distribution file.
type Dist struct {
	Name     string // of the project, canonical
	Version  string
	File     string // file name
	Bytes    []byte
	Metadata []byte // nil for what offers no sidecar
	Uploaded time.Time
	URL      string // set by whoever publishes it
}

// Digest is the sha256 in hex.
func (d Dist) Digest() string {
	sum := sha256.Sum256(d.Bytes)
	return hex.EncodeToString(sum[:])
}

// Wheel makes a wheel with one module, whose requirements are Requires-Dist
// lines.
func Wheel(tb testing.TB, name, version string, requires ...string) Dist {
	tb.Helper()
	return makeWheel(tb, name, version, requires, nil)
}

// WheelOf makes a wheel with files (path, content) besides its module.
func WheelOf(tb testing.TB, name, version string, files ...[2]string) Dist {
	tb.Helper()
	return makeWheel(tb, name, version, nil, files)
}

func makeWheel(tb testing.TB, name, version string, requires []string, more [][2]string) Dist {
	tb.Helper()
	module := strings.ReplaceAll(name, "-", "_")
	info := module + "-" + version + ".dist-info/"
	var header strings.Builder
	header.WriteString("Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n")
	for _, r := range requires {
		header.WriteString("Requires-Dist: " + r + "\n")
	}
	metadata := header.String()
	files := [][2]string{
		{module + ".py", fmt.Sprintf("__version__ = %q\n", version)},
		{info + "METADATA", metadata},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: pypitest\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	files = append(files, more...)
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256([]byte(f[1]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	files = append(files, [2]string{info + "RECORD", record.String() + info + "RECORD,,\n"})
	return Dist{
		Name: name, Version: version, File: module + "-" + version + "-py3-none-any.whl",
		Bytes: Zip(tb, files...), Metadata: []byte(metadata), Uploaded: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
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

// Page is the JSON page of a project.
func Page(tb testing.TB, project string, dists ...Dist) []byte {
	tb.Helper()
	type file struct {
		Filename string            `json:"filename"`
		URL      string            `json:"url"`
		Hashes   map[string]string `json:"hashes"`
		Size     int               `json:"size"`
		Uploaded time.Time         `json:"upload-time"`
		Core     any               `json:"core-metadata,omitempty"`
	}
	page := map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": project, "versions": []string{}}
	files := []file{}
	for _, d := range dists {
		f := file{Filename: d.File, URL: d.URL, Hashes: map[string]string{"sha256": d.Digest()}, Size: len(d.Bytes), Uploaded: d.Uploaded}
		if d.Metadata != nil {
			sum := sha256.Sum256(d.Metadata)
			f.Core = map[string]string{"sha256": hex.EncodeToString(sum[:])}
		}
		files = append(files, f)
	}
	page["files"] = files
	b, err := json.Marshal(page)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
