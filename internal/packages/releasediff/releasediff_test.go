package releasediff_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
	"github.com/cofferdam-dev/cofferdam/internal/packages/releasediff"
)

// tarball is a release as npm and source distributions are packed.
func tarball(t *testing.T, name, top string, files ...string) releasediff.Release {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: top + "/" + files[i], Mode: 0o644, Size: int64(len(files[i+1])), Format: tar.FormatPAX}
		if to, is := strings.CutPrefix(files[i+1], "-> "); is {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, to, 0
		}
		err := w.WriteHeader(h)
		if err == nil && h.Size > 0 {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return releasediff.Release{Ecosystem: ecosystemOf(name), Name: name, Content: bytes.NewReader(b.Bytes())}
}

// ecosystemOf is Go for the name of a zip that is a version alone.
func ecosystemOf(name string) pkgref.Ecosystem {
	if strings.HasPrefix(name, "v") {
		return pkgref.Go
	}
	return pkgref.Python
}

func zipped(t *testing.T, name string, files ...string) releasediff.Release {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return releasediff.Release{Ecosystem: ecosystemOf(name), Name: name, Content: bytes.NewReader(b.Bytes())}
}

// told is a listing in words.
func told(l releasediff.Listing) (lines []string) {
	for _, c := range l.Changes {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d>%d %v %s", c.Path, c.Was, c.Is, c.Native, c.Runs)))
	}
	return append(lines, fmt.Sprintf("%d, %d the same", l.Total, l.Same))
}

// TestList: what runs by itself is first, then machine code, then the rest; the same file has the same path in
// two releases, whatever the folder around it is called.
func TestList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after releasediff.Release
		known         releasediff.Known
		want          string
	}{
		"npm": {
			tarball(t, "a-1.0.0.tgz", "package", "package.json", "{}", "index.js", "1", "old.js", "x"),
			tarball(t, "a-1.0.1.tgz", "other", "package.json", "{ }", "index.js", "1", "setup/run.js", "y", "a.node", "z"),
			releasediff.Known{Starter: npm.New(), Scripts: []string{"postinstall: node ./setup/run"}},
			"package.json 2>3 false it says what runs when it is installed|setup/run.js -1>1 false when it is installed|a.node -1>1 true|old.js 1>-1 false|4, 1 the same",
		},
		"a source distribution": {
			tarball(t, "a-1.0.tar.gz", "a-1.0", "setup.py", "x", "PKG-INFO", "1"), tarball(t, "a-1.1.tar.gz", "a-1.1", "setup.py", "y", "PKG-INFO", "1", "b", "\x7fELF"),
			releasediff.Known{Starter: pypi.New()},
			"setup.py 1>1 false when it is built|b -1>4 true|2, 1 the same",
		},
		"wheels": {
			zipped(t, "a-1.0-py3-none-any.whl", "a/__init__.py", "x", "a-1.0.dist-info/METADATA", "m"),
			zipped(t, "a-1.1-py3-none-any.whl", "a/__init__.py", "x", "a-1.1.dist-info/METADATA", "m", "a.pth", "import a"),
			releasediff.Known{Starter: pypi.New()},
			"a.pth -1>8 false at each start of Python|1, 2 the same",
		},
		"Go": {
			zipped(t, "v1.0.0.zip", "example.com/a@v1.0.0/go.mod", "m"), zipped(t, "v1.1.0.zip", "example.com/a@v1.1.0/go.mod", "m", "example.com/a@v1.1.0/b/c.go", "x"),
			releasediff.Known{},
			"b/c.go -1>1 false|1, 1 the same",
		},
		"a file that is a link now": {
			tarball(t, "a-1.0.tar.gz", "a-1.0", "setup.py", "x", "b.txt", "1"), tarball(t, "a-1.1.tar.gz", "a-1.1", "b.txt", "1", "setup.py", "-> b.txt"),
			releasediff.Known{Starter: pypi.New()},
			"setup.py 1>24 false when it is built|1, 1 the same",
		},
		"a file that says what a link does": {
			tarball(t, "a-1.0.tar.gz", "a-1.0", "b.txt", "1", "setup.py", "This is a link to b.txt\n"), tarball(t, "a-1.1.tar.gz", "a-1.1", "b.txt", "1", "setup.py", "-> b.txt"),
			releasediff.Known{Starter: pypi.New()},
			"setup.py 24>24 false when it is built|1, 1 the same",
		},
		"a source distribution in a zip": {
			zipped(t, "a-1.0.zip", "a-1.0/x@1/setup.py", "x"), zipped(t, "a-1.1.zip", "a-1.1/x@1/setup.py", "y"),
			releasediff.Known{Starter: pypi.New()},
			"x@1/setup.py 1>1 false|1, 0 the same",
		},
		"elsewhere in a wheel": {
			zipped(t, "a-1.0-py3-none-any.whl", "a-1.0.data/purelib/a.pth", "x"), zipped(t, "a-1.1-py3-none-any.whl", "a-1.1.data/purelib/a.pth", "import a", "sitecustomize/__init__.py", ""),
			releasediff.Known{Starter: pypi.New()},
			"data/purelib/a.pth 1>8 false at each start of Python|sitecustomize/__init__.py -1>0 false at each start of Python|2, 0 the same",
		},
	} {
		l, err := releasediff.List(&c.before, c.after, c.known)
		if got := strings.Join(told(l), "|"); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, got, c.want)
		}
	}
	l, err := releasediff.List(nil, tarball(t, "a-1.tgz", "package", "x", "1"), releasediff.Known{})
	if got := strings.Join(told(l), "|"); err != nil || got != "x -1>1 false|1, 0 the same" {
		t.Errorf("without another: %v %s", err, got)
	}
}

