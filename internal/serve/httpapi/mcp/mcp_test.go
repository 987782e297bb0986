package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

func newServer(h *house, change func(*mcp.Config)) *mcp.Server {
	cfg := mcp.Config{
		Connect:    func(context.Context, string) (mcp.Backend, error) { return mcp.Over(h.client), nil },
		Installers: all.Installers(), Version: "test", Patience: time.Nanosecond, ProgressEvery: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	return mcp.New(cfg)
}

// peer is a client of a server, over a connection in memory.
type peer struct {
	t       *testing.T
	session *sdk.ClientSession
	gone    chan struct{} // the server has nothing of it any more
}

func join(t *testing.T, s *mcp.Server, options *sdk.ClientOptions) *peer {
	t.Helper()
	return joinAs(t, s, options, "")
}

// joinAs is join by a version of the protocol; "" is the newest.
func joinAs(t *testing.T, s *mcp.Server, options *sdk.ClientOptions, version string) *peer {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	p := &peer{t: t, gone: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		defer close(p.gone)
		_ = s.Run(ctx, theirs)
	}()
	var err error
	if p.session, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), ours, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.session.Close() })
	return p
}

// call calls a tool; the error is that of the tool.
func (p *peer) call(name string, arguments any) (map[string]any, string) {
	p.t.Helper()
	result, err := p.session.CallTool(p.t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return read(p.t, result)
}

func read(t *testing.T, result *sdk.CallToolResult) (map[string]any, string) {
	t.Helper()
	text, ok := result.Content[0].(*sdk.TextContent)
	if !ok || len(result.Content) != 1 || result.StructuredContent != nil {
		t.Fatalf("a result that is not one text: %+v", result)
	}
	if result.IsError {
		return nil, text.Text
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text.Text), &out); err != nil {
		t.Fatal(err)
	}
	return out, ""
}

// must is call of what works.
func (p *peer) must(name string, arguments any) map[string]any {
	p.t.Helper()
	out, failure := p.call(name, arguments)
	if failure != "" {
		p.t.Fatalf("%s: %s", name, failure)
	}
	return out
}

type object = map[string]any

func command(words ...string) object { return object{"command": words} }

// TestToolsTellWhatTheyDo: few, verb first, with schemas both ways and annotations, and those
// that can be refused say what to do then.
func TestToolsTellWhatTheyDo(t *testing.T) {
	t.Parallel()
	p := join(t, newServer(newHouse(t), nil), nil)
	tools, err := p.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools.Tools) == 0 || len(tools.Tools) > 15 {
		t.Errorf("there are %d tools", len(tools.Tools))
	}
	size := 0
	for _, tool := range tools.Tools {
		data, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		if strings.Contains(string(data), `["null"`) {
			t.Errorf("%s has alternatives of types, which some clients do not take: %s", tool.Name, data)
		}
		verb, _, _ := strings.Cut(tool.Name, "_")
		if !slices.Contains(strings.Fields("create list delete run wait read write plan install why request explain"), verb) {
			t.Errorf("%s begins with no verb", tool.Name)
		}
		if tool.OutputSchema != nil || tool.InputSchema == nil || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil {
			t.Errorf("%s lacks a schema or annotations", tool.Name)
		}
		if slices.Contains([]string{"run_command", "run_code", "install_packages"}, tool.Name) && (!strings.Contains(tool.Description, "request_approval") || !strings.Contains(tool.Description, "not retry")) {
			t.Errorf("%s does not say what to do when it is refused: %s", tool.Name, tool.Description)
		}
		if strings.HasPrefix(tool.Name, "read") != (tool.Name == "read_file") || tool.Name == "delete_sandbox" && !*tool.Annotations.DestructiveHint {
			t.Errorf("%s has the annotations %+v", tool.Name, tool.Annotations)
		}
	}
	if size > 24<<10 {
		t.Errorf("the tools take %d bytes of a model's context", size)
	}
}

