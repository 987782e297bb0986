package differential

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

const wheelName = "foo-1.0-py3-none-any.whl"

// ourWheel is what our reader says that a wheel lands.
func ourWheel(data []byte) (landing, error) {
	if _, err := pypi.New().Inspect(ecosystem.File{Name: wheelName, Version: "1.0", Kind: policy.KindWheel}, nil, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	files, err := readZip(data)
	return spread(files), err
}

// unguardedWheel is what the standard library's reader says, which knows only the directory.
func unguardedWheel(data []byte) (landing, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	files := landing{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[f.Name] = string(b)
	}
	return spread(files), nil
}

// spread puts what is in a wheel's data folder where its scheme is.
func spread(files landing) landing {
	out := landing{}
	for path, text := range files {
		place := "site/" + path
		if rest, ok := strings.CutPrefix(path, "foo-1.0.data/"); ok {
			scheme, rest, _ := strings.Cut(rest, "/")
			place = map[string]string{"purelib": "site/", "platlib": "site/", "scripts": "bin/", "headers": "include/", "data": "data/"}[scheme] + rest
		}
		out[place] = text
	}
	return out
}

// written are the files that installers write about an installation.
func written(path string) bool {
	switch path {
	case "site/" + info + "RECORD", "site/" + info + "INSTALLER", "site/" + info + "REQUESTED", "site/" + info + "direct_url.json", "site/" + info + "uv_cache.json", "site/.lock":
		return true
	}
	return false
}

func (l landing) withoutWritten() landing {
	out := landing{}
	for path, text := range l {
		if !written(path) {
			out[path] = text
		}
	}
	return out
}

// uv is the program, its cache, and a server of the one wheel that it is to
// install: what it fetches it reads while it comes, and not as it reads a file.
type uv struct {
	program, dir, url string
	wheel             []byte // set between two installs
}

func startUV(t *testing.T) *uv {
	t.Helper()
	u := &uv{program: filepath.Join(pythonBin(t), "uv"), dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(u.wheel)
	}))
	t.Cleanup(server.Close)
	u.url = server.URL
	return u
}

// install gives what uv lands of a wheel, from a file or from the server.
func (u *uv) install(t *testing.T, data []byte, fetched bool) (landing, error) {
	t.Helper()
	place := filepath.Join(u.dir, "place")
	defer os.RemoveAll(place)
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(place, wheelName)
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if u.wheel = data; fetched {
		from = u.url + "/" + wheelName
	}
	root := filepath.Join(place, "root")
	cmd := exec.CommandContext(t.Context(), u.program, "pip", "install", "--quiet", "--no-config", "--no-deps", "--no-index", "--link-mode=copy",
		"--python="+filepath.Join(filepath.Dir(u.program), "python"), "--cache-dir="+filepath.Join(place, "cache"), "--target="+filepath.Join(root, "site"), "foo @ "+from)
	cmd.Env = append(os.Environ(), "UV_NO_PROGRESS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	files, _ := landed(t, root)
	return files, nil
}

// flat puts what has a scheme of its own where uv has it in a folder that is
// the target of all.
func (l landing) flat() landing {
	out := landing{}
	for path, text := range l {
		scheme, rest, _ := strings.Cut(path, "/")
		switch scheme {
		case "bin":
			path = "site/bin/" + rest
		case "data":
			path = "site/" + rest
		case "include":
			path = "site/include/foo/" + rest
		}
		out[path] = text
	}
	return out
}

// wheelDesk is where wheels are installed.
type wheelDesk struct {
	*desk
	uv *uv
}

func startWheels(t *testing.T) *wheelDesk {
	t.Helper()
	return &wheelDesk{&desk{dir: t.TempDir(), pip: startPip(t)}, startUV(t)}
}

// differ gives what a tool makes of a wheel that a reader accepts, where it is
// something else than the reader says.
func (d *wheelDesk) differ(t *testing.T, tool string, data []byte, read func([]byte) (landing, error)) (string, error) {
	t.Helper()
	want, err := read(data)
	if err != nil {
		return "", err
	}
	var got landing
	if tool == "pip" {
		files, _, said := d.unpack(t, "pip", wheelName, data)
		if said.Error != "" {
			return "", nil
		}
		got = files
	} else {
		files, err := d.uv.install(t, data, tool == "uv, fetching")
		if err != nil {
			return "", nil //nolint:nilerr // what uv refuses installs nothing
		}
		want, got = want.flat(), files
	}
	if diff := want.withoutWritten().tell(got.withoutWritten()); diff != "" {
		return fmt.Sprintf("%s installs it in another way:%s", tool, diff), nil
	}
	return "", nil
}

func wheelTools() []string { return []string{"pip", "uv", "uv, fetching"} }

// TestHonestWheels: what packers write passes, and lands as our reader says.
func TestHonestWheels(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: pip is started for each of the forms")
	}
	t.Parallel()
	d := startWheels(t)
	for name, z := range map[string]zipFile{
		"a module":         wheelOf(entry{path: "foo.py", data: "x"}),
		"in every scheme":  wheelOf(entry{path: "foo/__init__.py", data: ""}, entry{path: "foo-1.0.data/purelib/bar.py", data: "x"}, entry{path: "foo-1.0.data/platlib/baz.py", data: "y"}, entry{path: "foo-1.0.data/scripts/run", data: "#!/bin/sh\n"}, entry{path: "foo-1.0.data/data/etc/foo", data: "z"}, entry{path: "foo-1.0.data/headers/foo.h", data: "h"}),
		"streamed":         wheelOf(entry{path: "foo.py", data: strings.Repeat("x", 1000), descriptor: true}),
		"stored":           wheelOf(entry{path: "foo.py", data: "x", stored: true}),
		"a folder":         wheelOf(entry{path: "foo/", stored: true, attributes: 0o040755 << 16}, entry{path: "foo/a.py", data: "x"}),
		"outside of ASCII": wheelOf(entry{path: "foo/ü.py", data: "x", flags: 0x800}),
		"a comma":          wheelOf(entry{path: "foo/a,b.py", data: "x"}),
		"the path twice":   wheelOf(entry{path: "foo.py", data: "x", extra: extraField(0x7075, "\x01\x00\x00\x00\x00foo.py")}),
		"times":            wheelOf(entry{path: "foo.py", data: "x", extra: extraField(0x5455, "\x01"), inner: extraField(0x5455, "\x01\x02\x03\x04\x05")}),
		"no file":          wheelOf(),
	} {
		for _, tool := range wheelTools() {
			if diff, err := d.differ(t, tool, z.bytes(t), ourWheel); diff != "" || err != nil {
				t.Errorf("%s: %s %v", name, diff, err)
			}
		}
	}
}

