package e2e

import (
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
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return agent{t, session}
}

// call calls a tool; failure is what the tool says of itself.
func (a agent) call(tool string, arguments map[string]any) (out map[string]any, failure string) {
	a.t.Helper()
	result, err := a.session.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err == nil && !result.IsError {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	if result.IsError {
		if text, ok := result.Content[0].(*sdk.TextContent); ok {
			failure = text.Text
		}
	}
	return out, failure
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
	made := a.must("create_sandbox", nil)
	box, _ := made["sandbox"].(string)
	ended := make(chan map[string]any, 1)
	go func() {
		out, failure := a.call("run_command", map[string]any{"command": []string{"sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over"}})
		if failure != "" {
			t.Error(failure)
		}
		ended <- out
	}()
	until(t, "the command has said something", func() bool {
		found, err := in.Client.Sandbox(t.Context(), box)
		return err == nil && len(found.Commands) == 1 && found.Commands[0].Output > 0
	})
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
