package discover_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// pretend puts a program into a folder, for settings that the real client of
// this machine may not have.
func pretend(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// npmSaying is an environment whose npm shows the settings given as JSON.
func npmSaying(t *testing.T, settings string, extra ...string) []string {
	t.Helper()
	dir := pretend(t, "npm", "cat <<'END'\n"+settings+"\nEND\n")
	return append([]string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + t.TempDir()}, extra...)
}

func TestNpmSettings(t *testing.T) {
	t.Parallel()
	rc := put(t, filepath.Join(t.TempDir(), "npmrc"), `; a company's
registry = "https://npm.example/acme/npm/"
//npm.example/acme/:_authToken=${THE_TOKEN}
//npm.example/:_auth=dTpw
//other.example/:username=me
//other.example/:_password=c2VjcmV0
`)
	scoped := put(t, filepath.Join(t.TempDir(), "npmrc"), "@acme:registry=https://acme.example/\n")
	settings := func(registry, rc, more string) string {
		return `{"registry": "` + registry + `", "userconfig": "` + rc + `", "globalconfig": "/nonexistent", "proxy": null, "https-proxy": false` + more + `}`
	}
	for name, c := range map[string]struct {
		env  []string
		want upstream.Config
	}{
		"nothing set": {
			npmSaying(t, settings("https://npm.example/", "/nonexistent", "")),
			upstream.Config{Index: "https://npm.example/", Source: "npm's default"},
		},
		"a token of the longest path": {
			npmSaying(t, settings("https://npm.example/acme/npm/", rc, ""), "THE_TOKEN=hunter2"),
			upstream.Config{Index: "https://npm.example/acme/npm/", Token: "hunter2", Source: "npm's configuration"},
		},
		"name and password together": {
			npmSaying(t, settings("https://npm.example", rc, "")),
			upstream.Config{Index: "https://npm.example/", Username: "u", Password: "p", Source: "npm's configuration"},
		},
		"name and password apart": {
			npmSaying(t, settings("https://other.example/x", rc, "")),
			upstream.Config{Index: "https://other.example/x/", Username: "me", Password: "secret", Source: "npm's configuration"},
		},
		"a proxy": {
			npmSaying(t, settings("https://npm.example/", "/nonexistent", `, "https-proxy": "http://proxy.example:3128", "noproxy": ["corp.example"]`)),
			upstream.Config{Index: "https://npm.example/", Proxy: "http://proxy.example:3128", Source: "npm's default"},
		},
		"no proxy for this host": {
			npmSaying(t, settings("https://npm.example/", "/nonexistent", `, "https-proxy": "http://proxy.example:3128", "noproxy": ["npm.example"]`)),
			upstream.Config{Index: "https://npm.example/", Source: "npm's default"},
		},
		"a variable in any case": {
			npmSaying(t, settings("https://mirror.example/", "/nonexistent", ""), "NPM_CONFIG_REGISTRY=https://mirror.example/"),
			upstream.Config{Index: "https://mirror.example/", Source: "npm's configuration"},
		},
		"scopes": {
			npmSaying(t, settings("https://npm.example/", scoped, "")),
			upstream.Config{Index: "https://npm.example/", Source: "npm's default, without its registries for scopes (name them under upstreams and namespaces)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := all.Clients().Host(t.Context(), pkgref.Node, c.env)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Ecosystem = pkgref.Node
			if got.Index != c.want.Index || got.Username != c.want.Username || got.Password != c.want.Password ||
				got.Token != c.want.Token || got.Proxy != c.want.Proxy || got.Source != c.want.Source {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			if shown := discover.Redacted(got); strings.Contains(shown.Token+shown.Password, "hunter2") {
				t.Errorf("%+v", shown)
			}
		})
	}
}

func TestNpmThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"fails":          {"PATH=" + pretend(t, "npm", "exit 1")},
		"says nothing":   npmSaying(t, ""),
		"has a file URL": npmSaying(t, `{"registry": "file:///srv"}`),
	} {
		_, err := npmOnly(t, env)
		if !errors.Is(err, fault.ErrUnavailable) && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// npmOnly asks npm with a PATH whose first npm decides; the machine's own npm
// may answer after one that fails.
func npmOnly(t *testing.T, env []string) (upstream.Config, error) {
	t.Helper()
	c, err := all.Clients().Host(t.Context(), pkgref.Node, env)
	if err == nil && all.Clients().IsDefault(c) {
		return c, fault.New(fault.ErrUnavailable, "the next npm answered")
	}
	return c, err
}

// goSaying is an environment whose go shows the variables given as JSON.
func goSaying(t *testing.T, settings string, extra ...string) []string {
	t.Helper()
	dir := pretend(t, "go", "cat <<'END'\n"+settings+"\nEND\n")
	return append([]string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + t.TempDir()}, extra...)
}

