package sdk

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// policiesOfTest are those that the programs may choose.
func policiesOfTest() map[string]string {
	return map[string]string{
		"list": "name: list\npackages: { default: deny, system: allow }\nallowed_packages:\n  python:\n    - name: iniconfig\n",
		"ask":  "name: ask\npackages: { default: hold, on_hold: freeze }\n",
	}
}

// daemon is a real one, with real sandboxes; it ends with the test.
type daemon struct {
	dir, binary string
	env         []string // of programs, to find it
	client      *client.Client
	cmd         *exec.Cmd
}

// startDaemon runs the built binary with the repository's template.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	return startDaemonOf(t, "debian", policiesOfTest())
}

// startDaemonOf does what startDaemon does, with another template and other policies, and with more lines in
// its configuration.
func startDaemonOf(t *testing.T, template string, policies map[string]string, more ...string) *daemon {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin := os.Getenv("COFFERDAM_BIN")
	if bin == "" {
		bin = filepath.Join(root, "bin")
	}
	templates := filepath.Join(root, ".cofferdam", "templates")
	if _, err := os.Stat(filepath.Join(templates, template)); err != nil {
		t.Fatalf("run `make template` first: %v", err)
	}
	d := &daemon{binary: filepath.Join(bin, "cofferdam")}
	if d.dir, err = os.MkdirTemp("", "cfs"); err != nil { //nolint:usetesting // a socket's path must be short
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d.dir) })
	state := filepath.Join(d.dir, "s")
	if err := os.Chmod(d.dir, 0o711); err != nil { // the gateway, another user, passes through
		t.Fatal(err)
	}
	if err := os.Mkdir(state, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(templates, filepath.Join(state, "templates")); err != nil {
		t.Fatal(err)
	}
	pooled := slices.Min(slices.Collect(maps.Keys(policies)))
	if template == "debian" {
		pooled = "list"
	}
	config := fmt.Sprintf("default_template: %s\nfreeze: { after: 1s }\nlisten: { address: %q }\npool: [ { template: %s, policy: %s, size: 1 } ]\n", template, freeAddress(t), template, pooled)
	config += strings.Join(append(more, ""), "\n")
	if err := os.WriteFile(filepath.Join(state, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(t, state)
	d.enroll(t, policies)
	return d
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (d *daemon) run(t *testing.T, state string) {
	t.Helper()
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.env = append(os.Environ(), "COFFERDAM_STATE="+state, "COFFERDAM_RUNTIME="+filepath.Join(d.dir, "r"), "COFFERDAM="+d.binary)
	d.cmd = exec.Command(d.binary, "serve")
	d.cmd.Env, d.cmd.Stdout, d.cmd.Stderr = d.env, log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.client = client.New(filepath.Join(d.dir, "r", "daemon.sock"))
	t.Cleanup(func() { d.stop(t) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := d.client.Version(ctx); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the daemon did not come up:\n%s", d.log())
		}
	}
}

func (d *daemon) log() []byte {
	text, err := os.ReadFile(filepath.Join(d.dir, "log"))
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

func (d *daemon) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.client.Shutdown(ctx, true); err != nil {
		t.Errorf("stop the daemon: %v", err)
		_ = d.cmd.Process.Kill()
	}
	_ = d.cmd.Wait()
	if t.Failed() {
		t.Logf("the daemon's log:\n%s", d.log())
	}
}

// enroll makes the policies and a token, as an operator would.
func (d *daemon) enroll(t *testing.T, policies map[string]string) {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		text := policies[name]
		if _, err := d.client.PutPolicy(t.Context(), name, api.PutPolicy{Document: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	made, err := d.client.MakeToken(t.Context(), api.MakeToken{Name: "sdk", Policies: names})
	if err != nil {
		t.Fatal(err)
	}
	version, err := d.client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "E2B_API_URL="+version.URL, "E2B_SANDBOX_URL="+version.URL, "E2B_API_KEY="+made.Secret)
}

// TestDaemon: the programs of the other tests, and more, with sandboxes that are
// real and packages that come from the machine's own registry. The programs of other
// frameworks' users are there with COFFERDAM_LONG: it takes minutes to install those.
func TestDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	latest := python(t, "latest")
	t.Run("what only real sandboxes do", func(t *testing.T) { run(t, d.env, 11, latest, "real.py") })
	for _, version := range pythonVersions() {
		t.Run("python "+version, func(t *testing.T) { run(t, d.env, 12, python(t, version), "data.py") })
	}
	for _, version := range javaScriptVersions() {
		t.Run("javascript "+version, func(t *testing.T) {
			run(t, append(d.env, "SDK_DIR="+javaScript(t, version)), 12, "node", "data.mjs")
		})
	}
	t.Run("pauses and logs, python", func(t *testing.T) {
		if !long() {
			t.Skip("set COFFERDAM_LONG=1 for it: the SDK for JavaScript pauses always")
		}
		run(t, d.env, 5, latest, "pauses.py")
	})
	t.Run("pauses and logs, javascript", func(t *testing.T) {
		env, least := append(d.env, "SDK_DIR="+javaScript(t, "latest")), 3
		if long() {
			env, least = append(env, "CLI="+commandLine(t)), 4
		}
		run(t, env, least, "node", "pauses.mjs")
	})
	for _, framework := range []struct {
		name, program string
		least         int
	}{{"openai-agents", "openaiagents.py", 3}, {"smolagents", "smol.py", 1}} {
		t.Run(framework.name, func(t *testing.T) {
			if !long() {
				t.Skip("set COFFERDAM_LONG=1 for it")
			}
			run(t, d.env, framework.least, pythonWith(t, framework.name), framework.program)
		})
	}
	d.leavesNothing(t)
}

// pythonWith installs a framework beside the newest SDK.
func pythonWith(t *testing.T, framework string) string {
	t.Helper()
	return pythonOf(t, framework, "e2b", framework)
}

// pythonOf has packages in an environment of its own.
func pythonOf(t *testing.T, name string, packages ...string) string {
	t.Helper()
	dir := installed(t, "python", name, func(dir string) *exec.Cmd {
		args := append([]string{"-c", `python3 -m venv "$1" && shift && "$0" install --quiet --disable-pip-version-check "$@"`, filepath.Join(dir, "venv", "bin", "pip"), filepath.Join(dir, "venv")}, packages...)
		return exec.CommandContext(t.Context(), "sh", args...)
	})
	return filepath.Join(dir, "venv", "bin", "python")
}

// leavesNothing: what the programs made they have ended, and of what was
// installed everything is accounted for, and on the allowlist but for what was decided
// otherwise.
func (d *daemon) leavesNothing(t *testing.T, otherwise ...string) {
	t.Helper()
	all, err := d.client.Sandboxes(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("%d sandboxes are left: %+v, %v", len(all), all, err)
	}
	for _, name := range []string{"off-allowlist", "unaccounted"} {
		cmd := exec.CommandContext(t.Context(), d.binary, "audit", "report", name, "--json")
		cmd.Env = d.env
		out, err := cmd.Output()
		answered := regexp.MustCompile(`"resolved by": *"([^"]*)"`).FindAllSubmatch(out, -1)
		known := len(answered) > 0 && name == "off-allowlist" && !slices.ContainsFunc(answered, func(by [][]byte) bool { return !slices.Contains(otherwise, string(by[1])) })
		if err != nil || !known && !bytes.Contains(out, []byte(`"rows":[]`)) && !strings.Contains(string(out), `"rows": []`) {
			t.Errorf("the report %s: %s, %v", name, out, err)
		}
	}
	if fmt.Sprint(d.cmd.ProcessState) != "<nil>" {
		t.Errorf("the daemon ended: %v", d.cmd.ProcessState)
	}
}
