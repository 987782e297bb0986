package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

// openEach is how many connections, calls of a tool, commands, calls of code and files a round opens;
// there are fewer cells and builds, which are processes of their own.
const (
	openEach     = 12
	openLanguage = 2 // contexts of each language, with a cell
	openBuilds   = 2
	openSlowly   = 5   // of both where there is nothing else
	opened       = 200 // of each kind, with COFFERDAM_LONG
)

// openInside opens connections to a host and calls of a tool, which nobody answers, and says
// a line when all are under way.
const openInside = `
import os, socket, ssl, subprocess, sys, threading
HOST, EACH = %q, %d
def ask():
    context = ssl.create_default_context()
    with context.wrap_socket(socket.create_connection((HOST, 443), 60), server_hostname=HOST) as s:
        s.sendall(b"POST /slow HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\nContent-Length: 0\r\n\r\n")
        s.settimeout(None)
        s.recv(1)
def call(): subprocess.run(["cofferdam-tool", "waits", "{}"], stderr=subprocess.DEVNULL)
all = [threading.Thread(target=one) for one in [ask, call] for _ in range(EACH)]
for one in all: one.start()
print("begun", flush=True)
for one in all: one.join()
`

// Both ways in which a host is listed: the gateway passes its bytes on, or ends its TLS.
const (
	openPassing = "tool_allowlist: [waits]\nnetwork_allowlist: [ " + theirHost + " ]\n"
	openEnding  = "tool_allowlist: [waits]\nnetwork_allowlist:\n  - { host: " + theirHost + ", methods: [POST], paths: [\"/slow\"] }\n"
)

// death ends something while things are open.
type death struct {
	name  string
	point string // of the daemon; "": it is killed by act, or lives
	act   func(t *testing.T, in *installation, end func())
	slow  bool // only cells and builds are opened, whose records come after all others
}

func killRole(role string) func(*testing.T, *installation, func()) {
	return func(t *testing.T, in *installation, _ func()) {
		t.Helper()
		pid := in.roles(t)[role]
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil || pid == 0 {
			t.Fatalf("kill the %s, %d: %v", role, pid, err)
		}
	}
}

// deaths are who dies, round after round: with COFFERDAM_LONG the daemon at each of the
// records that a round makes, before it and after it.
func deaths() []death {
	all := []death{
		{name: "the gateway", act: killRole("gateway")},
		{name: "the daemon at a record", point: fmt.Sprint(faultpoint.RecordWritten, ":", 3*openEach)},
	}
	if os.Getenv("COFFERDAM_LONG") == "" {
		return all
	}
	all = append(all,
		death{name: "the clients", act: func(_ *testing.T, _ *installation, end func()) { end() }},
		death{name: "the keeper", act: killRole("keeper")},
		death{name: "the daemon", act: func(t *testing.T, in *installation, _ func()) { t.Helper(); in.kill(t) }},
	)
	for n := 1; n <= 6*openEach; n += 2 {
		for i, point := range []faultpoint.Point{faultpoint.RecordAsked, faultpoint.RecordWritten} {
			all = append(all,
				death{name: fmt.Sprintf("the daemon at %s %d", point, n+i), point: fmt.Sprint(point, ":", n+i)},
				death{name: fmt.Sprintf("the daemon at %s %d of cells and builds", point, n+i), point: fmt.Sprint(point, ":", n+i), slow: true})
		}
	}
	return all
}

// TestAllThatBeginsEndsOnRecord: connections, calls of tools, commands, cells, calls of code, files
// and builds are under way, or are just being made, when the gateway dies, or the daemon at one of
// their very records, or with COFFERDAM_LONG whoever else. When their sandboxes are gone the log
// has exactly one end for each begin. It is read here by its lines alone.
func TestAllThatBeginsEndsOnRecord(t *testing.T) {
	t.Parallel()
	user := ""
	if os.Geteuid() == 0 {
		user = ", user: nobody"
	}
	in := start(t, mutedHost(t)+"default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n"+
		"tools: [ { name: waits, command: [/bin/sleep, \"600\"], timeout: 15m"+user+" } ]\n")
	t.Cleanup(func() { in.revive(t) }) // before it is stopped
	counts := map[string]int{}
	for all, i := deaths(), 0; i < len(all) || os.Getenv("COFFERDAM_LONG") != "" && least(counts) < opened && i < 3*len(all); i++ {
		d := all[i%len(all)]
		in.openAndDie(t, d, []string{openPassing, openEnding}[i%2])
		counts = in.wantEnds(t, d.name)
		if t.Failed() {
			return // what is open of one round would be found in all others
		}
	}
	t.Log("begun and ended:", counts)
	wanted := 1
	if os.Getenv("COFFERDAM_LONG") != "" {
		wanted = opened
	}
	for _, kind := range beginKinds() {
		if counts[kind] < wanted {
			t.Errorf("INCONCLUSIVE: there are %d begins of a %s, and not %d", counts[kind], kind, wanted)
		}
	}
}

