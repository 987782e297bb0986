package differential

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

// wheel is a wheel with some files, and at most two oddities.
func (d dice) wheel(tb testing.TB) []byte {
	tb.Helper()
	var more []entry
	for range 1 + d.IntN(3) {
		e := entry{
			path: pick(d, "foo.py", "foo/a.py", "foo/b.py", "bar.py", "foo-1.0.data/purelib/foo.py", "foo-1.0.data/platlib/p.py", "foo-1.0.data/scripts/s", "foo-1.0.data/data/etc/d",
				"foo-1.0.data/data/x", "foo-1.0.data/headers/h", "foo/ü.py", "foo/a,b", "foo/a b", "foo/.x", "a:b", "c:b", "foo/../x", "./x", "foo//x", "foo/", "foo/x.", "\u2028", "foo.pth", "foo-1.0.dist-info/LICENSE", "foo-1.0.dist-info/x/y", "FOO.py"),
			data:   pick(d, "", "x", strings.Repeat("x", 70_000), "PK\x05\x06"+strings.Repeat("\x00", 18), "PK\x03\x04", "import os\n"),
			stored: d.in(3),
		}
		e.descriptor = d.in(5)
		if !ascii(e.path) || d.in(10) {
			e.flags = 0x800
		}
		if d.in(6) {
			e.extra = pick(d, extraField(0x7075, "\x01\x00\x00\x00\x00"+e.path), extraField(0x5455, "\x01"), extraField(0x6375, "\x01\x00\x00\x00\x00c"), extraField(0x000a, strings.Repeat("\x00", 32)), extraField(1, ""), "\x01")
			e.inner = pick(d, "", e.extra)
		}
		if d.in(6) {
			e.attributes = pick[uint32](d, 0o100644<<16, 0o100755<<16, 0o040755<<16|0x10, 0o120777<<16, 0x10, 0x01, 0o106755<<16, 0o644<<16)
		}
		more = append(more, e)
	}
	z := wheelOf(more...)
	if d.in(12) {
		z.comment = pick(d, "x", "PK\x05\x06", strings.Repeat("c", 400))
	}
	for range pick(d, 0, 0, 1, 1, 2) {
		p := patch{pick(d, d.IntN(46), d.IntN(80)), pick(d, "\x00", "\x01", "\x08", "\x10", "\x14", "\x2d", "\x3f", "\x40", "\x80", "\xff", "a", "/", "PK")}
		e := &z.entries[d.IntN(len(z.entries))]
		switch d.IntN(5) {
		case 0:
			e.head = append(e.head, p)
		case 1, 2:
			e.listed = append(e.listed, p)
		case 3: // the same in both: times, versions, flags
			e.head, e.listed = append(e.head, p), append(e.listed, patch{p.at + 2, p.text})
		case 4:
			z.end = append(z.end, p)
		}
	}
	return z.bytes(tb)
}

func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e }) }

// TestRandomWheels: whatever our reader accepts, pip and uv install as it says.
func TestRandomWheels(t *testing.T) {
	t.Parallel()
	d, at := roll(t), startWheels(t)
	accepted, n := 0, rounds(60, 8_000)
	for i := range n {
		data := d.wheel(t)
		tools := []string{"pip"}
		if i%8 == 0 {
			tools = wheelTools()
		}
		for _, tool := range tools {
			diff, err := at.differ(t, tool, data, ourWheel)
			if err != nil {
				break
			}
			accepted++
			if diff != "" {
				t.Errorf("%s\n%s", diff, keep(t, wheelName, data))
				break
			}
		}
	}
	t.Logf("%d wheels, %d of them installed", n, accepted)
	if accepted < n/20 {
		t.Errorf("of %d wheels only %d were accepted: the comparison compares nothing", n, accepted)
	}
}