// TestASandboxOnFirstUse: one call works; the sandbox is the session's until its end, and
// nobody else's.
func TestASandboxOnFirstUse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := join(t, newServer(h, nil), nil), join(t, newServer(h, nil), nil)
	out := a.must("run_command", command("echo", "hello"))
	if out["stdout"] != "hello\n" || out["exit_code"] != 0.0 || out["truncated"] != false || out["stderr"] != "" {
		t.Errorf("run_command gave %v", out)
	}
	mine, _ := out["sandbox"].(string)
	if again := a.must("run_command", command("echo")); again["sandbox"] != mine {
		t.Errorf("the second call is in %v, not %s", again["sandbox"], mine)
	}
	made := a.must("create_sandbox", object{"task": "more"})
	if made["run"] != "run-"+mine {
		t.Errorf("another sandbox is of another run: %v", made)
	}
	if listed := a.must("list_sandboxes", nil); listed["total"] != 2.0 {
		t.Errorf("list_sandboxes gave %v", listed)
	}
	with := command("echo")
	with["sandbox"] = mine
	a.must("run_command", with) // the control
	for name, arguments := range map[string]object{
		"run_command": with, "delete_sandbox": {"sandbox": mine}, "why_blocked": {"sandbox": mine},
		"read_file": {"sandbox": mine, "path": "/x"}, "list_files": {"sandbox": mine}, "write_file": {"sandbox": mine, "path": "x", "content": ""},
	} {
		if _, failure := b.call(name, arguments); !strings.HasPrefix(failure, "unknown_sandbox: ") || !strings.Contains(failure, "list_sandboxes") {
			t.Errorf("another session's %s: %q", name, failure)
		}
	}
	if _, err := a.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cofferdam://sandboxes/" + mine + "/ledger"}); err != nil {
		t.Error(err) // the control
	}
	if _, err := b.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cofferdam://sandboxes/" + mine + "/ledger"}); err == nil {
		t.Error("another session reads the ledger")
	}
	if got := look(h, func() int { return len(h.boxes) }); got != 2 {
		t.Fatalf("%d sandboxes live", got)
	}
	_ = a.session.Close()
	<-a.gone
	if got := look(h, func() []string { return slices.Clone(h.removed) }); !slices.Equal(got, []string{mine, made["sandbox"].(string)}) {
		t.Errorf("at the end of the session %v were removed", got)
	}
}

// TestWhatComesFromInsideIsData: it is bounded, no terminal and no reader of JSON takes it
// for an instruction, and a name is no path of ours.
func TestWhatComesFromInsideIsData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	out := p.must("run_command", command("escape"))
	text, _ := out["stdout"].(string)
	if strings.ContainsAny(text, "\x1b\x07\u202e") || !strings.Contains(text, `\x1b[31mred`) || !strings.Contains(text, `\xff`) || out["exit_code"] != 3.0 {
		t.Errorf("escapes came as %q", text)
	}
	out = p.must("run_command", command("big"))
	text, _ = out["stdout"].(string)
	if len(text) > 70<<10 || out["truncated"] != true || !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "\nend\n") || !strings.Contains(text, "bytes left out") {
		t.Errorf("%d bytes of a megabyte came, truncated: %v", len(text), out["truncated"])
	}
	listed := p.must("list_files", nil)
	entries, _ := listed["entries"].([]any)
	if len(entries) != 500 || listed["total"] != 700.0 || listed["truncated"] != true || strings.Contains(fmt.Sprint(entries[0]), "\x1b") {
		t.Errorf("list_files gave %d of %v: %v", len(entries), listed["total"], entries[0])
	}
}

// TestFiles: text as text, all else as base64, in parts.
func TestFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	for name, content := range map[string]string{"text": "é\tü\r\n", "empty": "", "bytes": "\x00\xff", "escape": "a\x1b[31m", "hidden": "a\u202eb"} {
		p.must("write_file", object{"path": "/" + name, "content": base64.StdEncoding.EncodeToString([]byte(content)), "binary": true})
		out := p.must("read_file", object{"path": "/" + name})
		plain := name == "text" || name == "empty"
		want := content
		if !plain {
			want = base64.StdEncoding.EncodeToString([]byte(content))
		}
		if out["binary"] != !plain || out["content"] != want || out["size"] != float64(len(content)) || out["truncated"] != false {
			t.Errorf("%s came as %v", name, out)
		}
	}
	whole := strings.Repeat("é", 100)
	p.must("write_file", object{"path": "/parts", "content": whole})
	var got string
	for next, parts := 0.0, 0; ; parts++ {
		out := p.must("read_file", object{"path": "/parts", "offset": next, "max_bytes": 33})
		got += out["content"].(string)
		if out["truncated"] == false {
			break
		}
		if next, _ = out["next_offset"].(float64); parts > 20 {
			t.Fatal("there is no end of parts")
		}
	}
	if got != whole {
		t.Errorf("in parts it is %q", got)
	}
}

