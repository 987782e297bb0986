package python

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// The releases of the toolkit that the provider is tried with.
func toolkits() []string { return []string{"4.1.0", "5.0.0"} }

// isLong skips what takes minutes, and packages of the machine's Python registry.
func isLong(t *testing.T) {
	t.Helper()
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: it installs the toolkit and its kind, and takes minutes")
	}
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run is a program that has to end well, in the folder of the package.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = filepath.Join(root(t), "python")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// environment is a new one with these packages, and gives its programs.
func environment(t *testing.T, packages ...string) func(program string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, nil, "python3", "-m", "venv", dir)
	bin := func(program string) string { return filepath.Join(dir, "bin", program) }
	run(t, nil, bin("pip"), append([]string{"install", "--quiet"}, packages...)...)
	return bin
}

// sources is the package as it lies in the repository, for programs of an environment.
func sources(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"PYTHONPATH=" + filepath.Join(root(t), "python"), "COFFERDAM_BINARY=" + filepath.Join(root(t), "bin", "cofferdam")}, more...)
}

// TestSyncIsMadeOfAsync: the client that blocks is what the generator makes of the other.
func TestSyncIsMadeOfAsync(t *testing.T) {
	t.Parallel()
	run(t, nil, "python3", filepath.Join("tools", "unasync.py"), "--check")
}

// TestFramesAreTheChannels: the numbers repeated in Python are the daemon's.
func TestFramesAreTheChannels(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "python", "cofferdam", "_frames.py"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]channel.FrameType{
		"STDIN": channel.FrameStdin, "STDOUT": channel.FrameStdout, "STDERR": channel.FrameStderr, "EXIT": channel.FrameExit,
		"RESIZE": channel.FrameResize, "SIGNAL": channel.FrameSignal, "GAP": channel.FrameGap,
	} {
		found := regexp.MustCompile(`(?m)^` + name + ` = (\d+)$`).FindSubmatch(text)
		if found == nil || string(found[1]) != strconv.Itoa(int(want)) {
			t.Errorf("%s is not the channel's %d", name, want)
		}
	}
	if !strings.Contains(string(text), "MAX_PAYLOAD = 64 << 10") || channel.MaxPayload != 64<<10 {
		t.Error("the size is not the channel's")
	}
}

// TestTypesAndStyle: mypy and ruff have nothing to say, at the versions that pyproject.toml pins.
func TestTypesAndStyle(t *testing.T) {
	t.Parallel()
	isLong(t)
	bin := environment(t, filepath.Join(root(t), "python")+"[dev]")
	run(t, nil, bin("mypy"), "--cache-dir", t.TempDir())
	run(t, nil, bin("ruff"), "check", "--no-cache", ".")
	run(t, nil, bin("ruff"), "format", "--no-cache", "--check", ".")
}

// TestAlone runs all tests without the toolkit: the client's, and the provider's with types of ours.
func TestAlone(t *testing.T) {
	isLong(t)
	bin := environment(t, "pytest==9.2.0", "httpx", "pyyaml")
	run(t, sources(t, "COFFERDAM_TOOLKIT=none"), bin("python"), "-m", "pytest", "-q", "tests")
}

// TestBesideTheToolkit: the provider with the toolkit's own types and evaluator, and the
// toolkit's tests of its Docker provider, as they are in its source archive.
func TestBesideTheToolkit(t *testing.T) {
	isLong(t)
	theirs := theirTests(t)
	for _, release := range toolkits() {
		t.Run(release, func(t *testing.T) {
			bin := environment(t, "agt-sandbox[policy]=="+release, "pytest==9.2.0", "httpx")
			env := sources(t, "COFFERDAM_TOOLKIT="+release)
			run(t, env, bin("python"), "-m", "pytest", "-q", filepath.Join("tests", "test_gate.py"), filepath.Join("tests", "test_agt.py"), filepath.Join("tests", "test_example.py"))
			out := run(t, env, bin("python"), "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "tests.toolkit_plugin", theirs)
			if !strings.Contains(out, "27 passed, 1 deselected") {
				t.Errorf("not all of their tests ran:\n%s", out)
			}
		})
	}
}

// theirTests is the toolkit's file of tests, from its source archive.
func theirTests(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, nil, "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "agt-sandbox", "--dest", dir, "agt-sandbox==4.1.0")
	archives, err := filepath.Glob(filepath.Join(dir, "agt_sandbox-*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the archive is not there: %q %v", archives, err)
	}
	const file = "agt_sandbox-4.1.0/tests/test_docker_integration.py"
	run(t, nil, "tar", "-xzf", archives[0], "-C", dir, file)
	return filepath.Join(dir, file)
}

// TestTheWheel: it is the same however often it is built, and a whole installation.
func TestTheWheel(t *testing.T) {
	isLong(t)
	first, second := wheel(t), wheel(t)
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(first) != filepath.Base(second) || string(a) != string(b) {
		t.Fatalf("two builds differ: %s of %d bytes, %s of %d", filepath.Base(first), len(a), filepath.Base(second), len(b))
	}
	bin := environment(t, first)
	state, err := os.MkdirTemp("", "cfw") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	if err := os.Chmod(state, 0o711); err != nil { // the gateway, another user, passes through
		t.Fatal(err)
	}
	// Nothing but the environment's own programs is found: no PATH, no variable, no source.
	clean := []string{"HOME=" + state, "PATH=/usr/bin:/bin", "COFFERDAM_STATE=" + state + "/s", "COFFERDAM_RUNTIME=" + state + "/r"}
	t.Cleanup(func() { //nolint:contextcheck // the test's is over
		stop := exec.CommandContext(context.Background(), bin("cofferdam"), "stop", "--force")
		stop.Env = clean
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	program := "import cofferdam\nwith cofferdam.Sandbox(template='host') as box:\n    print(box.run(['echo', 'inside']).stdout, cofferdam._find.binary())\n"
	cmd := exec.CommandContext(t.Context(), bin("python"), "-I", "-c", program)
	cmd.Env, cmd.Dir = clean, "/"
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "inside\n "+bin("cofferdam")+"\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// wheel builds one of what is in bin.
func wheel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, nil, filepath.Join(root(t), "scripts", "wheel"), dir)
	made, err := filepath.Glob(filepath.Join(dir, "cofferdam-*.whl"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%q %v", made, err)
	}
	return made[0]
}