// recordedAs changes the RECORD of a wheel.
func (z zipFile) recordedAs(from, to string) zipFile {
	last := &z.entries[len(z.entries)-1]
	last.data = strings.ReplaceAll(last.data, from, to)
	return z
}

// TestGapsOfARecord: what a RECORD does not list, or lists as if a directory with the wheel's name lay
// at the root of the disk, pip and uv install where our reader says.
func TestGapsOfARecord(t *testing.T) {
	t.Parallel()
	d := startWheels(t)
	files := []entry{{path: "foo.py", data: "x"}, {path: "foo/a.py", data: "y"}, {path: "foo-1.0.data/purelib/b.py", data: "z"}, {path: "foo-1.0.data/scripts/run", data: "#!/bin/sh\n"}}
	listed := wheelOf(files...)
	record := listed.entries[len(listed.entries)-1].data
	lines := record[strings.Index(record, "foo.py,"):strings.Index(record, info+"RECORD")]
	for name, z := range map[string]zipFile{
		"not listed": wheelOf(files...).recordedAs(lines, ""),
		"absolute":   wheelOf(files...).recordedAs("\nfoo/a.py,", "\n/foo/a.py,"),
	} {
		for _, tool := range wheelTools() {
			if diff, err := d.differ(t, tool, z.bytes(t), ourWheel); diff != "" || err != nil {
				t.Errorf("%s: %s %v", name, diff, err)
			}
			if d.refuses(t, tool, z.bytes(t)) {
				t.Errorf("%s: %s does not install it", name, tool)
			}
		}
	}
}

// refuses tells whether a tool does not install a wheel at all, which differ does not mind.
func (d *wheelDesk) refuses(t *testing.T, tool string, data []byte) bool {
	t.Helper()
	if tool == "pip" {
		_, _, said := d.unpack(t, "pip", wheelName, data)
		return said.Error != ""
	}
	_, err := d.uv.install(t, data, tool == "uv, fetching")
	return err != nil
}

// TestKnownWheelTricks: what two readers take for two things is refused, and the
// comparison sees those that an installer falls for.
func TestKnownWheelTricks(t *testing.T) {
	t.Parallel()
	d := startWheels(t)
	other := wheelOf(entry{path: "evil.py", data: "evil"})
	twoEnds := wheelOf(entry{path: "foo.py", data: "x"})
	twoEnds.behind = string(other.bytes(t))
	unlisted := wheelOf(entry{path: "foo.py", data: "x"})
	unlisted.entries = append(unlisted.entries, entry{path: "evil.py", data: "evil"})
	unlisted.unlisted = 1
	sfx := wheelOf(entry{path: "foo.py", data: "x"})
	sfx.before = string(file("x", "y").bytes())
	for name, c := range map[string]struct {
		z     zipFile
		fools []string
	}{
		"two names":         {wheelOf(entry{path: "foo.py", local: "bar.py", data: "x"}), nil},
		"a name twice":      {wheelOf(entry{path: "foo.py", data: "x"}, entry{path: "foo.py", data: "y"}), nil},
		"two ends":          {twoEnds, nil},
		"not in the list":   {unlisted, nil},
		"something before":  {sfx, nil},
		"climbing":          {wheelOf(entry{path: "../../evil.py", data: "x"}), []string{"uv", "uv, fetching"}},
		"a place twice":     {wheelOf(entry{path: "foo.py", data: "x"}, entry{path: "foo-1.0.data/purelib/foo.py", data: "y"}), nil},
		"data of another":   {wheelOf(entry{path: "bar-2.data/purelib/evil.py", data: "x"}), []string{"pip"}},
		"a NUL in the name": {wheelOf(entry{path: "foo.py\x00.txt", data: "x"}), []string{"pip"}},
		"a drive":           {wheelOf(entry{path: "foo/c:evil.py", data: "x"}), nil},
		"an absolute path":  {wheelOf(entry{path: "/foo.py", data: "x"}), []string{"uv", "uv, fetching"}},
		"a dot":             {wheelOf(entry{path: "./foo/./a.py", data: "x"}), wheelTools()},
		"another path":      {wheelOf(entry{path: "foo.py", data: "x", extra: extraField(0x7075, "\x01\x00\x00\x00\x00bar.py")}), nil},
	} {
		data := c.z.bytes(t)
		if _, err := ourWheel(data); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: passes our reader: %v", name, err)
		}
		for _, tool := range c.fools {
			if diff, err := d.differ(t, tool, data, unguardedWheel); err != nil || diff == "" {
				t.Errorf("%s: without a guard, the comparison with %s does not see it: %v", name, tool, err)
			}
		}
	}
}