// TestWrongCalls: each gets a code, what is wrong and what to do, and harms nothing.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.must("run_command", command("echo"))
	gone := p.must("create_sandbox", nil)["sandbox"].(string)
	p.must("delete_sandbox", object{"sandbox": gone})
	after := command("echo")
	after["sandbox"] = gone
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		tool string
		in   any
		want string
	}{
		{"run_command", after, "unknown_sandbox: "},
		{"run_command", object{"command": []string{}}, "invalid_argument: "},
		{"run_command", object{"command": 1}, "invalid_argument: "},
		{"run_command", object{"command": []string{""}}, "invalid_argument: "},
		{"run_command", object{"command": nil}, "invalid_argument: "},
		{"run_command", object{"command": "x " + long}, "too_large: "},
		{"run_command", object{"command": []string{"ls"}, "comand": 1}, "invalid_argument: "},
		{"run_command", object{"command": []string{"echo"}, "timeout_seconds": -1}, "invalid_argument: "},
		{"run_command", object{"command": []string{"echo"}, "timeout_seconds": 999999}, "invalid_argument: "},
		{"run_command", object{"command": []string{"echo"}, "dir": "tmp"}, "invalid_argument: "},
		{"run_command", command("echo", long), "too_large: "},
		{"run_command", command("forbidden"), "refused_by_policy: rule no-shell"},
		{"run_command", command("quota"), "too_many: too fast. Next: wait 7 seconds"},
		{"run_code", object{"language": "cobol", "code": "x"}, "invalid_argument: "},
		{"run_code", object{"language": "python", "code": long}, "too_large: "},
		{"run_code", object{"language": "", "code": ""}, "invalid_argument: "},
		{"run_code", object{"language": "python"}, "invalid_argument: "},
		{"wait_command", object{"command_id": "c99"}, "unknown_command: "},
		{"wait_command", object{"command_id": ""}, "unknown_command: "},
		{"read_file", object{"path": "/nowhere"}, "not_found: "},
		{"read_file", object{"path": "/x", "max_bytes": 1 << 30}, "invalid_argument: "},
		{"read_file", object{"path": ""}, "invalid_argument: "},
		{"read_file", object{"path": roots}, `permission_denied: "/root/key": permission denied to the user. Next: use another path`},
		{"write_file", object{"path": roots, "content": "x"}, "permission_denied: "},
		{"list_files", object{"path": roots}, "permission_denied: "},
		{"write_file", object{"path": "/x", "content": "%%", "binary": true}, "invalid_argument: "},
		{"write_file", object{"path": "/x", "content": strings.Repeat("x", 3<<20)}, "too_large: "},
		{"list_files", object{"depth": 99}, "invalid_argument: "},
		{"install_packages", object{"ecosystem": "python", "packages": []string{"--index-url=http://evil.example"}}, "invalid_argument: "},
		{"install_packages", object{"ecosystem": "python", "packages": []string{"a b"}}, "invalid_argument: "},
		{"install_packages", object{"ecosystem": "python", "packages": []string{}}, "invalid_argument: "},
		{"install_packages", object{"ecosystem": "python", "packages": []string{""}}, "invalid_argument: "},
		{"install_packages", object{"ecosystem": "cobol", "packages": []string{"a"}}, "invalid_argument: "},
		{"request_approval", object{"ecosystem": "python", "packages": []string{"rich"}, "because": ""}, "invalid_argument: "},
	} {
		if out, failure := p.call(c.tool, c.in); !strings.HasPrefix(failure, c.want) || len(failure) > 4<<10 {
			t.Errorf("%s %.200v: %.300q %v, want %q", c.tool, c.in, failure, out, c.want)
		}
	}
	if out := p.must("run_command", command("echo", "still here")); out["stdout"] != "still here\n" {
		t.Errorf("afterwards: %v", out)
	}
	for range 7 {
		p.must("create_sandbox", nil)
	}
	if _, failure := p.call("create_sandbox", nil); !strings.HasPrefix(failure, "too_many: ") {
		t.Errorf("a ninth sandbox: %q", failure)
	}
}