func TestGoSettings(t *testing.T) {
	t.Parallel()
	netrc := put(t, filepath.Join(t.TempDir(), "netrc"), "machine go.example login ci password hunter2\n")
	file := put(t, filepath.Join(t.TempDir(), "env"), "GOPROXY=https://go.example\n")
	for name, c := range map[string]struct {
		env  []string
		want upstream.Config
	}{
		"the first proxy of a list": {
			goSaying(t, `{"GOPROXY": "https://go.example,direct", "GOSUMDB": "sum.example"}`, "NETRC="+netrc),
			upstream.Config{Index: "https://go.example/", Log: "sum.example", Username: "ci", Password: "hunter2", Source: "go's default"},
		},
		"the first that is a proxy": {
			goSaying(t, `{"GOPROXY": "direct|https://u:p@go.example/x", "GOSUMDB": "sum.example+1234+key https://sum.example/at"}`, "GOPROXY=set"),
			upstream.Config{
				Index: "https://go.example/x/", Username: "u", Password: "p", Source: "go's configuration",
				Log: "sum.example+1234+key", LogURL: "https://sum.example/at",
			},
		},
		"no checksum database": {
			goSaying(t, `{"GOPROXY": "https://go.example", "GOSUMDB": "off", "GOENV": "`+file+`"}`),
			upstream.Config{Index: "https://go.example/", Source: "go's configuration, without a checksum database (GOSUMDB=off)"},
		},
		"private modules": {
			goSaying(t, `{"GOPROXY": "https://go.example", "GOSUMDB": "sum.example", "GOPRIVATE": "corp.example"}`),
			upstream.Config{Index: "https://go.example/", Log: "sum.example", Source: "go's default, without its private modules (name their proxy under upstreams and namespaces)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := all.Clients().Host(t.Context(), pkgref.Go, c.env)
			if err != nil {
				t.Fatal(err)
			}
			if got.Index != c.want.Index || got.Username != c.want.Username || got.Password != c.want.Password ||
				got.Log != c.want.Log || got.LogURL != c.want.LogURL || got.Source != c.want.Source {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
	for _, list := range []string{"direct", "off", "", "direct,off,https://u:hunter2@go.example"} {
		_, err := all.Clients().Host(t.Context(), pkgref.Go, goSaying(t, `{"GOPROXY": "`+list+`"}`))
		if !errors.Is(err, fault.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "GOPROXY") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// TestRealGo asks the go command that runs this test.
func TestRealGo(t *testing.T) {
	t.Parallel()
	env := append(clean(t), "GOPROXY=https://go.example|direct", "GOSUMDB=off")
	got, err := all.Clients().Host(t.Context(), pkgref.Go, env)
	if err != nil || got.Index != "https://go.example/" || !strings.HasPrefix(got.Source, "go's configuration") {
		t.Errorf("%+v %v", got, err)
	}
}

func TestReadFromSources(t *testing.T) {
	t.Parallel()
	const definitions = `const x = {
  'registry-x': new Definition('registry-x', { default: 'https://no.example/' }),
  registry: new Definition('registry', {
    default: 'https://npm.example/',
    type: url,
`
	c, err := all.Clients().FromSource(pkgref.Node, []byte(definitions), nil)
	if err != nil || c.Index != "https://npm.example/" || c.Ecosystem != pkgref.Node {
		t.Errorf("%+v %v", c, err)
	}
	c, err = all.Clients().FromSource(pkgref.Go, []byte("# defaults\nGOPROXY=https://go.example,direct\nGOSUMDB=sum.example\n"), nil)
	if err != nil || c.Index != "https://go.example/" || c.Log != "sum.example" {
		t.Errorf("%+v %v", c, err)
	}
	for _, text := range []string{"", "GOPROXY=direct\n", "GOPROXY=http://go.example\n"} {
		if _, err := all.Clients().FromSource(pkgref.Go, []byte(text), nil); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := all.Clients().FromSource(pkgref.Node, []byte(text), nil); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTemplatesOfOtherEcosystems(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"npm": "https://npm.example\n", "go": `{"GOPROXY": "https://go.example,direct", "GOSUMDB": "sum.example"}`}
	run := func(_ context.Context, argv []string) ([]byte, error) { return []byte(answers[argv[0]]), nil }
	for ecosystem, want := range map[pkgref.Ecosystem]string{pkgref.Node: "https://npm.example/", pkgref.Go: "https://go.example/"} {
		c, err := all.Clients().FromTemplate(t.Context(), ecosystem, nil, run)
		if err != nil || c.Index != want || c.Ecosystem != ecosystem || !all.Clients().IsDefault(c) {
			t.Errorf("%+v %v", c, err)
		}
	}
	if _, err := all.Clients().FromTemplate(t.Context(), pkgref.Rust, nil, run); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}

// TestOneIsMissing: what one client can't say keeps nobody else from working.
func TestOneIsMissing(t *testing.T) {
	t.Parallel()
	env := append(npmSaying(t, `{"registry": "https://npm.example/"}`), "GOPROXY=off", "PIP_INDEX_URL=https:///nowhere", "PIP_CONFIG_FILE="+os.DevNull)
	dir := filepath.Join(t.TempDir(), "upstreams")
	f := all.Clients().Current(t.Context(), dir, env)
	if len(f.Upstreams) != 1 || !f.Has(pkgref.Node) || f.Has(pkgref.Go) || len(f.Missing) != 2 {
		t.Errorf("%+v", f)
	}
	for _, m := range f.Missing {
		if m.Why == nil {
			t.Errorf("%s has no reason", m.Ecosystem)
		}
	}
	if f := all.Clients().Current(t.Context(), dir, env, pkgref.Node); len(f.Upstreams) != 1 || len(f.Missing) != 0 {
		t.Errorf("%+v", f)
	}
}
