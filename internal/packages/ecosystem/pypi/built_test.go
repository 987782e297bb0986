package pypi_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

// TestBuilt: what is built of a source distribution has a name of its own, beside it, and
// its time, digest and constraint.
func TestBuilt(t *testing.T) {
	t.Parallel()
	source := func(name, version string) ecosystem.File {
		return ecosystem.File{
			Name: name, Version: version, Kind: policy.KindSdist, Digest: "sha256:s", Size: 7, Requires: ">=3.8", Yanked: true,
			URL: "https://files.example/a/b/" + name, Path: "/a/b/" + name,
		}
	}
	got, ok := pypi.New().Built(source("My-Pkg-1.0.post1.tar.gz", "1.0.post1"))
	if want := "My_Pkg-1.0.post1-0cofferdam-py3-none-any.whl"; !ok || got.Name != want || got.URL != "https://files.example/a/b/"+want || got.Path != "/a/b/"+want ||
		got.Kind != policy.KindBuilt || got.Digest != "sha256:s" || got.Size != 0 || got.Requires != ">=3.8" || !got.Yanked || got.Version != "1.0.post1" {
		t.Errorf("it is %+v, %t", got, ok)
	}
	route, err := pypi.New().Route(ecosystem.Place{Files: true}, ecosystem.Request{Path: got.Path})
	if err != nil || route.Kind != ecosystem.RouteFile || route.Project != "my-pkg" || route.Version != "1.0.post1" || route.Path != got.Path {
		t.Errorf("asked for it is %+v, %v", route, err)
	}
	wheel := source("foo-1.0-py3-none-any.whl", "1.0")
	wheel.Kind = policy.KindWheel
	elsewhere := source("foo-1.0.tar.gz", "1.0")
	elsewhere.URL = "https://files.example/a/other"
	for name, f := range map[string]ecosystem.File{
		"a wheel": wheel, "a local version": source("foo-1.0+x.tar.gz", "1.0+x"), "an epoch": source("foo-1!1.0.tar.gz", "1!1.0"), "another URL": elsewhere,
	} {
		if got, ok := pypi.New().Built(f); ok {
			t.Errorf("%s: it is %+v", name, got)
		}
	}
}

func TestEverywhere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"foo-1.0-py3-none-any.whl": true, "foo-1.0-py2.py3-none-any.whl": true, "foo-1.0-1-py3-none-any.whl": true,
		"foo-1.0-py2-none-any.whl": false, "foo-1.0-cp311-cp311-linux_x86_64.whl": false, "foo-1.0-py3-none-linux_x86_64.whl": false, "foo-1.0.tar.gz": false,
	} {
		kind := policy.KindWheel
		if !strings.HasSuffix(name, ".whl") {
			kind = policy.KindSdist
		}
		if got := pypi.New().Everywhere(ecosystem.File{Name: name, Kind: kind}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// moded packs content whose members have modes; the rest have 0644.
func moded(t *testing.T, modes map[string]fs.FileMode, c content) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(c); i += 2 {
		h := &zip.FileHeader{Name: c[i], Method: zip.Deflate}
		mode, ok := modes[c[i]]
		if !ok {
			mode = 0o644
		}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(c[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// TestInspectBuilt: what a build made is what a publisher could upload, and less.
func TestInspectBuilt(t *testing.T) {
	t.Parallel()
	file := ecosystem.File{Name: "foo-1.0-0cofferdam-py3-none-any.whl", Version: "1.0", Kind: policy.KindBuilt}
	good := foo("foo.py", "x = 1\n", "foo-1.0.data/scripts/foo", "#!python\n", "foo.pth", "import os\n").recorded()
	got, err := pypi.New().Inspect(file, nil, moded(t, map[string]fs.FileMode{"foo-1.0.data/scripts/foo": 0o755}, good))
	if err != nil || got.Name != "foo" || got.Version != "1.0" || len(got.Requirements) != 1 {
		t.Fatalf("a good one: %+v, %v", got, err)
	}
	if !strings.Contains(strings.Join(got.Findings, "; "), ".pth") {
		t.Errorf("nothing is said of its .pth file: %q", got.Findings)
	}
	bomb := foo("foo.py", strings.Repeat("\x00", 80<<20)).recorded()
	bar := content{}
	for _, text := range good {
		bar = append(bar, strings.ReplaceAll(strings.ReplaceAll(text, "foo-1.0.dist-info", "bar-1.0.dist-info"), "Name: Foo", "Name: bar"))
	}
	many := foo()
	for i := range 20_001 {
		many = append(many, fmt.Sprintf("m/%d", i), "")
	}
	for name, tt := range map[string]struct {
		modes map[string]fs.FileMode
		c     content
		says  string
	}{
		"setuid":          {map[string]fs.FileMode{"foo-1.0.data/scripts/foo": 0o755 | fs.ModeSetuid}, good, "setuid"},
		"setgid":          {map[string]fs.FileMode{"foo.py": 0o644 | fs.ModeSetgid}, good, "setuid"},
		"a link":          {map[string]fs.FileMode{"foo.py": fs.ModeSymlink | 0o777}, good, "neither a file nor a folder"},
		"a device":        {map[string]fs.FileMode{"foo.py": fs.ModeDevice | 0o644}, good, "neither a file nor a folder"},
		"a FIFO":          {map[string]fs.FileMode{"foo.py": fs.ModeNamedPipe | 0o644}, good, "neither a file nor a folder"},
		"a socket":        {map[string]fs.FileMode{"foo.py": fs.ModeSocket | 0o644}, good, "neither a file nor a folder"},
		"absolute":        {nil, foo("/etc/passwd", "x").recorded(), "absolute"},
		"out of the root": {nil, foo("../../evil.py", "x").recorded(), "leaves the archive"},
		"a bomb":          {nil, bomb, "times its size"},
		"too many":        {nil, many.recorded(), "more than 20000 members"},
		"another project": {nil, bar, "no dist-info folder of the release"},
		"not recorded":    {nil, append(foo().recorded(), "extra.py", "x"), "RECORD does not list"},
		"other bytes":     {nil, append(foo("foo.py", "x = 1\n").recorded()[:4], append(content{"foo.py", "x = 2\n"}, foo("foo.py", "x = 1\n").recorded()[6:]...)...), "RECORD"},
	} {
		got, err := pypi.New().Inspect(file, nil, moded(t, tt.modes, tt.c))
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// The same bits in what a publisher uploads are no news: installers ignore them.
	wheel := ecosystem.File{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel}
	if _, err := pypi.New().Inspect(wheel, nil, moded(t, map[string]fs.FileMode{"foo.py": 0o644 | fs.ModeSetgid}, good)); err != nil {
		t.Errorf("a published one: %v", err)
	}
}
