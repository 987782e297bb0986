package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// stubDaemon speaks /v1 as the daemon does, with "sandboxes" that are nothing but processes of this
// machine: enough to see the command line at work with real terminals, signals and pipes. It reads
// its answers about packages from files of the state directory (summary.json, records.jsonl, ...),
// and the requests that it got are in requests.jsonl there.
type stubDaemon struct {
	paths config.Paths

	mu       sync.Mutex // guards what follows
	boxes    map[string]*stubBox
	listener net.Listener
	conns    map[net.Conn]bool // attachments
	lock     *os.File          // nil: it was crashed
	made     int               // sandboxes so far
	cuts     int               // so many attachments end with the daemon's death
	built    bool              // the template that is not there at first
}

// unbuilt is a template that is there when somebody has built it.
const (
	unbuilt  = "unbuilt"
	notBuilt = "template unbuilt is not built yet: run cofferdam template build unbuilt"
)

func (d *stubDaemon) hasBuilt() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.built
}

// template tells of one, as template.json has it.
func (d *stubDaemon) template(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") == unbuilt && !d.hasBuilt() {
		refuse(w, http.StatusConflict, notBuilt)
		return
	}
	d.file("template.json")(w, r)
}

// build tells what build.jsonl has.
func (d *stubDaemon) build(w http.ResponseWriter, r *http.Request) {
	d.note("built " + r.PathValue("name"))
	d.mu.Lock()
	d.built = d.built || r.PathValue("name") == unbuilt
	d.mu.Unlock()
	d.file("build.jsonl")(w, r)
}

type stubBox struct {
	view     api.Sandbox
	commands map[string]*stubCommand
	env      map[string]string // of all its commands
}

// serveStub runs `cofferdam serve --background` of the tests.
func serveStub() {
	if err := stub(); err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		os.Exit(1)
	}
}

func stub() error {
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	if err := paths.Make(); err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(paths.State, "broken")); err == nil {
		return errors.New(string(text))
	}
	if survivor, err := (&net.Dialer{}).DialContext(context.Background(), "unix", paths.KeeperSocket()); err == nil {
		// The sandboxes that a daemon finds in its keeper after it was killed: all.
		_, err := io.ReadAll(survivor)
		return err
	}
	d := &stubDaemon{paths: paths, boxes: map[string]*stubBox{}, conns: map[net.Conn]bool{}}
	if text, err := os.ReadFile(filepath.Join(paths.State, "cuts")); err == nil {
		if d.cuts, err = strconv.Atoi(string(text[:1])); err != nil {
			return err
		}
	}
	if err := d.listen(); err != nil {
		return err
	}
	_ = os.Remove(paths.KeeperSocket())
	keeper, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", paths.KeeperSocket())
	if err != nil {
		return err
	}
	for {
		conn, err := keeper.Accept()
		if err != nil {
			return err
		}
		if !d.hasLock() { // else somebody only looks whether there is a keeper, as doctor does
			err = d.listen()
		}
		_ = conn.Close()
		if err != nil {
			return err
		}
	}
}

// hasLock tells whether the daemon has not been crashed.
func (d *stubDaemon) hasLock() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lock != nil
}

func (d *stubDaemon) listen() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lock, err := os.OpenFile(d.paths.DaemonLock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("a daemon runs already: %w", err)
	}
	d.lock = lock
	_ = os.Remove(d.paths.DaemonSocket())
	d.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "unix", d.paths.DaemonSocket())
	if err != nil {
		return err
	}
	handler := d.routes()
	if _, err := os.Stat(filepath.Join(d.paths.State, "life")); err == nil {
		if handler, err = d.life(); err != nil {
			return err
		}
	}
	server := &http.Server{Handler: handler, ConnContext: httpapi.ConnContext}
	go func(l net.Listener) { _ = server.Serve(l) }(d.listener)
	return nil
}

// crash is what kill -9 of the daemon looks like to a client.
func (d *stubDaemon) crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
	for conn := range d.conns {
		_ = conn.Close()
	}
	d.conns = map[net.Conn]bool{}
	_ = d.lock.Close()
	d.lock = nil
}