// ourSdist is what our reader says of a source distribution.
func ourSdist(data []byte) (landing, error) {
	f := ecosystem.File{Name: "foo-1.0.tar.gz", Version: "1.0", Kind: policy.KindSdist}
	if _, err := pypi.New().Inspect(f, nil, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	return readTarball(data, archive.Limits{})
}

// dump is a build backend in the source distribution: it shows what uv unpacked.
const dump = `import os, shutil
def show(*args, **kwargs):
    shutil.copytree(".", os.environ["DUMP"], symlinks=True)
    raise SystemExit(1)
get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = show
`

// sdistStart are the first members of a source distribution.
func sdistStart() []header {
	return []header{
		file("package/PKG-INFO", "Metadata-Version: 2.1\nName: foo\nVersion: 1.0\n"),
		file("package/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = \"dump\"\nbackend-path = [\".\"]\n"),
		file("package/dump.py", dump),
	}
}

// unpack gives what uv unpacks of a source distribution; nil if it does not
// come to building it.
func (u *uv) unpack(t *testing.T, data []byte) (landing, map[string]bool) {
	t.Helper()
	place := filepath.Join(u.dir, "place")
	defer os.RemoveAll(place)
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(place, "foo-1.0.tar.gz")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	shown := filepath.Join(place, "dump")
	cmd := exec.CommandContext(t.Context(), u.program, "pip", "install", "--quiet", "--no-config", "--no-deps", "--no-index", "--no-build-isolation",
		"--python="+filepath.Join(filepath.Dir(u.program), "python"), "--cache-dir="+filepath.Join(place, "cache"), "--target="+filepath.Join(place, "site"), "foo @ "+from)
	cmd.Env = append(os.Environ(), "DUMP="+shown, "PYTHONDONTWRITEBYTECODE=1")
	if cmd.Run() == nil {
		t.Fatal("uv has built what can't be built")
	}
	if _, err := os.Stat(shown); err != nil {
		return nil, nil
	}
	return landed(t, shown)
}

// TestRandomSdists: the same for source distributions.
func TestRandomSdists(t *testing.T) {
	t.Parallel()
	d, at := roll(t), startWheels(t)
	accepted, n := 0, rounds(100, 15_000)
	for range n {
		data := d.tarball(t, sdistStart()...)
		want, err := ourSdist(data)
		if err != nil {
			continue
		}
		accepted++
		if got, links, said := at.unpack(t, "pip", "foo-1.0.tar.gz", data); said.Error == "" {
			if diff := want.without(links).tell(got); diff != "" {
				t.Errorf("pip unpacks it in another way:%s\n%s", diff, keep(t, "foo-1.0.tar.gz", data))
			}
		}
		if accepted%10 != 1 {
			continue
		}
		if got, links := at.uv.unpack(t, data); got != nil {
			if diff := want.without(links).tell(got); diff != "" {
				t.Errorf("uv unpacks it in another way:%s\n%s", diff, keep(t, "foo-1.0.tar.gz", data))
			}
		}
	}
	t.Logf("%d source distributions, %d of them unpacked", n, accepted)
	if accepted < n/40 {
		t.Errorf("of %d only %d were accepted: the comparison compares nothing", n, accepted)
	}
}

// TestHonestSdists: what packers write passes, and pip and uv unpack it as our
// reader says.
func TestHonestSdists(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: pip is started for each of the forms")
	}
	t.Parallel()
	at, shown := startWheels(t), 0
	for _, c := range plain() {
		switch c.name {
		case "another top", "a file twice": // only npm's packers do that
			continue
		case "a comment of git's":
			c.headers = append(c.headers[:1:1], sdistStart()...)
		default:
			c.headers = append(sdistStart(), c.headers...)
		}
		data := packed(t, c.headers...)
		want, err := ourSdist(data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, links, said := at.unpack(t, "pip", "foo-1.0.tar.gz", data)
		if diff := want.without(links).tell(got); diff != "" || said.Error != "" {
			t.Errorf("%s: pip: %s %s", c.name, diff, said.Error)
		}
		if got, links = at.uv.unpack(t, data); got == nil {
			continue // it takes fewer forms than our reader
		}
		shown++
		if diff := want.without(links).tell(got); diff != "" {
			t.Errorf("%s: uv: %s", c.name, diff)
		}
	}
	if shown < 8 {
		t.Errorf("uv took only %d of the forms that packers write", shown)
	}
}