// TestASandboxThatIsGone: who uses one that ended by itself is told, and the next call has
// a new one.
func TestASandboxThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	first := p.must("run_command", command("echo"))["sandbox"]
	look(h, func() bool { clear(h.boxes); return true })
	if _, failure := p.call("run_command", command("echo")); !strings.HasPrefix(failure, "unknown_sandbox: ") || !strings.Contains(failure, "for a new one") {
		t.Errorf("in one that is gone: %q", failure)
	}
	if out := p.must("run_command", command("echo")); out["sandbox"] == first {
		t.Errorf("the next call is in %v", out["sandbox"])
	}
}

// TestCancelledCallsEndTheirCommand: inside.
func TestCancelledCallsEndTheirCommand(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	heard := make(chan string, 100)
	p := join(t, newServer(h, nil), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		heard <- r.Params.Message
	}})
	ctx, cancel := context.WithCancel(t.Context())
	params := &sdk.CallToolParams{Name: "run_command", Arguments: command("hang")}
	params.SetProgressToken("one")
	failed := make(chan error, 1)
	go func() {
		_, err := p.session.CallTool(ctx, params)
		failed <- err
	}()
	got := <-heard
	for got == "" { // it has said nothing yet, and goes on
		got = <-heard
	}
	if got != "hanging" {
		t.Errorf("the progress is %q", got)
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("a cancelled call has a result")
	}
	p.await(func() bool { return look(h, func() int { return len(h.signals) }) > 0 })
	if got := look(h, func() api.SignalCommand { return h.signals[0] }); got != (api.SignalCommand{Name: "KILL", Tree: true}) {
		t.Errorf("the command was told %+v", got)
	}
	p.must("run_command", command("echo"))
}

// TestACancelIsOverWhenTheKillIsConfirmed: until then the call takes its place among those that
// go on; also where the start had no answer yet, whose command nobody would know else.
func TestACancelIsOverWhenTheKillIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"while it runs", "while it starts"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			p := join(t, newServer(h, nil), nil)
			p.must("create_sandbox", object{})
			h.mu.Lock()
			h.kills, h.starts = make(chan struct{}), make(chan struct{})
			kills, starts := h.kills, h.starts
			h.mu.Unlock()
			if at == "while it runs" {
				close(starts)
			}
			const most = 8 // calls at one time
			ctx, cancel := context.WithCancel(t.Context())
			var open sync.WaitGroup
			for range most {
				open.Go(func() {
					if _, err := p.session.CallTool(ctx, &sdk.CallToolParams{Name: "run_command", Arguments: command("hang")}); err == nil {
						t.Error("a cancelled call has a result")
					}
				})
			}
			p.await(func() bool { return look(h, func() int { return h.begun }) == most })
			if at == "while it runs" {
				p.await(func() bool { return look(h, func() int { return len(h.commands) }) == most })
			}
			cancel()
			open.Wait() // the client does not wait for what it has given up
			if at == "while it starts" {
				if _, failure := p.call("list_sandboxes", nil); !strings.HasPrefix(failure, "too_many: ") {
					t.Errorf("before the starts are answered: %q", failure)
				}
				close(starts)
			}
			p.await(func() bool { return look(h, func() int { return len(h.signals) }) == most })
			if _, failure := p.call("list_sandboxes", nil); !strings.HasPrefix(failure, "too_many: ") {
				t.Errorf("before the kills are confirmed: %q", failure)
			}
			close(kills)
			p.await(func() bool { _, failure := p.call("list_sandboxes", nil); return failure == "" })
		})
	}
}

