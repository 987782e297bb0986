package isolation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

const (
	registryHost = "index.example"
	listedHost   = "api.example"
	longestWait  = 60 * time.Second
	// registryDelay is how long the registry takes to answer: what a cache spares.
	registryDelay = 10 * time.Millisecond
)

// law is a policy, by its name; each has a sender and a receiver of tokens of their own.
type law string

const (
	allowing law = "allowing" // every package, and the listed host
	holding  law = "holding"  // every package waits for a person
	denying  law = "denying"  // nothing
	calling  law = "calling"  // calls without a sandbox; every token has it beside its own
)

var laws = map[law]string{
	allowing: "name: allowing\npackages: { default: allow }\nnetwork_allowlist: [" + listedHost + "]\ntool_allowlist: [echo]\n",
	holding:  "name: holding\npackages: { default: hold, on_hold: fail }\n",
	denying:  "name: denying\npackages: { default: deny }\n",
	calling:  "name: calling\nisolation: wasm\n",
}

// house is a daemon of a test's own, with the registry and the host that its sandboxes ask.
type house struct {
	t              *testing.T
	state, runtime string
	binaries       string
	admin          *client.Client
	url            string
	daemon         *exec.Cmd
	upstream       *upstream
	talkerPath     string
	pairs          map[law]*pair
}

