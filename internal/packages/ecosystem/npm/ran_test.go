package npm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
)

// ranFile is what is offered in the place of foo 1.0.0, which runs something.
func ranFile(tb testing.TB) ecosystem.File {
	tb.Helper()
	f := fooFile()
	f.Kind, f.Scripts, f.Digest, f.URL = policy.KindPackage, true, "sha512:s", "https://files.example"+f.Path
	ran, ok := npm.New().Built(f)
	if !ok {
		tb.Fatal("nothing is made of it")
	}
	return ran
}

// TestRan: what is made of a package that runs scripts has a name that no release can have,
// beside it, and its digest; of any other nothing is made.
func TestRan(t *testing.T) {
	t.Parallel()
	got := ranFile(t)
	const path = "/foo/-/foo-1.0.0.0cofferdam.tgz"
	if got.Path != path || got.URL != "https://files.example"+path || got.Name != "foo-1.0.0.0cofferdam.tgz" || got.Kind != policy.KindRan || got.Scripts || got.Digest != "sha512:s" || got.Version != "1.0.0" {
		t.Errorf("it is %+v", got)
	}
	place := ecosystem.Place{Files: true}
	for _, path := range []string{path, "/@s/foo/-/foo-1.0.0-rc.1.0cofferdam.tgz"} {
		route, err := npm.New().Route(place, ecosystem.Request{Path: path})
		if err != nil || route.Kind != ecosystem.RouteFile || route.Path != path || strings.Contains(route.Version, "cofferdam") {
			t.Errorf("asked for it is %+v, %v", route, err)
		}
	}
	if _, err := npm.New().Route(place, ecosystem.Request{Path: "/foo/-/foo-1.0.0.0cofferdam.0cofferdam.tgz"}); err == nil {
		t.Error("it is made of what is made")
	}
	quiet, made := fooFile(), got
	quiet.Kind = policy.KindPackage
	made.Scripts = true
	for name, f := range map[string]ecosystem.File{"runs nothing": quiet, "is made already": made} {
		if got, ok := npm.New().Built(f); ok {
			t.Errorf("of what %s: %+v", name, got)
		}
	}
	takes := map[string]string{
		"1.0.0-rc.0cofferdam": manifest("1.0.0-rc.0cofferdam", `,"scripts":{"install":"x"}`),
		"1.0.0":               strings.Replace(manifest("1.0.0", ""), "foo-1.0.0.tgz", got.Name, 1),
	}
	for version, text := range takes {
		if ix, _ := parsed(t, `{"name":"foo","versions":{`+text+`}}`); len(ix.Files) != 0 || len(ix.LeftOut) != 1 {
			t.Errorf("a publisher takes such a name for %s: %+v", version, ix.Files)
		}
	}
}

// TestRanOnAPage: clients see a release that runs nothing, without a digest, in both forms and
// by itself. The others are as they were.
func TestRanOnAPage(t *testing.T) {
	t.Parallel()
	ix, rows := parsed(t, `{"name":"foo","dist-tags":{"latest":"1.1.0"},"versions":{`+
		manifest("1.0.0", `,"scripts":{"test":"x","postinstall":"evil","preinstall":"evil"},"dependencies":{"bar":"1"},"bin":"./c.js"`)+","+
		manifest("1.1.0", `,"gypfile":true`)+","+manifest("1.2.0", `,"scripts":{"test":"kept"}`)+`}}`)
	var changed int
	for i, f := range ix.Files {
		if ran, ok := npm.New().Built(f); ok {
			ix.Files[i] = ran
			changed++
		}
	}
	if changed != 2 {
		t.Fatalf("%d of the releases run something", changed)
	}
	for _, form := range []ecosystem.Form{"full", "abbreviated"} {
		var page packument
		body := rendered(t, ix, rows, form, "")
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
		for version, text := range page.Versions {
			var m struct {
				Name, Version    string
				HasInstallScript bool
				Gypfile          any
				Scripts          map[string]string
				Dependencies     map[string]string
				Dist             map[string]any
			}
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			ran := version != "1.2.0"
			link, _ := m.Dist["tarball"].(string)
			switch {
			case m.Name != "foo" || m.Version != version || m.HasInstallScript || m.Gypfile != nil || strings.Contains(string(text), "evil"):
				t.Errorf("%s %s: %s", form, version, text)
			case strings.HasSuffix(link, ".0cofferdam.tgz") != ran || (len(m.Dist) == 1) != ran:
				t.Errorf("%s %s: dist is %v", form, version, m.Dist)
			case version == "1.0.0" && (m.Dependencies["bar"] != "1" || form == "full" && m.Scripts["test"] != "x"):
				t.Errorf("%s %s: %s", form, version, text)
			}
		}
		if one := rendered(t, ix, rows, form, "1.0.0"); !strings.Contains(one, ".0cofferdam.tgz") || strings.Contains(one, "evil") {
			t.Errorf("%s, by itself: %s", form, one)
		}
	}
}