func (p *peer) await(done func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			p.t.Fatal("it did not become true")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// joinHeld has a peer whose held command waits for a person from when the peer has been told what the command said
// before.
func joinHeld(t *testing.T, h *house) *peer {
	t.Helper()
	var once sync.Once // it is told again, for as long as the command goes on
	return join(t, newServer(h, nil), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		if r.Params.Message == "before" {
			once.Do(func() { look(h, func() bool { h.held = true; return true }) })
		}
	}})
}

// runHeld runs a held command until a person is waited for.
func (p *peer) runHeld() map[string]any {
	p.t.Helper()
	params := &sdk.CallToolParams{Name: "run_command", Arguments: command("held")}
	params.SetProgressToken("held")
	result, err := p.session.CallTool(p.t.Context(), params)
	if err != nil {
		p.t.Fatal(err)
	}
	out, failure := read(p.t, result)
	if failure != "" {
		p.t.Fatal(failure)
	}
	return out
}

// TestACommandThatWaitsForAPerson: the call returns, says what waits and who can answer, and
// the command is still there.
func TestACommandThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := joinHeld(t, h)
	out := p.runHeld()
	if out["exit_code"] != -1.0 || out["stdout"] != "before\n" || !strings.Contains(fmt.Sprint(out["waiting"]), "cofferdam approvals approve ap-1") {
		t.Fatalf("a held command: %v", out)
	}
	look(h, func() bool { h.held = false; close(h.released); return true })
	id := object{"command_id": out["command_id"]}
	out = p.must("wait_command", id)
	if out["exit_code"] != 0.0 || out["stdout"] != "after\n" {
		t.Errorf("once it was answered: %v", out)
	}
	if _, failure := p.call("wait_command", id); !strings.HasPrefix(failure, "unknown_command: ") {
		t.Errorf("a second wait: %q", failure)
	}
}

// TestACommandIsLookedAtWhereNobodySaysHowOften: with the default, as both programs have it.
func TestACommandIsLookedAtWhereNobodySaysHowOften(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, -1} {
		p := join(t, newServer(newHouse(t), func(c *mcp.Config) { c.ProgressEvery = every }), nil)
		if out := p.must("run_command", command("echo", "hi")); out["stdout"] != "hi\n" {
			t.Errorf("every %d: %v", every, out)
		}
	}
}

// TestRefusalsAreToldOnce: with what to do, in the result of the command that they befell.
func TestRefusalsAreToldOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	h.refusals = []api.Refusal{{Reason: "not on the \x1ballowlist", Rule: "packages.default", RequestID: "r1", Count: 1, Approval: "ap-9"}}
	out := p.must("run_command", command("fails"))
	if text := fmt.Sprint(out["refused"]); !strings.Contains(text, `\x1ballowlist`) || !strings.Contains(text, "approve ap-9") || !strings.Contains(fmt.Sprint(out["next"]), "do not retry") {
		t.Errorf("a refusal is told as %v", out)
	}
	if out = p.must("run_command", command("fails")); out["refused"] != nil {
		t.Errorf("it is told again: %v", out)
	}
	if out = p.must("why_blocked", nil); out["total"] != 1.0 {
		t.Errorf("why_blocked: %v", out)
	}
}

// TestNoPersonIsAskedForWhatARegistryLacks: what a registry does not have can't be approved, and no rule of the policy
// says why; beside a refusal by the policy the refusal's own way goes first.
func TestNoPersonIsAskedForWhatARegistryLacks(t *testing.T) {
	t.Parallel()
	lacks := api.Refusal{Reason: "the upstream has no such project or file", Rule: "upstream.missing", RequestID: "r1", Count: 1}
	denied := api.Refusal{Reason: "it is on no list", Rule: "packages.default", RequestID: "r2", Count: 1}
	own := api.Refusal{Reason: "it may not", Rule: "upstream.of-ours", RequestID: "r3", Count: 1} // a rule that somebody named so
	var many []api.Refusal                                                                        // of which the last is not told any more
	for i := range 60 {
		one := lacks
		one.RequestID = fmt.Sprint("m", i)
		many = append(many, one)
	}
	for _, c := range []struct {
		all  []api.Refusal
		asks bool
	}{{[]api.Refusal{lacks}, false}, {[]api.Refusal{denied}, true}, {[]api.Refusal{lacks, denied}, true}, {[]api.Refusal{own}, true}, {append(many, denied), true}} {
		h := newHouse(t)
		p := join(t, newServer(h, nil), nil)
		h.refusals = c.all
		for _, out := range []object{p.must("run_command", command("fails")), p.must("why_blocked", nil)} {
			if next := fmt.Sprint(out["next"]); strings.Contains(next, "request_approval") != c.asks || strings.Contains(next, "check the name") == c.asks {
				t.Errorf("%v: next is %q", c.all, next)
			}
		}
	}
}

