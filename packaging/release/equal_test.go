package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Two releases of a commit, made in two directories out of two clones, have the
// same bytes; and what they hold runs.
func TestTwoReleasesAreEqual(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("builds all programs twice: COFFERDAM_LONG=1")
	}
	var made [2]string
	for i := range made {
		clone := filepath.Join(t.TempDir(), "clone")
		run(t, "git", "clone", "--quiet", "--no-hardlinks", filepath.Join("..", ".."), clone)
		made[i] = filepath.Join(t.TempDir(), "dist")
		if err := makeRelease(t.Context(), clone, "HEAD", made[i], []string{runtime.GOARCH}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(made[0])
	if err != nil || len(files) != 4 {
		t.Fatalf("a release has %d files: %v", len(files), err)
	}
	for _, f := range files {
		one, err := os.ReadFile(filepath.Join(made[0], f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(made[1], f.Name()))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s differs: %v", f.Name(), err)
		}
	}
	sums := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	sums.Dir = made[0]
	if out, err := sums.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 3 {
		t.Errorf("%v %s", err, out)
	}
	archiveRuns(t, made[0])
	packageInstalls(t, made[0])
}

func archiveRuns(t *testing.T, dist string) {
	t.Helper()
	root := t.TempDir()
	run(t, "tar", "-C", root, "--strip-components=1", "-xzf", only(t, dist, "*.tar.gz"))
	runs(t, root)
}

// packageInstalls has dpkg install the package below a root of its own, where its
// scripts must keep their hands off this machine, and take it away again.
func packageInstalls(t *testing.T, dist string) {
	t.Helper()
	deb := only(t, dist, "*.deb")
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Log("no dpkg here: the package is only compared")
		return
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := []string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=" + filepath.Join(root, "log")}
	run(t, "dpkg", append(dpkg, "--install", deb)...)
	runs(t, filepath.Join(root, "usr"))
	for _, file := range []string{"lib/systemd/system/cofferdam.service", "share/doc/cofferdam/copyright", "share/doc/cofferdam/sbom.cdx.json"} {
		if _, err := os.Stat(filepath.Join(root, "usr", file)); err != nil {
			t.Error(err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/cofferdam.service"))
	if err != nil || !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/cofferdam serve\n")) {
		t.Errorf("the unit starts something else: %v\n%s", err, unit)
	}
	run(t, "dpkg", append(dpkg, "--purge", "cofferdam")...)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/cofferdam")); !os.IsNotExist(err) {
		t.Errorf("the program is still there: %v", err)
	}
}

// runs starts both programs of an installation, and looks for the guest agent and
// for a licence.
func runs(t *testing.T, prefix string) {
	t.Helper()
	version := strings.TrimSpace(run(t, "git", "-C", filepath.Join("..", ".."), "describe", "--tags", "--always", "--abbrev=12", "HEAD"))
	if out := run(t, filepath.Join(prefix, "bin/cofferdam"), "--version"); !strings.Contains(out, version) {
		t.Errorf("it is of %q, and the commit of %q", out, version)
	}
	if out := run(t, filepath.Join(prefix, "libexec/cofferdam/runsc"), "--version"); !strings.Contains(out, "runsc version v0.") {
		t.Errorf("the engine says %q", out)
	}
	if found, err := filepath.Glob(filepath.Join(prefix, "share/doc/cofferdam/licenses/gvisor.dev/gvisor@*/LICENSE")); err != nil || len(found) != 1 {
		t.Errorf("the engine's licence: %v %v", found, err)
	}
}

func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