// header changes one member of a tarball.
func header(tb testing.TB, change func(*tar.Header)) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{{"package/package.json", string(rowOf(""))}, {"package/made.js", "x"}} {
		h := &tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644, Typeflag: tar.TypeReg}
		if f[0] == "package/made.js" {
			change(h)
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(f[1])); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestInspectRan: what comes out of a sandbox in which scripts ran is that release, runs
// nothing more, brings nothing but files and folders, and claims no more than the registry's
// manifest does.
func TestInspectRan(t *testing.T) {
	t.Parallel()
	ran := ranFile(t)
	look := func(tarball []byte) (ecosystem.Inspection, error) {
		return npm.New().Inspect(ran, rowOf(`,"scripts":{"postinstall":"x"},"dependencies":{"bar":"1"},"bin":{"foo":"c.js"}`), bytes.NewReader(tarball))
	}
	got, err := look(tarballOf(t, `,"scripts":{"test":"y"},"dependencies":{"bar":"1"}`, [2]string{"package/made.js", "x"}, [2]string{"package/build/Release/foo.node", "\x7fELF"}))
	if err != nil || len(got.Scripts) != 0 || got.Name != "foo" || got.Version != "1.0.0" || len(got.Findings) != 1 {
		t.Errorf("it is %+v, %v", got, err) // found: the manifest's command
	}
	if _, err := look(header(t, func(*tar.Header) {})); err != nil {
		t.Fatalf("INCONCLUSIVE: a plain one is refused: %v", err)
	}
	for name, tt := range map[string]struct {
		tarball []byte
		says    string
	}{
		"a script":          {tarballOf(t, `,"scripts":{"postinstall":"x"}`), "still runs"},
		"an implied script": {tarballOf(t, "", [2]string{"package/binding.gyp", "{}"}), "still runs"},
		"a bundled script":  {tarballOf(t, "", [2]string{"package/node_modules/b/package.json", `{"name":"b","version":"1.0.0","scripts":{"install":"x"}}`}), "still runs"},
		"another release":   {npmtest.Tarball(t, [2]string{"package/package.json", `{"name":"foo","version":"1.0.1"}`}), "version"},
		"another package":   {npmtest.Tarball(t, [2]string{"package/package.json", `{"name":"bar","version":"1.0.0"}`}), "is about"},
		"more to require":   {tarballOf(t, `,"dependencies":{"bar":"1","evil":"1"}`), "requires evil"},
		"another command":   {tarballOf(t, `,"bin":{"sh":"c.js"}`), "command"},
		"no package.json":   {npmtest.Tarball(t, [2]string{"package/x.js", "x"}), "no package.json"},
		"out of its folder": {npmtest.Tarball(t, [2]string{"package/package.json", string(rowOf(""))}, [2]string{"package/../../x", "x"}), "leaves"},
		"absolute":          {npmtest.Tarball(t, [2]string{"/etc/x", "x"}), "absolute"},
		"two folders":       {tarballOf(t, "", [2]string{"other/x.js", "x"}), "two folders"},
		"a file twice":      {tarballOf(t, "", [2]string{"package/x.js", "x"}, [2]string{"package/x.js", "x"}), "twice"},
		"setuid":            {header(t, func(h *tar.Header) { h.Mode = 0o4755 }), "setuid"},
		"a link":            {header(t, func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "package.json", 0 }), "something else"},
		"a link out":        {header(t, func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "../../etc/passwd", 0 }), ""},
		"a hard link":       {header(t, func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "package/package.json", 0 }), ""},
		"a device":          {header(t, func(h *tar.Header) { h.Typeflag, h.Devmajor, h.Devminor, h.Size = tar.TypeChar, 1, 5, 0 }), ""},
		"a pipe":            {header(t, func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeFifo, 0 }), ""},
		"no archive":        {[]byte("#!/bin/sh\n"), ""},
	} {
		if got, err := look(tt.tarball); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	published := ran
	published.Kind = policy.KindPackage
	if _, err := npm.New().Inspect(published, nil, bytes.NewReader(tarballOf(t, ""))); err == nil {
		t.Error("what is published has the name of what is made")
	}
}