func least(counts map[string]int) int {
	fewest := opened
	for _, kind := range beginKinds() {
		fewest = min(fewest, counts[kind])
	}
	return fewest
}

// openAndDie plays a round: things are opened in sandboxes of their own, something dies, and the
// sandboxes are destroyed by a daemon that lives.
func (in *installation) openAndDie(t *testing.T, d death, policy string) {
	t.Helper()
	if d.point != "" {
		in.kill(t)
		in.launch(t)
	}
	in.answers(t)
	sb := in.create("debian", policy)
	o := &opening{in: in, sandbox: sb.ID}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(t.Context())
	defer o.end()
	o.prepareCells(t)
	var ended chan struct{}
	if d.point != "" { // what begins is counted, and not what a sandbox takes
		in.kill(t)
		in.launch(t, faultpoint.Variable+"="+d.point)
		ended = in.watchEnd()
		until(t, "the daemon answers or has died", func() bool {
			version, err := in.Client.Version(ctx)
			if err == nil {
				o.cells.url = version.URL // at another port than before
			}
			return err == nil || isClosed(ended) // its own start makes records, too
		})
	}
	o.openAll(ctx, t, d.slow)
	switch {
	case d.act != nil:
		var open map[string]int
		ctx, cancel := context.WithTimeout(ctx, longestWait)
		defer cancel()
		if poll(ctx, func() bool {
			open = in.openByKind(t)
			return open["connection"] > 0 && open["call of a tool"] > 0 && open["command"] > openEach && open["cell"] > 0 && open["build"] > 0 && open["file"] >= openEach
		}) != nil {
			t.Fatalf("before the death of %s only these have begun: %v\n%s", d.name, open, in.log())
		}
		d.act(t, in, o.end)
	default:
		in.awaitDeath(t, d.name, ended)
	}
	if in.Daemon.ProcessState != nil {
		in.launch(t)
	}
	in.answers(t)
	in.destroyAll(t)
}

// destroyAll destroys sandboxes of which some are being reaped, and waits until there are none.
func (in *installation) destroyAll(t *testing.T) {
	t.Helper()
	until(t, "no sandbox is left", func() bool {
		all, err := in.Client.Sandboxes(t.Context())
		must(t, err)
		for _, sb := range all {
			if err := in.Client.DestroySandbox(t.Context(), sb.ID); err != nil && client.StatusOf(err) != http.StatusNotFound {
				t.Error(err)
			}
		}
		return len(all) == 0
	})
}

// watchEnd returns a channel that is closed when the daemon has ended.
func (in *installation) watchEnd() chan struct{} {
	ended, daemon := make(chan struct{}), in.Daemon
	go func() { defer close(ended); daemon.Wait() }()
	return ended
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitDeath waits for a daemon that dies at a record. One which came by fewer is killed.
func (in *installation) awaitDeath(t *testing.T, name string, ended chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(20 * time.Second): // no test of how soon: all that was to begin has by now
		t.Logf("%s: it made fewer records", name)
		in.Daemon.Process.Kill()
		<-ended
	}
}

// opening is what a round has open.
type opening struct {
	in      *installation
	sandbox string // of connections, calls of tools and commands
	cells   cellCaller
	key     string // of the token whose cells and builds they are
	cancel  context.CancelFunc
	calls   sync.WaitGroup // what waits for the daemon
}

// end cuts off all clients, and waits for them.
func (o *opening) end() {
	o.cancel()
	o.calls.Wait()
}