func (d *stubDaemon) routes() http.Handler {
	mux := http.NewServeMux()
	queue := d.approvals()
	mux.Handle("/v1/approvals", queue)
	mux.Handle("/v1/approvals/", queue)
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/version":                              d.version,
		"POST /v1/shutdown":                            d.shutdown,
		"POST /v1/sandboxes":                           d.create,
		"GET /v1/sandboxes":                            d.list,
		"GET /v1/sandboxes/{id}/holds":                 d.holds,
		"GET /v1/approvals/{id}":                       d.approval(queue),
		"GET /v1/sandboxes/{id}":                       d.get,
		"GET /v1/sandboxes/{id}/usage":                 d.usage,
		"DELETE /v1/sandboxes/{id}":                    d.destroy,
		"POST /v1/sandboxes/{id}/commands":             d.start,
		"GET /v1/sandboxes/{id}/commands/{cmd}/attach": d.attach,
		"POST /v1/calls":                               d.call,
		"GET /v1/runs/{run}/summary":                   d.summary,
		"GET /v1/runs/{run}/suggest":                   d.suggest,
		"GET /v1/audit/records":                        d.file("records.jsonl"),
		"GET /v1/refusals":                             d.file("refusals.json"),
		"GET /v1/alarms":                               d.alarms,
		"GET /v1/templates":                            d.file("templates.json"),
		"GET /v1/secrets":                              d.file("secrets.json"),
		"GET /v1/templates/{name}":                     d.template,
		"POST /v1/templates/{name}":                    d.build,
		"DELETE /v1/templates/{name}":                  d.removeTemplate,
		"GET /v1/advisories":                           d.file("advisories.json"),
		"POST /v1/advisories":                          d.importAdvisories,
		"GET /v1/advisories/check":                     d.file("facts.json"),
		"DELETE /v1/advisories":                        d.removeAdvisories,
		"DELETE /v1/advisories/{label}":                d.removeAdvisories,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d.note(r.Method + " " + r.URL.RequestURI())
			handle(w, r)
		})
	}
	return mux
}

