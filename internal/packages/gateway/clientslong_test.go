//go:build long

package gateway_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// TestRealRegistry installs from the registry that this machine's pip uses, and
// with what it got there, the newest pip and uv, looks at refusals again.
func TestRealRegistry(t *testing.T) {
	index := pipIndex(t)
	b := &bench{t: t, door: newDoor(t)}
	b.cfg = gateway.Config{CacheDir: t.TempDir(), Upstreams: []upstream.Config{{Ecosystem: pkgref.Python, Index: index}}, Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	b.start()
	r := newRoad(b)
	env := []string{"PIP_INDEX_URL=" + index}
	target := filepath.Join(r.dir, "tools")
	out, ok := r.run(env, "python3", "-m", "pip", "install", "--only-binary", ":all:", "--target", target, "requests", "pip", "uv")
	if !ok {
		t.Fatalf("pip install: %s", out)
	}
	names := map[string]bool{}
	for _, s := range b.door.Served() {
		names[s.Package.Name] = true
	}
	for _, want := range []string{"requests", "urllib3", "idna", "certifi", "charset-normalizer", "pip", "uv"} {
		if !names[want] {
			t.Errorf("no record of %s being served", want)
		}
	}
	if f := b.door.Failures(); len(f) != 0 {
		t.Errorf("failures: %+v", f)
	}
	if out, ok := r.run(env, "python3", "-m", "pip", "download", "--require-hashes", "--no-deps", "-d", r.dir, "-r", hashed(t, r, b.door.Served())); !ok {
		t.Errorf("pip download with hashes: %s", out)
	}
	uv := filepath.Join(target, "bin", "uv")
	if out, ok := r.run([]string{"UV_DEFAULT_INDEX=" + index}, uv, "pip", "install", "--python", python(t), "--target", filepath.Join(r.dir, "by-uv"), "requests"); !ok {
		t.Errorf("uv pip install: %s", out)
	}
	script := newBench(t, nil)
	publishForClients(script)
	r2 := newRoad(script)
	scripted := "https://" + indexHost + "/simple/"
	checkRefusals(t, r2, "newest-pip", []string{"PYTHONPATH=" + target, "PIP_INDEX_URL=" + scripted}, []string{"python3", "-m", "pip", "install"}, "No matching distribution found for alpha>=2")
	checkRefusals(t, r2, "uv", []string{"UV_DEFAULT_INDEX=" + scripted}, []string{uv, "pip", "install", "--python", python(t)}, "alpha 2.0 is over max_version 1.x")
}

// hashed writes a requirements file with the digests that were served.
func hashed(t *testing.T, r *road, served []door.ServeAsk) string {
	t.Helper()
	text := ""
	for _, s := range served {
		if s.Package.Name != "uv" {
			text += s.Package.Name + "==" + s.Package.Version + " --hash=sha256:" + s.SHA256 + "\n"
		}
	}
	path := filepath.Join(r.dir, "requirements.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pipIndex is the index that pip is set up to use, or was built with.
func pipIndex(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "config", "get", "global.index-url").Output()
	if err != nil {
		out, err = exec.CommandContext(t.Context(), "python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)").Output()
	}
	if err != nil {
		t.Fatalf("pip does not say which index it uses: %v", err)
	}
	return strings.TrimSuffix(strings.TrimSpace(string(out)), "/") + "/"
}

func python(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
