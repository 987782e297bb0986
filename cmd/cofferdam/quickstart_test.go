package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// block is one of a page, with the kind behind its fence.
type block struct{ kind, text string }

// blocksOf are those of a page of the documentation.
func blocksOf(t *testing.T, name string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, found := range regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$").FindAllSubmatch(text, -1) {
		all = append(all, block{string(found[1]), string(found[2])})
	}
	return all
}

// reader is somebody who does what a page says, with programs that play those of others.
type reader struct {
	t   *testing.T
	dir string // in which they begin, and are named with in outputs
	env []string
	ids map[string]string // of the page to those that came about
}

func newReader(t *testing.T) *reader {
	t.Helper()
	dir, err := os.MkdirTemp("", "cofferdam-") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, dir: dir, ids: map[string]string{}, env: append(os.Environ(), "HOME="+dir, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))}
	socket := own(func(key, value string) { r.env = append(r.env, key+"="+value) }, dir)
	t.Cleanup(func() {
		_ = client.New(socket).Shutdown(context.Background(), true)
		_ = os.RemoveAll(dir)
	})
	return r
}

// put writes a file below the directory; those in bin can be started.
func (r *reader) put(path, text string) {
	r.t.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// does runs a block as it stands, but for the ids in it, and gives its outputs.
func (r *reader) does(in, text string) (stdout, stderr string) {
	r.t.Helper()
	stdout, stderr, err := r.tries(in, text)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s%s", text, err, stdout, stderr)
	}
	return stdout, stderr
}

func (r *reader) tries(in, text string) (stdout, stderr string, err error) {
	for here, there := range r.ids {
		text = strings.ReplaceAll(text, here, there)
	}
	cmd := exec.CommandContext(r.t.Context(), "bash", "-e", "-c", text)
	cmd.Dir, cmd.Env = filepath.Join(r.dir, in), r.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	return out.String(), said.String(), err
}

// asPage has an output say what the page says: its ids, and /root for the directory.
func (r *reader) asPage(output string) string {
	for here, there := range r.ids {
		output = strings.ReplaceAll(output, there, here)
	}
	return strings.ReplaceAll(output, r.dir, "/root")
}

// TestQuickstartAgents: every command of docs/quickstart-agents.md does what the page says,
// as it stands there, with a daemon of the tests and with an agent that writes what a page of
// a quick start can show.
func TestQuickstartAgents(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	var shell, yaml, shown, console []string
	for _, b := range blocksOf(t, "quickstart-agents.md") {
		switch b.kind {
		case "sh":
			shell = append(shell, b.text)
		case "yaml":
			yaml = append(yaml, b.text)
		case "console":
			console = append(console, b.text)
		case "":
			shown = append(shown, b.text)
		default:
			t.Fatalf("no test runs a block of %q", b.kind)
		}
	}
	if len(shell) != 4 || len(yaml) != 3 || len(shown) != 2 || len(console) != 1 {
		t.Fatalf("the page has %d blocks of commands, %d files, %d outputs and %d of both; say what becomes of each", len(shell), len(yaml), len(shown), len(console))
	}
	r.put("project/a.txt", "one\ntwo\n")
	r.put("project/.git/config", "")
	r.put("project/policy.yaml", "packages: { default: deny }\nnetwork_presets: [ anthropic, claude-account ]\n")
	r.put("project/.devcontainer/devcontainer.json", `{ "image": "x", "forwardPorts": [3000] }`)
	// The agent, whose copy is where the daemon of the tests has it.
	r.put("bin/npx", `#!/bin/sh
[ "$*" = claude ] || exit 1
cd `+r.dir+`/state-workspaces/*/copy || exit 1
printf 'one\nTWO\n' >a.txt
mkdir -p new .git/hooks
echo n >new/file
for i in 1 2 3 4 5; do echo x >.git/hooks/$i; done
`)
	r.put("bin/npm", "#!/bin/sh\necho npm $* >>"+r.dir+"/npm\n")

	r.put("project/agent.yaml", yaml[0])
	r.put("state/build.jsonl", `{"done":{"name":"dev","digest":"sha256:aa","created":"2026-11-20T10:00:00Z","bytes":1900000000}}`+"\n")
	r.does("", shell[0])
	r.secrets(yaml[1])
	_, said := r.does("", shell[1])
	r.ids["run-4f1c07"] = regexp.MustCompile(`run-[0-9a-f]{12}`).FindString(said)
	if diff := cmp.Diff(shown[0], r.asPage(said)); diff != "" {
		t.Errorf("the run's end is not the page's:\n%s", diff)
	}
	r.applies(shell[2])

	r.put("project/cofferdam.yaml", yaml[2])
	r.ids = nil
	if _, said, err := r.tries("project", "cofferdam run"); err == nil || r.asPage(said) != shown[1] {
		t.Errorf("a file that is not allowed: %v %s", err, r.asPage(said))
	}
	out := r.agrees("project", shell[3])
	if !strings.Contains(out, "hooks: { start: [ npm ci ], end: [ npm test ] }") || !strings.Contains(out, "hook: npm test") {
		t.Errorf("%s", out)
	}
	if ran, err := os.ReadFile(filepath.Join(r.dir, "npm")); err != nil || string(ran) != "npm install @anthropic-ai/claude-code\nnpm ci\nnpm test\n" {
		t.Errorf("the hooks: %v %s", err, ran)
	}
	for command := range strings.Lines(console[0]) {
		if out, _ := r.does("project", strings.TrimPrefix(command, "$ ")); !strings.Contains(out, "+ports:") {
			t.Errorf("%s: %s", command, out)
		}
	}
}

