package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// The registries of the bypasses, and the checksum database.
const (
	bypassPython   = "python.example"
	bypassNode     = "node.example"
	bypassGo       = "go.example"
	bypassDatabase = "sum.example"
)

// bypassPackage is what one bypass is after.
type bypassPackage struct {
	name, version string
	path          string // of the artifact, at its registry
	digest        string // sha256
	integrity     string // npm's
	sum           string // Go's
	marker        string // in its files, and in the artifact as it is sent
	evil          string // a host that only its bypass leads to
}

// bypassRegistry is a registry on the host's loopback with a package for each bypass.
type bypassRegistry struct {
	t        *testing.T
	liar     *liar.Server
	database *golangtest.Database
	packages map[string][]bypassPackage // by family
}

func newBypassRegistry(t *testing.T) *bypassRegistry {
	t.Helper()
	r := &bypassRegistry{t: t, liar: liar.New(t, bypassPython, bypassNode, bypassGo), packages: map[string][]bypassPackage{}}
	r.database = golangtest.NewDatabase(t, bypassDatabase)
	r.python("wanted", "wanted")
	helper := r.npmRelease("helper", "helper", nil)
	r.node(helper)
	r.node(r.npmRelease("wanted", "wanted", map[string]any{"dependencies": map[string]string{"helper": "1.0.0"}}))
	r.golang("wanted.example/lib", "wanted")
	for _, f := range bypassFamilies() {
		for i := range f.bypasses {
			marker := "marker" + randomHex(t)
			p := r.publish(f.name, i, marker)
			p.marker, p.evil = marker, fmt.Sprintf("elsewhere%02d.example", i)
			r.packages[f.name] = append(r.packages[f.name], p)
		}
	}
	for path, a := range r.database.Answers() {
		r.liar.Script(bypassGo+"/sumdb/"+bypassDatabase+"/"+path, liar.Body(a.ContentType, a.Body))
	}
	return r
}

func randomHex(t *testing.T) string {
	t.Helper()
	b := make([]byte, 12)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

// publish puts the package of a bypass on its registry.
func (r *bypassRegistry) publish(family string, i int, marker string) bypassPackage {
	r.t.Helper()
	switch family {
	case "python":
		return r.python(fmt.Sprintf("quarry%02d", i), marker)
	case "node":
		name := fmt.Sprintf("quarry%02d", i)
		return r.node(r.npmRelease(name, marker, map[string]any{"bin": map[string]string{name: "cli.js"}}))
	default:
		return r.golang(fmt.Sprintf("elsewhere%02d.example/Quarry", i), marker)
	}
}

func (r *bypassRegistry) python(name, marker string) bypassPackage {
	r.t.Helper()
	d := pypitest.WheelOf(r.t, name, "1.0", [2]string{name + "_" + marker + ".py", "# " + marker + "\n"})
	d.URL = r.liar.URL(bypassPython, "/p/"+d.File)
	r.liar.Script(bypassPython+"/p/"+d.File, liar.Body("application/zip", d.Bytes))
	r.liar.Script(bypassPython+"/p/"+d.File+".metadata", liar.Body("text/plain", d.Metadata))
	r.liar.Script(bypassPython+"/simple/"+name+"/", liar.Body(pypitest.TypeJSON, pypitest.Page(r.t, name, d)))
	return bypassPackage{name: name, version: d.Version, path: "/p/" + d.File, digest: d.Digest()}
}

// npmRelease is a tarball that is not compressed, so that any part of it shows
// the marker.
func (r *bypassRegistry) npmRelease(name, marker string, members map[string]any) npmtest.Release {
	r.t.Helper()
	release := npmtest.Pack(r.t, name, "1.0.0", members, [2]string{marker + ".js", "// " + marker + "\n"}, [2]string{"cli.js", "#!/usr/bin/env node\nconsole.log('" + marker + "')\n"})
	z, err := gzip.NewReader(bytes.NewReader(release.Bytes))
	if err != nil {
		r.t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		r.t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		r.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	release.Bytes = b.Bytes()
	return release
}

func (r *bypassRegistry) node(p npmtest.Release) bypassPackage {
	r.t.Helper()
	p.URL = r.liar.URL(bypassNode, p.Path())
	r.liar.Script(bypassNode+p.Path(), liar.Body("application/octet-stream", p.Bytes))
	r.liar.Script(bypassNode+"/"+p.Name, liar.Body(npmtest.Type, npmtest.Packument(r.t, p.Name, nil, p)))
	return bypassPackage{name: p.Name, version: p.Version, path: p.Path(), digest: sha256Hex(p.Bytes), integrity: p.Integrity()}
}

func (r *bypassRegistry) golang(path, marker string) bypassPackage {
	r.t.Helper()
	m := golangtest.Pack(
		r.t, path, "v1.0.0", [2]string{"go.mod", "module " + path + "\n\ngo 1.21\n"},
		[2]string{"main.go", "package main\n\nfunc main() { println(\"" + marker + "\") }\n"}, [2]string{marker + ".txt", marker},
		[2]string{"lib/lib.go", "package lib\n\nconst Marker = \"" + marker + "\"\n"},
	)
	for path, a := range golangtest.Proxy(r.t, m) {
		r.liar.Script(bypassGo+"/"+path, liar.Body(a.ContentType, a.Body))
	}
	r.database.Add(m)
	return bypassPackage{name: path, version: m.Version, path: "/" + m.Escaped(r.t, "zip"), digest: sha256Hex(m.Zip), sum: m.ZipSum}
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// config is that of an installation whose upstreams these registries are.
func (r *bypassRegistry) config(t *testing.T) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, r.liar.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("probe_projects: [wanted]\nupstreams:\n")
	for _, u := range [][3]string{{"python", bypassPython, "/simple/"}, {"node", bypassNode, "/"}, {"go", bypassGo, "/"}} {
		address := strings.Replace(r.liar.Host(u[1]), u[1], "127.0.0.1", 1)
		fmt.Fprintf(&b, "  - { ecosystem: %s, index: %q, address: %q, ca_file: %s", u[0], r.liar.URL(u[1], u[2]), address, ca)
		if u[0] == "go" {
			fmt.Fprintf(&b, ", log: %q", r.database.Verifier)
		}
		b.WriteString(" }\n")
	}
	return b.String()
}

// common are the variables of a family's scripts. Nothing is tried twice.
func (r *bypassRegistry) common(family string) map[string]string {
	return map[string]string{
		"HOST":        map[string]string{"python": bypassPython, "node": bypassNode, "go": bypassGo}[family],
		"PIP_RETRIES": "0", "PIP_NO_COMPILE": "1", "UV_HTTP_RETRIES": "0", "npm_config_fetch_retries": "0",
	}
}

// env are the variables of one bypass's script.
func (r *bypassRegistry) env(family string, p bypassPackage) map[string]string {
	env := r.common(family)
	maps.Copy(env, map[string]string{
		"PKG": p.name, "VERSION": p.version, "FILE": p.path, "SHA256": p.digest, "INTEGRITY": p.integrity, "SUM": p.sum, "EVIL": p.evil,
		"URL": "https://" + env["HOST"] + p.path,
	})
	return env
}
