// Package npmtest is a test fixture: npm packages that install, and the
// packuments that list them.
package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // npm's old digest, which registries still give
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
)

// Type is the content type of Packument.
const Type = "application/json"

// Release is one tarball.
type Release struct {
	Name     string
	Version  string
	File     string // file name
	Bytes    []byte
	Manifest map[string]any // what the registry says; without dist
	Time     time.Time      // of publication; zero: the registry gives none
	URL      string         // set by whoever publishes it
}

// Integrity is the digest as manifests write it.
func (r Release) Integrity() string {
	sum := sha512.Sum512(r.Bytes)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Digest is the digest as an index has it.
func (r Release) Digest() string {
	sum := sha512.Sum512(r.Bytes)
	return "sha512:" + hex.EncodeToString(sum[:])
}

// Shasum is the old digest.
func (r Release) Shasum() string {
	sum := sha1.Sum(r.Bytes) //nolint:gosec // npm's old digest, which registries still give
	return hex.EncodeToString(sum[:])
}

// Path is where registries keep the tarball, below the index's base without its
// trailing slash.
func (r Release) Path() string { return "/" + r.Name + "/-/" + r.File }

// Pack makes a release with a package.json of the members and one module that
// exports its version. Files (path below the package, content) come on top.
func Pack(tb testing.TB, name, version string, members map[string]any, files ...[2]string) Release {
	tb.Helper()
	manifest := map[string]any{"name": name, "version": version, "main": "index.js", "license": "MIT"}
	maps.Copy(manifest, members)
	document, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	all := [][2]string{
		{"package/package.json", string(document)},
		{"package/index.js", "module.exports = " + string(quoted(tb, version)) + "\n"},
	}
	for _, f := range files {
		all = append(all, [2]string{"package/" + f[0], f[1]})
	}
	bare := name[strings.LastIndexByte(name, '/')+1:]
	return Release{
		Name: name, Version: version, File: bare + "-" + version + ".tgz", Bytes: Tarball(tb, all...),
		Manifest: manifest, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func quoted(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Tarball packs files: path, content. Equal files give equal bytes.
func Tarball(tb testing.TB, files ...[2]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644, ModTime: time.Unix(499162500, 0), Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if _, err := t.Write([]byte(f[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := t.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Packument is the page of a project. Tags are dist-tags; nil: `latest` is the
// last release.
func Packument(tb testing.TB, project string, tags map[string]string, releases ...Release) []byte {
	tb.Helper()
	times := map[string]any{"created": formatTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)), "modified": formatTime(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))}
	if tags == nil && len(releases) > 0 {
		tags = map[string]string{"latest": releases[len(releases)-1].Version}
	}
	// Written by hand, so that the versions stay in order.
	var versions bytes.Buffer
	for i, r := range releases {
		manifest := maps.Clone(r.Manifest)
		manifest["_id"] = r.Name + "@" + r.Version
		manifest["dist"] = map[string]any{"tarball": r.URL, "integrity": r.Integrity(), "shasum": r.Shasum(), "fileCount": 2}
		document, err := json.Marshal(manifest)
		if err != nil {
			tb.Fatal(err)
		}
		if i > 0 {
			versions.WriteByte(',')
		}
		versions.Write(quoted(tb, r.Version))
		versions.WriteByte(':')
		versions.Write(document)
		if !r.Time.IsZero() {
			times[r.Version] = formatTime(r.Time)
		}
	}
	page, err := json.Marshal(map[string]any{
		"_id": project, "_rev": "1-0", "name": project, "dist-tags": tags, "time": times, "readme": "# " + project,
		"versions": json.RawMessage("{" + versions.String() + "}"), "license": "MIT", "description": "A package of a test.",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return page
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
