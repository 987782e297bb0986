package pypi_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

const fooInfo = "Metadata-Version: 1.1\nName: foo\nVersion: 1.0\nSummary: does things\nHome-page: https://foo.example\nAuthor: Ann\nAuthor-email: UNKNOWN\nMaintainer: UNKNOWN\nLicense: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License\nDescription: no header\n\nName: x\n"

// fooSdist is a source distribution of foo 1.0, as a tar or a zip, with more files.
func fooSdist(t *testing.T, ending string, more ...string) (ecosystem.File, ecosystem.Content) {
	t.Helper()
	files := append([]string{"PKG-INFO", fooInfo}, more...)
	var b bytes.Buffer
	switch ending {
	case ".zip":
		z := zip.NewWriter(&b)
		for i := 0; i < len(files); i += 2 {
			w, err := z.CreateRaw(&zip.FileHeader{Name: "foo-1.0/" + files[i], CompressedSize64: uint64(len(files[i+1])), UncompressedSize64: uint64(len(files[i+1])), CRC32: crc32.ChecksumIEEE([]byte(files[i+1]))})
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
	default:
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for i := 0; i < len(files); i += 2 {
			h := &tar.Header{Name: "foo-1.0/" + files[i], Mode: 0o644, Size: int64(len(files[i+1])), Format: tar.FormatPAX}
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
	}
	return ecosystem.File{Name: "foo-1.0" + ending, Version: "1.0", Kind: policy.KindSdist}, bytes.NewReader(b.Bytes())
}

func inspectFoo(t *testing.T, ending string, more ...string) ecosystem.Inspection {
	t.Helper()
	file, content := fooSdist(t, ending, more...)
	found, err := pypi.New().Inspect(file, nil, content)
	if err != nil {
		t.Fatalf("%s: %v", ending, err)
	}
	return found
}

// TestALongProjectFile: its keys would be looked through for each of them, which takes the gateway half a minute for a
// megabyte of them. It is not read, and that is told.
func TestALongProjectFile(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := 0; keys.Len() < 1<<20-20; i++ {
		fmt.Fprintf(&keys, "%x=1\n", i)
	}
	began := time.Now()
	in := inspectFoo(t, ".tar.gz", "pyproject.toml", keys.String()).Inside
	if took := time.Since(began); took > 5*time.Second || len(in.Builds) != 1 || !strings.Contains(in.Builds[0], "can't be read") {
		t.Errorf("%q, after %s", in.Builds, took)
	}
}

// TestWhatBuildingRuns: a source distribution is told with the programs that run where it is built, the
// lines of them to read, and the code that is compiled.
func TestWhatBuildingRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files                    []string
		builds, suspect, sources string
	}{
		"a setup.py": {[]string{"setup.py", "import os\nos.system('make')\n"}, "setup.py (28 bytes), which is a program|build backend: setuptools, since it names none", "setup.py:2 runs programs: os.system('make')", ""},
		"a backend":  {[]string{"pyproject.toml", "[build-system]\nrequires = ['flit_core >=3']\nbuild-backend = 'flit_core.buildapi'\n"}, "build backend: flit_core.buildapi|requires to build: flit_core >=3", "", ""},
		"neither":    {nil, "build backend: setuptools, since it names none", "", ""},
		"no TOML":    {[]string{"pyproject.toml", "[build-system\n"}, "pyproject.toml, which can't be read: which program builds it is not known", "", ""},
		"keys in other letters": {
			[]string{"own.py", "", "pyproject.toml", "[build-system]\nbuild-backend = 'own'\nbackend-path = ['.']\n[Build-System]\nbuild-backend = 'setuptools.build_meta'\nbackend-path = []\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path .|own.py (0 bytes), of its own build backend", "", "",
		},
		"no list of paths":  {[]string{"pyproject.toml", "[build-system]\nbackend-path = '.'\n"}, "pyproject.toml, which can't be read: which program builds it is not known", "", ""},
		"a linked project":  {[]string{"x.toml", "", "pyproject.toml", "-> x.toml"}, "pyproject.toml, which can't be read: which program builds it is not known", "", ""},
		"a linked setup.py": {[]string{"x.py", "", "setup.py", "-> x.py"}, "setup.py (0 bytes), which is a program|build backend: setuptools, since it names none", "setup.py is a link to x.py, which was not looked at", ""},
		"what it imports":   {[]string{"helper.py", "import subprocess\n", "setup.py", "import helper\n"}, "setup.py (14 bytes), which is a program|build backend: setuptools, since it names none", "helper.py:1 runs programs: import subprocess", ""},
		"its own backend": {
			[]string{"tools/own/__init__.py", "import urllib.request\n", "pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['tools']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path tools|tools/own/__init__.py (22 bytes), of its own build backend", "tools/own/__init__.py:1 uses the network: import urllib.request", "",
		},
		"its own backend, beside the rest": {
			[]string{"own.py", "import socket; socket.create_connection(a)\n", "pyproject.toml", "[build-system]\nbuild-backend = 'own:x'\nbackend-path = ['.']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own:x, in backend-path .|own.py (43 bytes), of its own build backend", "own.py:1 uses the network: import socket; socket.create_connection(a)", "",
		},
		"what its own backend imports": {
			[]string{"tools/help.py", "import subprocess\n", "tools/own.py", "import help\n", "pyproject.toml", "[build-system]\nbuild-backend = 'own'\nbackend-path = ['tools']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path tools|tools/help.py (18 bytes), of its own build backend|tools/own.py (12 bytes), of its own build backend", "tools/help.py:1 runs programs: import subprocess", "",
		},
		"what its own backend at the top imports": {
			[]string{"help.py", "import subprocess\n", "own.py", "import help\n", "pyproject.toml", "[build-system]\nbuild-backend = 'own'\nbackend-path = ['.']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path .|own.py (12 bytes), of its own build backend", "help.py:1 runs programs: import subprocess", "",
		},
		"its own backend, linked": {
			[]string{"x.txt", "", "own.py", "-> x.txt", "pyproject.toml", "[build-system]\nbuild-backend = 'own'\nbackend-path = ['.']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path .|own.py (0 bytes), of its own build backend", "own.py is a link to x.txt, which was not looked at", "",
		},
		"its own backend without a name": {
			[]string{"setuptools/build_meta.py", "import socket; socket.create_connection(a)\n", "pyproject.toml", "[build-system]\nrequires = []\nbackend-path = ['.']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: setuptools.build_meta, in backend-path .|setuptools/build_meta.py (43 bytes), of its own build backend", "setuptools/build_meta.py:1 uses the network: import socket; socket.create_connection(a)", "",
		},
		"very many paths": {
			[]string{"pyproject.toml", "[build-system]\nbackend-path = [" + strings.Repeat("'a',", 1000) + "]\n"},
			"pyproject.toml, which can't be read: which program builds it is not known", "", "",
		},
		"more files than are looked at": {
			append(manyFiles(24), "setup.py", "import z\n", "z.py", "import subprocess\n"),
			"setup.py (9 bytes), which is a program|build backend: setuptools, since it names none", "z.py and those behind it were not looked at: there are more files of code than are", "",
		},
		"a backend with a long name": {
			[]string{"pyproject.toml", "[build-system]\nbuild-backend = '" + strings.Repeat("n", 120) + "'\nbackend-path = ['" + strings.Repeat("p", 120) + "']\n"},
			"A PROGRAM THAT IT BRINGS ITSELF is its build backend: ", "", "",
		},
		"code to compile": {[]string{"foo/a.c", "int x;", "foo/b.c", "int y;", "foo/c.pyx", "", "rust/Cargo.toml", ""}, "build backend: setuptools, since it names none", "", ".c: 2 files, such as foo/a.c|.pyx: 1 file, such as foo/c.pyx|Cargo.toml: 1 file, such as rust/Cargo.toml"},
	} {
		in := inspectFoo(t, ".tar.gz", c.files...).Inside
		begins := strings.HasSuffix(c.builds, ": ")
		if got := strings.Join(in.Builds, "|"); got != c.builds && (!begins || !strings.HasPrefix(got, c.builds)) {
			t.Errorf("%s: builds %q, want %q", name, got, c.builds)
		}
		if got := strings.Join(in.Suspect, "|"); got != c.suspect {
			t.Errorf("%s: to read %q, want %q", name, got, c.suspect)
		}
		if got := strings.Join(in.Sources, "|"); got != c.sources {
			t.Errorf("%s: compiles %q, want %q", name, got, c.sources)
		}
	}
}

// manyFiles are harmless files of Python, which come before others.
func manyFiles(n int) (files []string) {
	for i := range n {
		files = append(files, fmt.Sprintf("a%02d.py", i), "x = 1\n")
	}
	return files
}

// TestWhatASourceDistributionSays: PKG-INFO is read as the METADATA of a wheel is; that of the top
// folder counts, and no other one. Machine code is found by its bytes.
func TestWhatASourceDistributionSays(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{".tar.gz", ".zip"} {
		found := inspectFoo(t, ending, "foo.egg-info/PKG-INFO", strings.ReplaceAll(fooInfo, "Ann", "Eve"), "foo/data", "\x7fELF and more", "LICENSE", "ask me")
		said := found.Said
		if said.Maintainer != "Ann" || said.Summary != "does things" || said.Homepage != "https://foo.example" || said.License != "MIT by its classifiers, not recognised in LICENSE" {
			t.Errorf("%s: %+v", ending, said)
		}
		if fmt.Sprint(found.Inside.Native) != "[foo/data]" || found.Inside.Files != 4 {
			t.Errorf("%s: %+v", ending, found.Inside)
		}
	}
}

// TestHostileSourceDistributions: what is looked at and told is bounded, whatever they bring.
func TestHostileSourceDistributions(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 3_000 {
		many = append(many, fmt.Sprintf("f%d.py", i), "import subprocess\n"+strings.Repeat("#", i), fmt.Sprintf("c%d.c", i), "")
	}
	many = append(many, "setup.py", strings.Repeat("import subprocess\n", 50_000), "pyproject.toml", "[build-system]\nrequires = ['"+strings.Repeat("x", 60_000)+"']\n", "LICENSE", strings.Repeat("a", 1<<20))
	in := inspectFoo(t, ".tar.gz", many...).Inside
	if len(in.Suspect) > 60 || len(in.Builds) > 60 || len(in.Sources) != 1 || !strings.HasPrefix(in.Suspect[0], "setup.py was looked at for its first ") {
		t.Errorf("%d to read, %d of the build, %d to compile; first %q", len(in.Suspect), len(in.Builds), len(in.Sources), in.Suspect)
	}
	if last := in.Suspect[len(in.Suspect)-1]; !strings.Contains(last, "were not looked at") {
		t.Errorf("of files for which there was no room it says %q", last)
	}
	for _, line := range append(in.Suspect, in.Builds...) {
		if len(line) > 600 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
	file, content := fooSdist(t, ".tar.gz", "PKG-INFO/x", "")
	if _, err := pypi.New().Inspect(file, nil, content); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("PKG-INFO as a folder: %v", err)
	}
}
