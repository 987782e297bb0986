//go:build long

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// hostileBackend is the build backend of a source distribution, which needs nothing from a
// registry. It tries to get out and at what is the run's, and writes into the wheel what
// it got; then it does what its project is called for.
const hostileBackend = `
import base64, hashlib, os, socket, stat, zipfile

NAME = "%s"

def tried():
    got = []
    for host in ("reachable.example", "192.0.2.1"):
        try:
            socket.create_connection((host, 80), 3).close()
            got.append("network")
        except OSError:
            pass
    if os.environ.get("RUNS_SECRET"):
        got.append("environment")
    for path in ("/home/agent/marker", "/workspace/marker"):
        try:
            open(path).close()
            got.append("files")
        except OSError:
            pass
    for path in ("/usr/bin/evil", "/etc/evil"):
        try:
            open(path, "w").close()
            got.append("system")
        except OSError:
            pass
    return got

def wheel(path, name, modes={}):
    info = name + "-1.0.dist-info/"
    files = {
        name + ".py": "GOT = %%r\n" %% (tried(),),
        info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: it\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    with zipfile.ZipFile(path, "w") as z:
        for file, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += "%%s,sha256=%%s,%%d\n" %% (file, digest, len(text))
            entry = zipfile.ZipInfo(file)
            entry.external_attr = modes.get(file, 0o100644) << 16
            z.writestr(entry, text)
        z.writestr(info + "RECORD", record + info + "RECORD,,\n")

def build_wheel(folder, config_settings=None, metadata_directory=None):
    file = NAME + "-1.0-py3-none-any.whl"
    path = os.path.join(folder, file)
    if NAME == "poison":
        wheel(path, "wanted")
    elif NAME == "setuid":
        wheel(path, NAME, {NAME + ".py": 0o104755})
    elif NAME == "linked":
        wheel(path, NAME, {NAME + ".py": 0o120777})
    elif NAME == "leads":
        os.symlink("/etc/passwd", path)
    elif NAME == "doubled":
        wheel("/var/tmp/built/other-1.0-py3-none-any.whl", "other")
        wheel(path, NAME)
    elif NAME == "broken":
        raise SystemExit("\x1b[31mthis package needs a compiler")
    else:
        wheel(path, NAME)
    return file
`

// source packs a source distribution with that backend.
func source(t *testing.T, name string) pypitest.Dist {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{
		{"PKG-INFO", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"},
		{"pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n"},
		{"backend.py", fmt.Sprintf(hostileBackend, name)},
	} {
		if err := w.WriteHeader(&tar.Header{Name: name + "-1.0/" + f[0], Mode: 0o644, Size: int64(len(f[1])), Format: tar.FormatPAX}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return pypitest.Dist{Name: name, Version: "1.0", File: name + "-1.0.tar.gz", Bytes: b.Bytes()}
}

// TestHostileSourceDistributions: what a build does stays in its workshop, and what it makes
// is looked into. The control is the same source under sdist: allow, which is built where
// the run's own things are.
func TestHostileSourceDistributions(t *testing.T) {
	t.Parallel()
	const host = "index.example"
	l := liar.New(t, host)
	for _, name := range []string{"quiet", "poison", "setuid", "linked", "leads", "doubled", "broken"} {
		d := source(t, name)
		d.URL = l.URL(host, "/files/"+d.File)
		l.Script(host+"/files/"+d.File, liar.Body("application/gzip", d.Bytes))
		l.Script(host+"/simple/"+name+"/", liar.Body(pypitest.TypeJSON, pypitest.Page(t, name, d)))
	}
	wanted := pypitest.Wheel(t, "big", "1.0") // the project that the gateway asks for at its start
	wanted.URL = l.URL(host, "/files/"+wanted.File)
	l.Script(host+"/simple/big/", liar.Body(pypitest.TypeJSON, pypitest.Page(t, "big", wanted)))
	in := start(t, localUpstream(t, l, host))

	open := func(sdist string) api.Sandbox {
		env := in.create("debian", "packages: { default: allow, sdist: "+sdist+" }\n")
		if got := in.run(env, "sh", "-c", "echo x > /home/agent/marker && cat /home/agent/marker"); got.Exit.Code != 0 {
			t.Fatalf("the run has no files of its own: %+v", got)
		}
		return env
	}
	gets := func(env api.Sandbox) string {
		got := in.run(env, "sh", "-c", "RUNS_SECRET=s3cret pip install -q --no-cache-dir --target /tmp/got quiet && PYTHONPATH=/tmp/got python3 -c 'import quiet; print(quiet.GOT)'")
		if got.Exit.Code != 0 {
			t.Fatalf("pip ended with %+v", got)
		}
		return strings.TrimSpace(got.Stdout)
	}
	if got := gets(open("allow")); !strings.Contains(got, "environment") || !strings.Contains(got, "files") {
		t.Fatalf("INCONCLUSIVE: a build in the run gets %s", got)
	}
	env := open("throwaway")
	if got := gets(env); got != "[]" {
		t.Errorf("a build apart got %s", got)
	}
	for name, says := range map[string]string{
		"poison": "its build failed", "leads": "its build failed", // pip itself sees these
		"setuid": "setuid", "linked": "neither a file nor a folder", "doubled": "several or none", "broken": "this package needs a compiler",
	} {
		got := in.run(env, "pip", "install", "-q", "--no-cache-dir", "--target", "/tmp/"+name, name)
		if got.Exit.Code == 0 || !strings.Contains(got.Stderr, says) || strings.Contains(got.Stderr, "\x1b[31m") {
			t.Errorf("%s: pip ended with %+v", name, got)
		}
		if got := in.run(env, "sh", "-c", "ls /tmp/"+name+"/*.py 2>/dev/null"); got.Exit.Code == 0 {
			t.Errorf("%s: something was installed: %s", name, got.Stdout)
		}
	}
	all, err := in.Client.Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.Run, "build-") {
			t.Errorf("the workshop %s is left", s.ID)
		}
	}
}