// secrets reads the page's configuration as the daemon does, and has that of the tests answer by it.
func (r *reader) secrets(text string) {
	r.t.Helper()
	r.put("checked/config.yaml", text)
	path := filepath.Join(r.dir, "checked", "config.yaml")
	if err := os.Chmod(path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	c, _, err := config.Paths{State: filepath.Dir(path)}.Load()
	if err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	declared, err := c.DeclaredSecrets(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []api.Secret
	for _, one := range declared {
		all = append(all, api.Secret{Name: one.Name, Hosts: one.Hosts})
	}
	answer, err := json.Marshal(all)
	if err != nil {
		r.t.Fatal(err)
	}
	r.put("state/secrets.json", string(answer))
}

// applies runs the ways of bringing a run's work over, each by itself: what one has taken the
// next has no more.
func (r *reader) applies(text string) {
	r.t.Helper()
	project := filepath.Join(r.dir, "project")
	lines := slices.Collect(strings.Lines(text))
	if len(lines) != 5 {
		r.t.Fatalf("the page has %d ways to apply", len(lines))
	}
	if out, _ := r.does("project", lines[0]); !strings.Contains(out, r.ids["run-4f1c07"]) {
		r.t.Errorf("%s: %s", lines[0], out)
	}
	if out, _ := r.does("project", lines[1]); !strings.Contains(out, "modified  a.txt") {
		r.t.Errorf("%s: %s", lines[1], out)
	}
	if out, _ := r.does("project", "cofferdam apply --diff run-4f1c07 .git"); !strings.Contains(out, ".git/hooks/1") {
		r.t.Errorf("the difference in .git: %s", out)
	}
	r.does("project", lines[2])
	if text, err := os.ReadFile(filepath.Join(project, "a.txt")); err != nil || string(text) != "one\nTWO\n" {
		r.t.Errorf("%s: %v %q", lines[2], err, text)
	}
	r.does("project", lines[3])
	if _, err := os.Stat(filepath.Join(project, "new", "file")); err != nil {
		r.t.Errorf("%s: %v", lines[3], err)
	}
	r.does("project", lines[4])
	if out, _ := r.does("project", lines[0]); strings.Contains(out, r.ids["run-4f1c07"]) {
		r.t.Errorf("%s: it is still there: %s", lines[4], out)
	}
}

// agrees runs a block at a terminal, as somebody who says yes to whatever is asked.
func (r *reader) agrees(in, text string) string {
	r.t.Helper()
	for here, there := range r.ids {
		text = strings.ReplaceAll(text, here, there)
	}
	cmd := exec.CommandContext(r.t.Context(), "bash", "-e", "-c", text)
	cmd.Dir, cmd.Env = filepath.Join(r.dir, in), append(r.env, "TERM=vt220")
	tty, err := pty.Start(cmd)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	if _, err := tty.WriteString("y\n"); err != nil {
		r.t.Fatal(err)
	}
	out, _ := io.ReadAll(tty) // a terminal ends with an error
	if err := cmd.Wait(); err != nil {
		r.t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// runsOn starts a command that keeps running, until it is ended or the test is.
func (r *reader) runsOn(text string) (end func()) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "bash", "-c", "exec "+text)
	cmd.Dir, cmd.Env = r.dir, r.env
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	r.t.Cleanup(end)
	return end
}

// TestQuickstartMCP: every command of docs/quickstart-mcp.md does what the page says, as it
// stands there, with a daemon of the tests. Other tests show with real tools what these do.
func TestQuickstartMCP(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	r.env = append(r.env, "CLAUDE_CONFIG_DIR=")
	kinds := map[string][]string{}
	for _, b := range blocksOf(t, "quickstart-mcp.md") {
		kinds[b.kind] = append(kinds[b.kind], b.text)
	}
	if len(kinds) != 4 || len(kinds["yaml"]) != 1 || len(kinds["sh"]) != 3 || len(kinds["diff"]) != 1 || len(kinds["console"]) != 1 {
		t.Fatalf("the page has other blocks; say what becomes of each: %v", kinds)
	}
	r.put("policy.yaml", kinds["yaml"][0])
	r.put("state/build.jsonl", `{"done":{"name":"debian","digest":"sha256:aa","created":"2026-11-20T10:00:00Z","bytes":312000000}}`+"\n")
	r.put("state/asks.json", `[{"package": {"ecosystem": "python", "name": "iniconfig", "version": "2.0.0"}, "upstream": "https://index.example/simple/",
		"files": [{"name": "iniconfig-2.0.0-py3-none-any.whl", "kind": "wheel", "digests": ["sha256:aa"]}], "run": "r1", "sandbox": "sb-1", "user": "ann",
		"policy": "sha256:p", "rule": "packages.default", "reason": "no list names iniconfig", "evidence": {}}]`)

	if out, _ := r.does("", kinds["sh"][0]); !strings.Contains(out, "debian  312 MB") || !strings.Contains(out, "policy.yaml is a valid policy") {
		t.Errorf("%s", out)
	}
	shown := r.agrees("", kinds["sh"][1])
	if !strings.Contains(shown, kinds["diff"][0]) {
		t.Errorf("the difference is not the page's:\n%s", shown)
	}
	written, err := os.ReadFile(filepath.Join(r.dir, ".mcp.json"))
	if want := regexp.MustCompile(`(?m)^\+`).ReplaceAllString(kinds["diff"][0], ""); err != nil || string(written) != want {
		t.Errorf("%v: %s", err, written)
	}
	r.does("", "cofferdam mcp uninstall --yes --project claude") // in the page without --yes

	session := r.runsOn("cofferdam run --run-id r1 -- sleep 1000") // the agent's session, of whose run the page is
	for out := ""; !strings.Contains(out, "r1"); {
		out, _ = r.does("", "cofferdam list --run r1")
		if t.Context().Err() != nil {
			t.Fatal("the session did not begin")
		}
	}
	lines := slices.Collect(strings.Lines(kinds["console"][0]))
	out, _ := r.does("", strings.TrimPrefix(lines[0], "$ "))
	r.ids["ap-zrmnj5"] = regexp.MustCompile(`ap-[0-9a-z]{6}`).FindString(out)
	if answer := r.asPage(r.agrees("", strings.TrimPrefix(lines[1], "$ "))); len(lines) != 3 || !strings.Contains(answer, lines[2]) {
		t.Errorf("the answer is not the page's: %s", answer)
	}

	session() // it would start another daemon
	r.does("", "cofferdam stop --force")
	serve, rest, _ := strings.Cut(kinds["sh"][2], "\n")
	if !strings.Contains(serve, "# keeps running") {
		t.Fatalf("the page's daemon does not keep running: %s", serve)
	}
	r.put("state/life", "") // the daemon of the tests then has the real policies and tokens
	r.runsOn(serve)
	for answers := false; !answers; { // the one before it, which knows no tokens, may still be ending
		_, _, err := r.tries("", "cofferdam token list")
		if answers = err == nil; t.Context().Err() != nil {
			t.Fatal("the daemon did not begin")
		}
	}
	shown = r.agrees("", rest)
	if !regexp.MustCompile(`(?m)^e2b_[0-9a-f]+$`).MatchString(shown) || !strings.Contains(shown, "http://127.0.0.1:7433/mcp") {
		t.Errorf("%s", shown)
	}
}