// TestAPlanThatFailsSaysWhatToDo: by what its resolver was refused. An alarm goes first, and a resolver that takes too
// long says nothing of names.
func TestAPlanThatFailsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	lacks := api.Refusal{Reason: "the upstream has no such project or file", Rule: "upstream.missing", RequestID: "r1", Count: 1}
	denied := api.Refusal{Reason: "it is on no list", Rule: "packages.default", RequestID: "r2", Count: 1}
	alarm := api.Refusal{Reason: "it is not what it was", Rule: "integrity", RequestID: "r3", Count: 1, Alarm: true}
	for _, c := range []struct {
		name       string
		all        []api.Refusal
		code, then string
	}{
		{"nosuch", nil, "invalid_argument: ", "check the names and versions."},
		{"nosuch", []api.Refusal{lacks}, "invalid_argument: ", "check the names and versions."},
		{"nosuch", []api.Refusal{lacks, denied}, "refused_by_policy: ", "explain_policy says what is allowed."},
		{"nosuch", []api.Refusal{alarm, lacks}, "refused_by_policy: ", "there is an ALARM"},
		{"neverends", nil, "unavailable: ", "call again later"},
		{"neverends", []api.Refusal{denied}, "refused_by_policy: ", "explain_policy"},
	} {
		h := newHouse(t)
		p := join(t, newServer(h, nil), nil)
		h.refusals = c.all
		if _, says := p.call("plan_packages", object{"ecosystem": "python", "packages": []string{c.name}}); !strings.HasPrefix(says, c.code) || !strings.Contains(says, c.then) {
			t.Errorf("%s %v: %q", c.name, c.all, says)
		}
	}
}

// TestCodeIsJudgedAsCode: for each language the daemon is told that it is code.
func TestCodeIsJudgedAsCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	for _, language := range []string{"python", "javascript", "bash"} {
		p.must("run_code", object{"language": language, "code": "text of " + language})
	}
	p.must("run_command", command("bash", "-c", "x"))
	for id, want := range map[string]bool{"c1": true, "c2": true, "c3": true, "c4": false} {
		got := look(h, func() api.StartCommand { return h.commands[id] })
		if got.Code != want || want && !strings.HasPrefix(got.Argv[2], "text of ") {
			t.Errorf("%s was started as %+v", id, got)
		}
	}
}

// TestPackagesOfAnEcosystemByItsClient: an agent names an ecosystem as people do, by its
// client, and gets what the name in policies gets, to install as to plan.
func TestPackagesOfAnEcosystemByItsClient(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	for i, c := range []struct{ asked, runs string }{
		{"python", "pip"}, {"pip", "pip"}, {"node", "npm"}, {"npm", "npm"}, {"NPM", "npm"}, {"pnpm", "npm"}, {"go", "go"}, {"golang", "go"},
	} {
		p.must("install_packages", object{"ecosystem": c.asked, "packages": []string{"example.org/a"}})
		id := fmt.Sprintf("c%d", i+1)
		if got := look(h, func() api.StartCommand { return h.commands[id] }); !slices.Contains(got.Argv, c.runs) {
			t.Errorf("packages of %s are installed with %q, not with %s", c.asked, got.Argv, c.runs)
		}
	}
	if _, failure := p.call("install_packages", object{"ecosystem": "rust", "packages": []string{"rand"}}); !strings.Contains(failure, "can't be installed by name") {
		t.Errorf("of rust, which has no client here: %q", failure)
	}
}