// note keeps a line about a request, for the scripts.
func (d *stubDaemon) note(line string) {
	f, err := os.OpenFile(filepath.Join(d.paths.State, "requests"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintln(f, line)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, detail string) {
	answer(w, status, api.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

func (d *stubDaemon) version(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, api.Version{Version: "stub", PID: os.Getpid(), State: "STATE"})
}

func (d *stubDaemon) shutdown(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.boxes) > 0 && r.URL.Query().Get("force") == "" {
		refuse(w, http.StatusConflict, fmt.Sprintf("%d sandboxes are alive", len(d.boxes)))
		return
	}
	for _, box := range d.boxes {
		box.end()
	}
	w.WriteHeader(http.StatusAccepted)
	_ = http.NewResponseController(w).Flush()
	_ = d.listener.Close()
	go os.Exit(0)
}

func (d *stubDaemon) create(w http.ResponseWriter, r *http.Request) {
	var req api.CreateSandbox
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	line, _ := json.Marshal(req)
	d.note(string(line))
	switch {
	case req.Task == "older" && req.Lifetime.LeaseSeconds != 0: // as one that does not know it
		refuse(w, http.StatusBadRequest, `the request's body has the unknown field "lifetime/lease_seconds"; known fields: ttl_seconds`)
		return
	case req.Template == "nosuch":
		refuse(w, http.StatusNotFound, `there is no template "nosuch"; there are debian and host`)
		return
	case req.Template == unbuilt && !d.hasBuilt():
		refuse(w, http.StatusConflict, notBuilt)
		return
	case req.Isolation == "broken":
		refuse(w, http.StatusInternalServerError, "something inside failed: \x1b[31mred")
		return
	case req.Isolation == "slow":
		<-r.Context().Done()
		d.note("creation given up")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	box := &stubBox{commands: map[string]*stubCommand{}, env: req.Env, view: api.Sandbox{
		ID: "sb-" + strconv.Itoa(d.made), Run: req.Run, State: "running", Task: req.Task, Template: "host", Engine: "stub",
	}}
	if req.Run == "" {
		box.view.Run = "run-1"
	}
	if req.Task == "notes" {
		box.view.Notes = []string{"environment.mode (line 3): persistent environments are not kept yet; it stays closed"}
		box.view.Missing = []string{"disk-cap: needs a file system of its own"}
	}
	d.boxes[box.view.ID] = box
	answer(w, http.StatusCreated, box.view)
}

func (d *stubDaemon) list(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	boxes := []api.Sandbox{}
	for _, box := range d.boxes {
		boxes = append(boxes, box.view)
	}
	slices.SortFunc(boxes, func(a, b api.Sandbox) int { return a.Created.Compare(b.Created) })
	answer(w, http.StatusOK, api.SandboxPage{Sandboxes: boxes})
}

// get knows why a sandbox ended from the second question on, and of one whose
// task is "forgotten" nothing at all any more.
func (d *stubDaemon) get(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	box, ok := d.boxes[r.PathValue("id")]
	if !ok || box.view.Task == "forgotten" {
		refuse(w, http.StatusNotFound, "there is no such sandbox")
		return
	}
	view := box.view
	for id, c := range box.commands {
		view.Commands = append(view.Commands, api.Command{ID: id, Argv: c.cmd.Args, Terminal: c.tty != nil, Output: c.written()})
	}
	answer(w, http.StatusOK, view)
	if c, ok := box.commands["c1"]; ok && c.cmd.Args[0] == "eat-all-memory" {
		box.view.Ended = "out of memory"
	}
}

// usage knows whose process the kernel took for the memory.
func (d *stubDaemon) usage(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var usage api.Usage
	if box, ok := d.boxes[r.PathValue("id")]; ok {
		if c, ok := box.commands["c1"]; ok && c.cmd.Args[0] == "lose-to-memory" {
			usage.MemoryKills = 1
		}
	}
	answer(w, http.StatusOK, usage)
}

func (d *stubDaemon) destroy(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	box, ok := d.boxes[r.PathValue("id")]
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no sandbox %q", r.PathValue("id")))
		return
	}
	box.end()
	delete(d.boxes, box.view.ID)
	w.WriteHeader(http.StatusNoContent)
}

func (b *stubBox) end() {
	for _, c := range b.commands {
		c.kill()
	}
}

func (d *stubDaemon) command(r *http.Request) (*stubCommand, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	box, ok := d.boxes[r.PathValue("id")]
	if !ok || box.view.Task == "vanish" {
		return nil, false
	}
	c, ok := box.commands[r.PathValue("cmd")]
	return c, ok
}

func (d *stubDaemon) start(w http.ResponseWriter, r *http.Request) {
	var req api.StartCommand
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	line, _ := json.Marshal(req)
	d.note(string(line))
	if req.Argv[0] == "forbidden" {
		refuse(w, http.StatusForbidden, "the rule no-forbidden refuses the command")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	box, ok := d.boxes[r.PathValue("id")]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such sandbox")
		return
	}
	env := maps.Clone(box.env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, req.Env)
	req.Env = env
	c := startStub(req)
	box.commands["c1"] = c
	answer(w, http.StatusCreated, api.Command{ID: "c1", Argv: req.Argv})
}

func (d *stubDaemon) attach(w http.ResponseWriter, r *http.Request) {
	c, ok := d.command(r)
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such sandbox")
		return
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	d.mu.Lock()
	d.conns[conn] = true
	cut := d.cuts > 0
	d.cuts = max(d.cuts-1, 0)
	d.mu.Unlock()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: cofferdam-frames\r\n\r\n")
	go c.listen(bufio.NewReader(buffered))
	c.tell(conn, offset, func(sent int) bool {
		if cut && sent > 0 {
			d.crash()
			return false
		}
		return true
	})
}

// file answers with a file of the state directory.
func (d *stubDaemon) file(name string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := os.ReadFile(filepath.Join(d.paths.State, name))
		if err != nil {
			refuse(w, http.StatusNotFound, "there is no "+name)
			return
		}
		_, _ = w.Write(text)
	}
}

// alarms tells of those in alarms.json who asks for what came since; without that file it knows
// nothing of them, as an older daemon.
func (d *stubDaemon) alarms(w http.ResponseWriter, r *http.Request) {
	if _, err := os.Stat(filepath.Join(d.paths.State, "alarms.json")); err == nil && r.URL.Query().Get("after") == "" {
		answer(w, http.StatusOK, api.Alarms{Run: "run-1", Alarms: []api.Alarm{}, Next: "7"})
		return
	}
	d.file("alarms.json")(w, r)
}

func (d *stubDaemon) summary(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("run") == "nosuch" {
		refuse(w, http.StatusNotFound, `there is no run "nosuch" on record`)
		return
	}
	text, err := os.ReadFile(filepath.Join(d.paths.State, "summary.json"))
	if err != nil {
		text = []byte(`{}`)
	}
	var s api.RunSummary
	if err := json.Unmarshal(text, &s); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.Run = r.PathValue("run")
	answer(w, http.StatusOK, s)
}

// suggest makes a suggestion of the files policy.yaml and suggested.yaml.
func (d *stubDaemon) suggest(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("run") == "nosuch" {
		refuse(w, http.StatusNotFound, `there is no run "nosuch" on record`)
		return
	}
	document, _ := os.ReadFile(filepath.Join(d.paths.State, "policy.yaml"))
	suggested, _ := os.ReadFile(filepath.Join(d.paths.State, "suggested.yaml"))
	source, _ := os.ReadFile(filepath.Join(d.paths.State, "source"))
	answer(w, http.StatusOK, api.Suggestion{
		Source: string(source), Document: document, Suggested: suggested,
		Diff: "--- policy.yaml\n+++ policy.yaml\n-" + string(document) + "+" + string(suggested),
	})
}

func (d *stubDaemon) importAdvisories(w http.ResponseWriter, r *http.Request) {
	var req api.ImportAdvisories
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	line, _ := json.Marshal(req)
	d.note(string(line))
	d.file("import.jsonl")(w, r)
}

func (d *stubDaemon) removeAdvisories(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("label") == "other" {
		refuse(w, http.StatusNotFound, "nothing was imported as \"other\"")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (d *stubDaemon) removeTemplate(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != "debian" {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no template %q", r.PathValue("name")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
