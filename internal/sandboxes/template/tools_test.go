package template

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// member is a file of an archive that a test makes.
type member struct {
	name, text string
	executable bool
}

func wheelOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if m.executable {
			h.SetMode(0o755)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarballOf(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range members {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: int64(len(m.text)), Mode: 0o644})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// shelf is a Fetcher whose registry is a folder of memory.
type shelf struct {
	files   map[string][]byte
	err     error
	fetched []string
}

func (s *shelf) Fetch(_ context.Context, _ string, wanted []Artifact, dir string, report func(Progress)) ([]Origin, error) {
	if s.err != nil {
		return nil, s.err
	}
	var origins []Origin
	for i, a := range wanted {
		report(Progress{Step: "tools", Detail: a.Name})
		s.fetched = append(s.fetched, a.File)
		if err := os.WriteFile(filepath.Join(dir, a.File), s.files[a.File], 0o600); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(s.files[a.File])
		origins = append(origins, Origin{URL: "https://files.example/" + a.File, SHA256: hex.EncodeToString(sum[:]), Run: "run", Record: uint64(i + 7)})
	}
	return origins, nil
}

// tooled is a workshop with two tools, one in a wheel and one in a tarball.
func tooled(t *testing.T) (*Store, string, *shelf) {
	t.Helper()
	s, tools := workshop(t)
	wheel := wheelOf(t, member{"w/bin/prog", "program", true}, member{"w/data", "data", false}, member{"w/left/out", "", false})
	tarball := tarballOf(t, member{"package/cli.js", "script", false})
	sum, long := sha256.Sum256(wheel), sha512.Sum512(tarball)
	pins := []pin{
		{
			Artifact: Artifact{pkgref.Python, "w", "1.0", "w-1.0.whl", "sha256-" + hex.EncodeToString(sum[:])}, tool: "prog",
			place: func(name string) (string, bool) {
				rest, ok := strings.CutPrefix(name, "w/")
				return localLib + "w/" + rest, ok && !strings.HasPrefix(rest, "left/")
			},
			programs: []string{localLib + "w/bin/prog"}, links: map[string]string{"prog": localLib + "w/bin/prog"},
		},
		nodePackage("n", "2.0.0", "n2", base64.StdEncoding.EncodeToString(long[:]), map[string]string{"n": "cli.js"}),
	}
	s.pins = func(string) []pin { return pins }
	f := &shelf{files: map[string][]byte{"w-1.0.whl": wheel, "n-2.0.0.tgz": tarball}}
	s.opt.Fetcher = f
	return s, tools, f
}

func TestToolsOfABuild(t *testing.T) {
	s, _, f := tooled(t)
	made, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Ledger(made)
	if err != nil || len(l.Tools) != 2 {
		t.Fatalf("%+v %v", l.Tools, err)
	}
	want := Tool{"n2", "2.0.0", "node", "n", "n-2.0.0.tgz", l.Tools[1].SHA256, "https://files.example/n-2.0.0.tgz", "run", 8}
	if l.Tools[1] != want || len(want.SHA256) != 64 {
		t.Errorf("got %+v\nwant %+v", l.Tools[1], want)
	}
	if s.Outdated(made) {
		t.Error("what was just built is outdated")
	}
	// A file that was fetched once is used again; one that was changed since is not.
	put(t, filepath.Join(s.dir, keptTools, "w-1.0.whl"), "other", 0o600)
	if again, err := s.Build(t.Context(), NameDebian, nil); err != nil || again.Digest != made.Digest {
		t.Errorf("%+v %v", again, err)
	}
	if !slices.Equal(f.fetched, []string{"w-1.0.whl", "n-2.0.0.tgz", "w-1.0.whl"}) {
		t.Errorf("fetched %v", f.fetched)
	}
	// Another version of a tool is another recipe, also where it makes the same root.
	pins := s.pins("")
	s.pins = func(string) []pin { return pins[:1] }
	if !s.Outdated(made) || s.Outdated(Template{Name: NameHost}) {
		t.Error("a template of another recipe is not outdated, or the host's is")
	}
	again, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil || again.Digest != made.Digest || s.Outdated(again) {
		t.Errorf("%+v %v", again, err)
	}
	if l, err := s.Ledger(again); err != nil || len(l.Tools) != 1 {
		t.Errorf("%+v %v", l.Tools, err)
	}
}

func TestToolsThatCannotBeHad(t *testing.T) {
	s, _, f := tooled(t)
	before, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(s.dir, keptTools)
	wheel := f.files["w-1.0.whl"]
	for name, c := range map[string]struct {
		spoil func()
		want  string
	}{
		"the gateway is down": {func() { f.err = fault.New(fault.ErrUnavailable, "the gateway answers 424") }, "the gateway answers 424"},
		"another file comes":  {func() { f.files["w-1.0.whl"] = []byte("other") }, "not the pinned file"},
		"nobody can fetch":    {func() { s.opt.Fetcher = nil }, "through the gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(kept); err != nil {
				t.Fatal(err)
			}
			c.spoil()
			_, err := s.Build(t.Context(), NameDebian, nil)
			if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if got, err := s.Get(t.Context(), NameDebian); err != nil || got.Digest != before.Digest {
				t.Errorf("%+v %v", got, err)
			}
			if left := leftovers(t, s); left != nil || exists(filepath.Join(kept, "w-1.0.whl")) {
				t.Errorf("left: %v", left)
			}
			f.err, f.files["w-1.0.whl"], s.opt.Fetcher = nil, wheel, f
		})
	}
	// The base needs no tools, is not listed, and is no other template's.
	s.opt.Fetcher = nil
	base, err := s.Build(t.Context(), NameBase, nil)
	if err != nil || base.Name != NameBase {
		t.Fatal(err)
	}
	all, err := s.List(t.Context())
	if err != nil || slices.ContainsFunc(all, func(t Template) bool { return t.Name == NameBase }) {
		t.Errorf("%+v %v", all, err)
	}
	if err := s.Remove(t.Context(), NameBase); err != nil {
		t.Error(err)
	}
}