// TestFile: a file is shown as it differs; a new one as all new, so that no line of it stands alone; what is
// binary is not shown, and what is long is cut and says so.
func TestFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\n", releasediff.MaxText)
	before := tarball(t, "a-1.tgz", "package", "same", "1\n", "changed", "1\n", "gone", "1\n", "long", "1\n")
	after := tarball(t, "a-2.tgz", "package", "same", "1\n", "changed", "2\n", "new", "cofferdam approvals approve ap-x\n", "bin", "\x7fELF\x00", "long", long)
	for name, want := range map[string]string{
		"same":    "2>2 false false ",
		"changed": "2>2 false false --- a-1.tgz/changed\n+++ a-2.tgz/changed\n@@ -1 +1 @@\n-1\n+2\n",
		"gone":    "2>-1 false false --- a-1.tgz/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
		"new":     "-1>33 false false --- /dev/null\n+++ a-2.tgz/new\n@@ -0,0 +1 @@\n+cofferdam approvals approve ap-x\n",
		"bin":     "-1>5 true false ",
	} {
		f, err := releasediff.File(&before, after, name)
		if got := fmt.Sprintf("%d>%d %v %v %s", f.Was, f.Is, f.Binary, f.Cut, f.Diff); err != nil || got != want {
			t.Errorf("%s: %v %q, want %q", name, err, got, want)
		}
	}
	if f, err := releasediff.File(&before, after, "long"); err != nil || !f.Cut || len(f.Diff) > 2*releasediff.MaxText {
		t.Errorf("%v, %d bytes, cut %v", err, len(f.Diff), f.Cut)
	}
	if _, err := releasediff.File(&before, after, "nosuch"); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
}

// TestManyScripts: with as many files and scripts as are told, a look still ends.
func TestManyScripts(t *testing.T) {
	t.Parallel()
	var many, scripts []string
	for i := range 20_000 {
		many = append(many, fmt.Sprint("f", i), "")
	}
	for range 100 {
		scripts = append(scripts, strings.Repeat("x ", 150))
	}
	began := time.Now()
	_, err := releasediff.List(nil, tarball(t, "a-1.tgz", "package", many...), releasediff.Known{Scripts: scripts})
	if took := time.Since(began); err != nil || took > 20*time.Second {
		t.Errorf("%v, after %s", err, took)
	}
}

// TestHostileReleases: too many names, long ones, other archives and broken ones are refused.
func TestHostileReleases(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]releasediff.Release{
		"long names":     tarball(t, "a-1.tgz", "package", strings.Repeat("n", 500), ""),
		"another kind":   tarball(t, "a-1.rpm", "package", "x", ""),
		"broken":         {Name: "a-1.tgz", Content: strings.NewReader("no archive")},
		"out of the way": tarball(t, "a-1.tgz", "package", "../../etc/passwd", ""),
		"twice":          tarball(t, "a-1.tgz", "package", "x", "1", "x", "2"),
	} {
		if _, err := releasediff.List(nil, r, releasediff.Known{}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many []string
	for i := range 3_000 {
		many = append(many, fmt.Sprint("f", i), "")
	}
	l, err := releasediff.List(nil, tarball(t, "a-1.tgz", "package", many...), releasediff.Known{})
	if err != nil || len(l.Changes) != releasediff.MaxChanges || l.Total != 3_000 {
		t.Errorf("%v, %d of %d", err, len(l.Changes), l.Total)
	}
}