// root is the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// openHouse starts the daemon of a folder of programs; it ends with the test.
func openHouse(t *testing.T, binaries string) *house {
	t.Helper()
	repository := root(t)
	templates := filepath.Join(repository, ".cofferdam", "templates")
	if _, err := os.Stat(filepath.Join(templates, "debian")); err != nil {
		t.Fatalf("the debian template is not there: run make template first (%v)", err)
	}
	runtime, err := os.MkdirTemp("", "cfi") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	h := &house{t: t, state: filepath.Join(t.TempDir(), "state"), runtime: runtime, binaries: binaries, upstream: openUpstream(t), pairs: map[law]*pair{}}
	h.talkerPath = buildProgram(t, filepath.Join(runtime, "talker"), "./test/isolation/talker")
	if err := os.Mkdir(h.state, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(templates, filepath.Join(h.state, "templates")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.state, "config.yaml"), []byte(h.upstream.config(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.startDaemon()
	for name, document := range laws {
		if _, err := h.admin.PutPolicy(t.Context(), string(name), api.PutPolicy{Document: []byte(document)}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// buildProgram builds a package of the repository, with flags if there are some.
func buildProgram(t *testing.T, to, pkg string, flags ...string) string {
	t.Helper()
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", to}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return to
}

func (h *house) environ() []string {
	return append(os.Environ(), "COFFERDAM_STATE="+h.state, "COFFERDAM_RUNTIME="+h.runtime)
}

func (h *house) logPath() string { return filepath.Join(h.runtime, "daemon.log") }

func (h *house) startDaemon() {
	h.t.Helper()
	log, err := os.OpenFile(h.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.daemon = exec.Command(filepath.Join(h.binaries, "cofferdam"), "serve")
	h.daemon.Env, h.daemon.Stdout, h.daemon.Stderr = h.environ(), log, log
	if err := h.daemon.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.admin = client.New(filepath.Join(h.runtime, "daemon.sock"))
	h.t.Cleanup(h.stopDaemon)
	h.awaitDaemon()
}

// awaitDaemon waits until the daemon answers, and learns its address.
func (h *house) awaitDaemon() {
	h.t.Helper()
	await(h.t, "the daemon", func() bool {
		version, err := h.admin.Version(h.t.Context())
		h.url = version.URL
		return err == nil && version.PID == h.daemon.Process.Pid
	})
}

// await waits for a condition.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for %s", longestWait, what)
		case <-tick.C:
		}
	}
}

func (h *house) stopDaemon() {
	if h.daemon.ProcessState != nil {
		return // it was ended, and another one came
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	if err := h.admin.Shutdown(ctx, true); err != nil {
		h.t.Errorf("stop the daemon: %v", err)
		_ = h.daemon.Process.Signal(syscall.SIGTERM)
	}
	_ = h.daemon.Wait()
	if h.t.Failed() {
		said, _ := os.ReadFile(h.logPath())
		h.t.Logf("the daemon's log:\n%s", said)
	}
}

// gateways are the daemon's processes that speak with sandboxes.
func (h *house) gateways() (pids []string) {
	h.t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", h.daemon.Process.Pid))
	all, others := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", h.daemon.Process.Pid))
	if err != nil || others != nil {
		h.t.Fatal(err, others)
	}
	for _, path := range all { // any thread may have started it
		more, _ := os.ReadFile(path) // a thread that has ended has none
		children = append(append(children, ' '), more...)
	}
	for pid := range strings.FieldsSeq(string(children)) {
		argv, _ := os.ReadFile("/proc/" + pid + "/cmdline") // one that has ended is none
		if words := strings.Split(string(argv), "\x00"); len(words) > 1 && words[1] == "gateway" && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killDaemon kills the daemon with no warning, sees its gateway end with it, and starts it
// again.
func (h *house) killDaemon() {
	h.t.Helper()
	gateways := h.gateways()
	if len(gateways) == 0 {
		h.t.Fatal("INCONCLUSIVE: the daemon has no gateway")
	}
	defer func() {
		for _, pid := range h.gateways() {
			if slices.Contains(gateways, pid) {
				h.t.Errorf("INCONCLUSIVE: the gateway %s is the one from before", pid)
			}
		}
		if len(h.gateways()) == 0 {
			h.t.Error("INCONCLUSIVE: the daemon that came back has no gateway")
		}
	}()
	if err := h.daemon.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	_ = h.daemon.Wait() // it was killed
	h.startDaemon()
	for _, p := range h.pairs {
		for _, n := range []*tenant{p.sender, p.receiver} {
			n.connect()
			n.startTalker(h.t.Context())
		}
	}
}

// upstream is the registry, with every package that anybody asks for but those whose names
// begin with "missing", and the listed host.
type upstream struct {
	liar *liar.Server
	t    *testing.T

	mu    sync.Mutex // guards what follows
	asked map[string]int
	board map[string]string // of the listed host, which keeps what anybody writes
	wrote []string          // requests of the registry that are no questions
}

func openUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{t: t, asked: map[string]int{}, board: map[string]string{}}
	u.liar = liar.New(t, registryHost, listedHost)
	u.liar.Answer(func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { u.serve(w, r) })
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.asked[r.URL.Path]++
	if !strings.HasPrefix(r.Host, listedHost) && r.Method != http.MethodGet {
		u.wrote = append(u.wrote, r.Method+" "+r.URL.Path)
	}
	u.mu.Unlock()
	time.Sleep(registryDelay) // the registry is that far away
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")
	if file, isFile := strings.CutPrefix(r.URL.Path, "/files/"); isFile {
		name, _, _ = strings.Cut(file, "-")
		_, _ = w.Write(pypitest.Wheel(u.t, name, "1.0").Bytes)
		return
	}
	switch {
	case strings.HasPrefix(r.Host, listedHost):
		u.serveBoard(w, r)
	case strings.HasPrefix(name, "missing") || strings.Contains(name, "/"):
		http.NotFound(w, r)
	default:
		dist := pypitest.Wheel(u.t, name, "1.0")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><html><body><a href="/files/%s#sha256=%s">%s</a></body></html>`, dist.File, dist.Digest(), dist.File)
	}
}

// serveBoard serves as the listed host: what is put there can be got.
func (u *upstream) serveBoard(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a client that goes has written less
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Method == http.MethodPut {
		u.board[r.URL.Path] = string(body)
	}
	fmt.Fprintln(w, "hello", u.board[r.URL.Path])
}

// written is what was asked of the registry that is no question.
func (u *upstream) written() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.wrote)
}

// askedBelow is how often the upstream was asked for paths that begin so.
func (u *upstream) askedBelow(path string) (count int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for asked, n := range u.asked {
		if strings.HasPrefix(asked, path) {
			count += n
		}
	}
	return count
}

// config is that of a daemon whose upstream this is.
func (u *upstream) config(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, u.liar.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	port := strings.TrimPrefix(u.liar.Host(registryHost), registryHost+":")
	return fmt.Sprintf(`upstreams:
  - { ecosystem: python, index: "https://%s/simple/", address: "127.0.0.1:%s", ca_file: %q }
probe_projects: [known]
default_template: debian
listen: { address: "127.0.0.1:0", requests_per_second: 1000, burst: 500 }
network:
  hosts:
    - { name: %s, port: 443, address: "127.0.0.1:%s", ca_file: %q }
tools:
  - { name: echo, description: "Says what it is told.", command: [/bin/cat], user: nobody }
`, registryHost, port, ca, listedHost, port, ca)
}