func TestPack(t *testing.T) {
	s, _, f := tooled(t)
	dir := t.TempDir()
	for name, data := range f.files {
		put(t, filepath.Join(dir, name), string(data), 0o600)
	}
	pack := func(target string) []byte {
		t.Helper()
		path := filepath.Join(t.TempDir(), target)
		if err := packTools(t.Context(), s.pins(""), dir, "", path); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	raw := pack("a")
	if !bytes.Equal(raw, pack("b")) {
		t.Error("the same tools make two archives")
	}
	got := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.FileInfo().Mode().String() + " " + h.Linkname
	}
	want := map[string]string{
		"usr/local/lib/w/bin/prog": "-rwxr-xr-x ", "usr/local/lib/w/data": "-rw-r--r-- ",
		"usr/local/bin/prog": "Lrwxrwxrwx ../lib/w/bin/prog", "usr/local/lib/node_modules/n2/cli.js": "-rwxr-xr-x ",
		"usr/local/bin/n": "Lrwxrwxrwx ../lib/node_modules/n2/cli.js",
	}
	for name, mode := range want {
		if got[name] != mode {
			t.Errorf("%s: %q, want %q", name, got[name], mode)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also in it: %v", got)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	for name, members := range map[string][]member{
		"no program":   {{"package/other", "", false}},
		"a way out":    {{"package/cli.js", "", false}, {"package/../../../../etc/passwd", "", false}},
		"a file twice": {{"package/cli.js", "a", false}, {"package/cli.js", "b", false}},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "n-1.tgz"), string(tarballOf(t, members...)), 0o600)
		p := nodePackage("n", "1", "n", "", map[string]string{"n": "cli.js"})
		if err := packTools(t.Context(), []pin{p}, dir, "", filepath.Join(dir, "out.tar")); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPins: each architecture has the same tools, with well-formed digests.
func TestPins(t *testing.T) {
	t.Parallel()
	tools := map[string][]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, p := range pinned(arch) {
			tools[arch] = append(tools[arch], p.tool+" "+p.Version)
			empty := filepath.Join(t.TempDir(), "empty")
			put(t, empty, "", 0o600)
			if _, err := p.verify(t.Context(), empty); !errors.Is(err, fault.ErrUnavailable) {
				t.Errorf("%s: %v", p.File, err)
			}
			if canonical, err := pkgref.New(p.Ecosystem, p.Name, p.Version); err != nil || canonical.Name != p.Name || canonical.Version != p.Version {
				t.Errorf("%v %v", canonical, err)
			}
		}
	}
	if len(tools["amd64"]) == 0 || !slices.Equal(tools["amd64"], tools["arm64"]) {
		t.Errorf("%v", tools)
	}
	if pinned("riscv64") != nil {
		t.Error("there are pins for an architecture without any")
	}
}