// TestPagesForApprovals: a client that opens pages is asked to, in the protocol that has it
// in results and in those before; what it answers approves nothing. One that does not gets
// the command for a person.
func TestPagesForApprovals(t *testing.T) {
	t.Parallel()
	ask := object{"ecosystem": "python", "packages": []string{"rich"}, "because": "tables"}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, action := range []string{"accept", "decline", "cannot", "nowhere"} {
			page := "https://approvals.example/r/{request}"
			if action == "nowhere" {
				page = ""
			}
			h := newHouse(t)
			var asked []string
			options := &sdk.ClientOptions{}
			if action != "cannot" {
				options.Capabilities = &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}}
				options.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = append(asked, r.Params.Mode+" "+r.Params.URL)
					if want := "1 request: python rich 13.7.1. Its reason: tables"; !strings.Contains(r.Params.Message, want) {
						t.Errorf("a person is asked %q", r.Params.Message)
					}
					return &sdk.ElicitResult{Action: action}, nil
				}
			}
			p := joinAs(t, newServer(h, func(c *mcp.Config) { c.ApprovalURL = page }), options, version)
			out := p.must("request_approval", ask)
			opens := page != "" && action != "cannot"
			if want := []string{"url https://approvals.example/r/ap-1"}; opens != slices.Equal(asked, want) {
				t.Errorf("%s %s: the client was asked %v", version, action, asked)
			}
			if out["opened"] != (opens && action == "accept") || !strings.Contains(fmt.Sprint(out["answer"]), "cofferdam approvals approve ap-1") || fmt.Sprint(out["requests"]) != "[ap-1]" {
				t.Errorf("%s %s: %v", version, action, out)
			}
			if got := look(h, func() []api.ResolvedPlan { return h.plans }); len(got) != 1 || got[0].Because != "tables" || !got[0].Request {
				t.Errorf("%s %s: the daemon was asked %+v", version, action, got)
			}
			if n := look(h, func() int { return len(h.boxes) }); n != 1 {
				t.Errorf("%d sandboxes are left after a plan", n)
			}
			read, err := p.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cofferdam://approvals"})
			if err != nil || !strings.Contains(read.Contents[0].Text, "python rich 13.7.1") {
				t.Errorf("the resource: %v %v", read, err)
			}
		}
	}
}

// TestClosing: where the daemon ends, calls return, and nothing of a peer is removed.
func TestClosing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := newServer(h, nil)
	p := join(t, s, nil)
	p.must("run_command", command("echo"))
	failed := make(chan string, 1)
	go func() {
		result, err := p.session.CallTool(context.Background(), &sdk.CallToolParams{Name: "run_command", Arguments: command("hang")})
		if err != nil {
			failed <- err.Error()
			return
		}
		failed <- fmt.Sprint(result.Content[0].(*sdk.TextContent).Text)
	}()
	p.await(func() bool { return look(h, func() int { return len(h.commands) }) == 2 })
	s.Close()
	if got := <-failed; !strings.HasPrefix(got, "unavailable: the daemon ends") {
		t.Errorf("the call ended with %q", got)
	}
	_ = p.session.Close()
	<-p.gone
	if got := look(h, func() int { return len(h.removed) + len(h.signals) }); got != 0 {
		t.Errorf("%d things were ended with the daemon", got)
	}
}

// TestMoreThanMayBeLeft: where as many commands wait as may be left, the next is stayed with
// to its end. Returned without a way back to it, it would go on with nobody there.
func TestMoreThanMayBeLeft(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.held = true
	p := join(t, newServer(h, nil), nil)
	p.must("create_sandbox", object{})
	for range 2 {
		var some sync.WaitGroup
		for range 8 {
			some.Go(func() {
				if out, failure := p.call("run_command", command("held")); failure != "" || out["command_id"] == nil {
					t.Errorf("%v %s", out, failure)
				}
			})
		}
		some.Wait()
	}
	ended := make(chan map[string]any, 1)
	go func() {
		out, failure := p.call("run_command", command("held"))
		if failure != "" {
			t.Error(failure)
		}
		ended <- out
	}()
	p.await(func() bool { return look(h, func() bool { return len(h.commands) == 17 }) })
	before := look(h, func() int { return h.looks })
	p.await(func() bool { return look(h, func() bool { return h.looks > before+1 }) })
	look(h, func() bool { h.held = false; close(h.released); return true })
	if out := <-ended; out["exit_code"] != 0.0 || out["command_id"] != nil || !strings.Contains(fmt.Sprint(out["stdout"]), "after") {
		t.Errorf("%v", out)
	}
}

