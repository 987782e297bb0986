package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
)

// agent is a client of `cofferdam mcp`, which it has started.
type agent struct {
	t       *testing.T
	session *sdk.ClientSession
	heard   chan string // what calls say of how far they are
}

// agent starts one, for a policy.
func (in *installation) agent(t *testing.T, policy string) agent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(repository(t)), "cofferdam"), "mcp", "--template", "debian", "--policy", file)
	cmd.Env, cmd.Stderr = in.environ(), os.Stderr
	heard := make(chan string, 1_000)
	options := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		heard <- r.Params.Message
	}}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return agent{t, session, heard}
}

// call calls a tool; failure is what the tool says of itself.
func (a agent) call(tool string, arguments map[string]any) (out map[string]any, failure string) {
	a.t.Helper()
	params := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(tool)
	result, err := a.session.CallTool(a.t.Context(), params)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	text, ok := result.Content[0].(*sdk.TextContent)
	if !ok {
		a.t.Fatalf("%s: %+v is no text", tool, result.Content)
	}
	if result.IsError {
		failure = text.Text
	} else if err := json.Unmarshal([]byte(text.Text), &out); err != nil {
		a.t.Fatal(err)
	}
	return out, failure
}

// hears waits until a call that goes on says this: a command's line is said by whoever follows it.
func (a agent) hears(what string) {
	a.t.Helper()
	for {
		select {
		case said := <-a.heard:
			if said == what {
				return
			}
		case <-a.t.Context().Done():
			a.t.Fatalf("no call has said %q", what)
		}
	}
}

// must is call of what works.
func (a agent) must(tool string, arguments map[string]any) map[string]any {
	a.t.Helper()
	out, failure := a.call(tool, arguments)
	if failure != "" {
		a.t.Fatalf("%s: %s", tool, failure)
	}
	return out
}

// TestAnAgentOutlivesTheDaemon: a daemon that dies in the middle of an agent's call is
// followed by one that the agent's server starts, and the call returns what the command has
// said to both.
func TestAnAgentOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	a := in.agent(t, nothingAllowed)
	a.must("create_sandbox", nil)
	ended := make(chan map[string]any, 1)
	go func() {
		out, failure := a.call("run_command", map[string]any{"command": []string{"sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over"}})
		if failure != "" {
			t.Error(failure)
		}
		ended <- out
	}()
	a.hears("begun") // before, the start may have no answer yet, and would be told as failed
	in.kill(t)
	a.must("write_file", map[string]any{"path": "go", "content": ""})
	if out := <-ended; out["exit_code"] != 0.0 || out["stdout"] != "begun\nover\n" || out["truncated"] != false {
		t.Errorf("the call returned %v", out)
	}
	if all := a.must("list_sandboxes", nil); all["total"] != 1.0 {
		t.Errorf("the session has %v", all)
	}
	if err := a.session.Close(); err != nil {
		t.Error(err)
	}
	until(t, "what the session had is gone", func() bool {
		all, err := in.Client.Sandboxes(t.Context())
		return err == nil && len(all) == 0
	})
}

// TestACancelledCallLeavesNothing: what a command has started is killed with it, though it has a
// session of its own and does not end by TERM; a command of another call lives on (the control).
func TestACancelledCallLeavesNothing(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	a := in.agent(t, nothingAllowed)
	a.must("create_sandbox", nil)
	call := func(ctx context.Context, script string) chan error {
		ended := make(chan error, 1)
		go func() {
			params := &sdk.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": []string{"sh", "-c", script}}}
			params.SetProgressToken(script)
			_, err := a.session.CallTool(ctx, params)
			ended <- err
		}()
		return ended
	}
	alive := func(seconds string) bool { // of a process that sleeps for so long
		out := a.must("run_command", map[string]any{"command": []string{"sh", "-c", `grep -slz "^` + seconds + `$" /proc/[0-9]*/cmdline | wc -l`}})
		return strings.TrimSpace(out["stdout"].(string)) != "0"
	}
	controlled, stop := context.WithCancel(t.Context())
	control := call(controlled, "echo other; exec sleep 98761")
	a.hears("other")
	cancelled, cancel := context.WithCancel(t.Context())
	ended := call(cancelled, `trap "" TERM; setsid sleep 98762 </dev/null >/dev/null 2>&1 & sleep 0 & wait $!; echo away; exec sleep 98763`)
	a.hears("away")
	until(t, "both run", func() bool { return alive("98762") && alive("98763") })
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled call has a result")
	}
	until(t, "what it had started is gone", func() bool { return !alive("98762") && !alive("98763") })
	if !alive("98761") {
		t.Error("the command of another call was killed with it")
	}
	stop()
	<-control
}

// TestAnAgentsFrozenInstall: an install that a person has to decide about freezes the
// sandbox. The agent's call returns, and says what waits; another finds the install again,
// which goes on once somebody has answered.
func TestAnAgentsFrozenInstall(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	a := in.agent(t, "packages: { default: hold, on_hold: freeze }\n")
	out := a.must("install_packages", map[string]any{"ecosystem": "python", "packages": []string{"iniconfig==2.0.0"}})
	if out["exit_code"] != -1.0 || out["command_id"] == nil || !strings.Contains(out["next"].(string), "wait_command") {
		t.Fatalf("the install returned %v", out)
	}
	until(t, "the sandbox is frozen", func() bool {
		all, err := in.Client.Sandboxes(t.Context())
		return err == nil && len(all) == 1 && all[0].State == "frozen"
	})
	if text, failure := a.call("run_command", map[string]any{"command": []string{"true"}}); failure == "" {
		t.Errorf("in a frozen sandbox a command ran: %v", text)
	}
	id := map[string]any{"command_id": out["command_id"]}
	if out = a.must("wait_command", id); out["exit_code"] != -1.0 || out["command_id"] != id["command_id"] {
		t.Fatalf("it is waited for, and nobody has answered: %v", out)
	}
	var told struct {
		Waiting []struct {
			Request string `json:"request"`
		} `json:"waiting"`
	}
	data, err := json.Marshal(out)
	if err == nil {
		err = json.Unmarshal(data, &told)
	}
	if err != nil || len(told.Waiting) == 0 {
		t.Fatalf("what is waited for is not told: %v, %v", out, err)
	}
	text, err := in.Client.Approval(t.Context(), told.Waiting[0].Request)
	var request struct {
		AnswerID string `json:"answer_id"`
	}
	if err == nil {
		err = json.Unmarshal(text, &request)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Client.AnswerApprovals(t.Context(), api.AnswerApprovals{IDs: []string{request.AnswerID}, State: "approved", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	if out = a.must("wait_command", id); out["exit_code"] != 0.0 {
		t.Errorf("once it was approved: %v", out)
	}
	if out = a.must("run_code", map[string]any{"language": "python", "code": "import iniconfig; print(iniconfig.__name__)"}); out["stdout"] != "iniconfig\n" {
		t.Errorf("what was installed: %v", out)
	}
}