// prepareCells makes the sandbox that cells run in.
func (o *opening) prepareCells(t *testing.T) {
	t.Helper()
	_, o.cells.url, o.key = o.in.clientOf(t, api.MakeToken{Name: "cells-" + o.sandbox})
	var made struct {
		SandboxID       string `json:"sandboxID"`
		EnvdAccessToken string `json:"envdAccessToken"`
	}
	if err := o.post(t.Context(), o.cells.url+"/sandboxes", `{"templateID":"debian","timeout":600,"secure":true}`, &made); err != nil {
		t.Fatal(err)
	}
	o.cells.sandbox, o.cells.access = made.SandboxID, made.EnvdAccessToken
}

// post asks as an SDK does.
func (o *opening) post(ctx context.Context, url, body string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	headers := map[string]string{"Content-Type": "application/json", "X-Api-Key": o.key}
	if strings.HasSuffix(url, "/contexts") || strings.HasSuffix(url, "/execute") {
		maps.Copy(headers, map[string]string{"E2b-Sandbox-Id": o.cells.sandbox, "E2b-Sandbox-Port": "49999", "X-Access-Token": o.cells.access})
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	if out == nil { // a cell's answer is there when it has ended
		_, err := io.Copy(io.Discard, answer.Body)
		return err
	}
	return json.NewDecoder(answer.Body).Decode(out)
}

// openAll opens all at one time. Errors are of a daemon that dies: the log tells what began.
func (o *opening) openAll(ctx context.Context, t *testing.T, slow bool) {
	t.Helper()
	cells, builds := openLanguage, openBuilds
	if slow {
		cells, builds = openSlowly, openSlowly
	}
	open := func(count int, one func(i int)) {
		for i := range count {
			o.calls.Go(func() { one(i) })
		}
	}
	for language, code := range map[string]string{"bash": "sleep 600", "javascript": "await new Promise((r) => setTimeout(r, 600000))"} {
		open(cells, func(int) { _ = o.cell(ctx, language, code) })
	}
	open(builds, func(i int) { _ = o.build(ctx, i) })
	if slow {
		return
	}
	c := o.in.Client
	start := func(argv ...string) { _, _ = c.StartCommand(ctx, o.sandbox, api.StartCommand{Argv: argv}) }
	open(1, func(int) { start("python3", "-c", fmt.Sprintf(openInside, theirHost, openEach)) })
	open(openEach, func(int) { start("sleep", "600") })
	open(openEach, func(i int) { o.file(ctx, i) })
	open(openEach, func(int) {
		_, _ = client.Call(ctx, c, api.Call{Code: "while (true) {}", Policy: api.Policy{Document: []byte(nothingAllowed)}})
	})
}

// file moves a file that is not there, which ends at once, and then writes one whose content never
// comes, or reads one that it does not take.
func (o *opening) file(ctx context.Context, i int) {
	c := o.in.Client
	_, _ = c.MoveFile(ctx, o.sandbox, client.File{Path: "nothing"}, "nowhere")
	if i%2 == 0 {
		content, write := io.Pipe()
		defer context.AfterFunc(ctx, func() { _ = write.CloseWithError(ctx.Err()) })()
		_, _ = c.WriteFile(ctx, o.sandbox, client.File{Path: fmt.Sprint("file-", i)}, content)
		return
	}
	content, err := c.ReadFile(ctx, o.sandbox, client.File{Path: "/usr/bin/python3"})
	if err != nil {
		return
	}
	<-ctx.Done()
	_ = content.Close()
}

// cell runs a cell in a context of its own.
func (o *opening) cell(ctx context.Context, language, code string) error {
	var made struct {
		ID string `json:"id"`
	}
	if err := o.post(ctx, o.cells.url+"/contexts", fmt.Sprintf(`{"language":%q}`, language), &made); err != nil {
		return err
	}
	var answer bytes.Buffer
	if err := json.NewEncoder(&answer).Encode(map[string]string{"code": code, "context_id": made.ID}); err != nil {
		return err
	}
	return o.post(ctx, o.cells.url+"/execute", answer.String(), nil)
}

// build builds a template that never comes to its end.
func (o *opening) build(ctx context.Context, i int) error {
	var made struct {
		TemplateID string `json:"templateID"`
		BuildID    string `json:"buildID"`
	}
	if err := o.post(ctx, o.cells.url+"/v3/templates", fmt.Sprintf(`{"name":"t%d-%s"}`, i, strings.ToLower(o.sandbox)), &made); err != nil {
		return err
	}
	return o.post(ctx, o.cells.url+"/v2/templates/"+made.TemplateID+"/builds/"+made.BuildID, `{"fromTemplate":"debian","steps":[{"type":"RUN","args":["sleep 600"]}]}`, nil)
}

// beginning is a record, as far as this test reads it.
type beginning struct {
	Seq     uint64            `json:"seq"`
	Kind    string            `json:"kind"`
	Outcome string            `json:"outcome"`
	Sandbox string            `json:"sandbox"`
	Detail  map[string]string `json:"detail"`
}

func beginKinds() []string {
	return []string{"connection", "call of a tool", "command", "cell", "call", "file", "build"}
}

// read tells of which kind a record is, and what of that kind it begins or ends; "": nothing.
func (b beginning) read() (kind, id string, ends bool) {
	ended := b.Outcome == "finished" || b.Outcome == "failed" || b.Kind == "file" && b.Outcome == "aborted"
	if b.Outcome != "started" && !ended {
		return "", "", false
	}
	switch b.Kind {
	case "network", "tool", "file":
		kind = map[string]string{"network": "connection", "tool": "call of a tool", "file": "file"}[b.Kind]
		switch {
		case b.Detail["request"] != "":
			return "", "", false // of a connection's requests each is one record
		case ended:
			return kind, b.Detail["began_seq"], true
		}
		return kind, fmt.Sprint(b.Seq), false
	case "command":
		id = b.Detail["command_id"]
		kind = "command"
		for prefix, name := range map[string]string{"cell-": "cell", "call-": "call"} {
			if strings.HasPrefix(id, prefix) {
				kind = name
			}
		}
		return kind, b.Sandbox + " " + id, ended
	case "build":
		if !ended && b.Detail["event"] != "begun" {
			return "", "", false
		}
		return "build", b.Detail["build"], ended
	}
	return "", "", false
}

// tallies are the begins and ends of each kind, by what they are of.
func (in *installation) tallies(t *testing.T) (begins, ends map[string]map[string]int) {
	t.Helper()
	begins, ends = map[string]map[string]int{}, map[string]map[string]int{}
	for _, kind := range beginKinds() {
		begins[kind], ends[kind] = map[string]int{}, map[string]int{}
	}
	for line, err := range in.Client.Records(t.Context(), client.RecordFilter{Kinds: []string{"network", "tool", "command", "file", "build"}}) {
		var b beginning
		if err == nil {
			err = json.Unmarshal(line, &b)
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, id, ended := b.read()
		if kind == "" {
			continue
		}
		if ended {
			ends[kind][id]++
		} else {
			begins[kind][id]++
		}
	}
	return begins, ends
}

// openByKind counts what has begun and not ended.
func (in *installation) openByKind(t *testing.T) map[string]int {
	t.Helper()
	begins, ends := in.tallies(t)
	open := map[string]int{}
	for kind := range begins {
		open[kind] = len(begins[kind]) - len(ends[kind])
	}
	return open
}

// longestEnd bounds how long the end of what nobody follows any more may be in coming.
const longestEnd = 5 * time.Minute

// wantEnds waits until all has ended that began, and tells how many of each kind: each has one
// end, and nothing ended that did not begin.
func (in *installation) wantEnds(t *testing.T, after string) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestEnd)
	defer cancel()
	since := time.Now()
	var begins, ends map[string]map[string]int
	late := poll(ctx, func() bool {
		begins, ends = in.tallies(t)
		for kind := range begins {
			for id := range begins[kind] {
				if ends[kind][id] == 0 {
					return false
				}
			}
		}
		return true
	})
	counts := map[string]int{}
	for kind, all := range begins {
		counts[kind] = len(all)
		for id, n := range all {
			if n != 1 || ends[kind][id] != 1 {
				t.Errorf("after the death of %s: the %s %s has %d begins and %d ends", after, kind, id, n, ends[kind][id])
			}
		}
		for id := range ends[kind] {
			if all[id] == 0 {
				t.Errorf("after the death of %s: the %s %s has an end without a begin", after, kind, id)
			}
		}
	}
	t.Logf("after the death of %s all has ended in %v: %v (%v)", after, time.Since(since).Round(time.Millisecond), counts, late)
	return counts
}