// TestAnAlarmIsToldThoughTheCommandEndsWell: once, and first of all; a refusal that is none is
// told where a command fails (the control).
func TestAnAlarmIsToldThoughTheCommandEndsWell(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.must("create_sandbox", object{})
	h.mu.Lock()
	h.refusals = []api.Refusal{
		{Reason: "its bytes are others", Rule: "integrity", RequestID: "r2", Count: 1, Alarm: true},
		{Reason: "not on the allowlist", Rule: "packages.default", RequestID: "r1", Count: 1},
	}
	h.mu.Unlock()
	told := func(program string) string {
		out := p.must("run_command", command(program))
		var all []string
		if list, ok := out["refused"].([]any); ok {
			for _, one := range list {
				all = append(all, fmt.Sprint(one.(object)["request_id"], " ", one.(object)["alarm"]))
			}
		}
		return fmt.Sprint(out["exit_code"], " ", strings.Join(all, ", "), " ", strings.Contains(fmt.Sprint(out["next"]), "ALARM"))
	}
	for _, c := range []struct{ program, want string }{{"echo", "0 r2 true true"}, {"echo", "0  false"}, {"fails", "1 r1 <nil> false"}} {
		if got := told(c.program); got != c.want {
			t.Errorf("%s: %q, want %q", c.program, got, c.want)
		}
	}
}

// TestAlarmsForWhichAnAnswerHasNoRoom: the next one has them, and each is told once.
func TestAlarmsForWhichAnAnswerHasNoRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.must("create_sandbox", object{})
	h.mu.Lock()
	for n := range 60 {
		h.refusals = append(h.refusals, api.Refusal{Reason: "its bytes are others", Rule: "integrity", RequestID: fmt.Sprint("r", n), Count: 1, Alarm: true})
	}
	h.mu.Unlock()
	told := map[string]int{}
	for _, want := range []int{50, 10, 0} {
		all, _ := p.must("run_command", command("echo"))["refused"].([]any)
		for _, one := range all {
			told[fmt.Sprint(one.(object)["request_id"])]++
		}
		if len(all) != want {
			t.Errorf("%d alarms are told, want %d", len(all), want)
		}
	}
	if len(told) != 60 {
		t.Errorf("%d of 60 alarms were told", len(told))
	}
}

// TestACancelledWaitWhoseKillFails: nobody hears the answer to a cancelled call, so that the command,
// which goes on, is found by its number again; once it is killed it is not (the control).
func TestACancelledWaitWhoseKillFails(t *testing.T) {
	t.Parallel()
	for _, frozen := range []bool{true, false} {
		h := newHouse(t)
		p := joinHeld(t, h)
		id := object{"command_id": p.runHeld()["command_id"]}
		looks := look(h, func() int { h.held, h.frozen = false, frozen; return h.looks })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.session.CallTool(ctx, &sdk.CallToolParams{Name: "wait_command", Arguments: id})
			ended <- err
		}()
		p.await(func() bool { return look(h, func() int { return h.looks }) > looks })
		cancel()
		if err := <-ended; err == nil {
			t.Error("a cancelled call has a result")
		}
		p.await(func() bool { return look(h, func() int { return len(h.signals) }) == 1 })
		close(h.released)
		if !frozen {
			if _, failure := p.call("wait_command", id); !strings.HasPrefix(failure, "unknown_command: ") {
				t.Errorf("a command that was killed: %q", failure)
			}
			continue
		}
		p.await(func() bool {
			out, failure := p.call("wait_command", id)
			return failure == "" && out["exit_code"] == 0.0 && out["stdout"] == "after\n"
		})
	}
}
