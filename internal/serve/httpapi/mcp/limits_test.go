package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// TestAnnotations: a client's person is asked by them, so each is what the tool does. Nothing
// that runs, writes or removes is said to read only.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	p := join(t, newServer(newHouse(t), nil), nil)
	tools, err := p.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"create_sandbox":   "",
		"delete_sandbox":   "destructive idempotent",
		"explain_policy":   "read-only idempotent",
		"install_packages": "open-world",
		"list_files":       "read-only idempotent",
		"list_sandboxes":   "read-only idempotent",
		"plan_packages":    "read-only open-world",
		"read_file":        "read-only idempotent",
		"request_approval": "idempotent open-world",
		"run_code":         "destructive open-world",
		"run_command":      "destructive open-world",
		"wait_command":     "open-world",
		"why_blocked":      "read-only idempotent",
		"write_file":       "destructive idempotent",
	}
	for _, tool := range tools.Tools {
		a := tool.Annotations
		var is []string
		for _, hint := range []struct {
			name string
			set  bool
		}{{"read-only", a.ReadOnlyHint}, {"destructive", *a.DestructiveHint}, {"idempotent", a.IdempotentHint}, {"open-world", *a.OpenWorldHint}} {
			if hint.set {
				is = append(is, hint.name)
			}
		}
		if got := strings.Join(is, " "); got != want[tool.Name] {
			t.Errorf("%s is said to be %q, not %q", tool.Name, got, want[tool.Name])
		}
		delete(want, tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no %v", want)
	}
}

// TestCallsAtOnce: a client has so many, and no more; the rest is refused at once, and what
// was cancelled makes room.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.must("create_sandbox", object{})
	var open sync.WaitGroup
	for range 8 {
		open.Go(func() { p.call("run_command", command("held")) })
	}
	p.await(func() bool { return look(h, func() bool { return len(h.commands) == 8 }) })
	if _, failure := p.call("list_sandboxes", nil); !strings.HasPrefix(failure, "too_many: ") {
		t.Errorf("a ninth call: %q", failure)
	}
	close(h.released)
	open.Wait()
	p.must("list_sandboxes", nil) // the control
}

// failing is a backend with a fault of ours in it.
type failing struct{ mcp.Backend }

func (failing) Refusals(context.Context, client.RefusalFilter) (api.Refusals, error) {
	panic("a fault")
}

func (failing) Approval(context.Context, string) (api.Approval, error) { panic("a fault") }

func (failing) Installs(context.Context, client.InstallFilter) (api.InstallPage, error) {
	panic("a fault")
}

// TestAPanicEndsOneCall: the call or the resource in which our code panics is answered with an
// error, and the peer goes on, as do the others of the process.
func TestAPanicEndsOneCall(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := newServer(h, func(c *mcp.Config) {
		c.Connect = func(context.Context, string) (mcp.Backend, error) { return failing{mcp.Over(h.client)}, nil }
	})
	p := join(t, s, nil)
	id, ok := p.must("create_sandbox", object{})["sandbox"].(string)
	if !ok {
		t.Fatal("no sandbox")
	}
	for range 10 { // more than may go on at one time
		if result, err := p.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "why_blocked", Arguments: object{"sandbox": id}}); err == nil && !result.IsError {
			t.Error("a tool that panicked has a result")
		}
		if _, err := p.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "cofferdam://sandboxes/" + id + "/ledger"}); err == nil || !strings.Contains(err.Error(), "its log says where") {
			t.Errorf("a resource that panicked: %v", err)
		}
	}
	p.must("list_sandboxes", nil) // the control
}

// TestSandboxesOfAClient are bounded, and one that is removed makes room.
func TestSandboxesOfAClient(t *testing.T) {
	t.Parallel()
	p := join(t, newServer(newHouse(t), nil), nil)
	var last any
	for range 8 {
		last = p.must("create_sandbox", object{})["sandbox"]
	}
	if _, failure := p.call("create_sandbox", object{}); !strings.HasPrefix(failure, "too_many: ") {
		t.Errorf("a ninth sandbox: %q", failure)
	}
	p.must("delete_sandbox", object{"sandbox": last})
	p.must("create_sandbox", object{})
}

// TestTooMuch: what is larger than may be is refused before anything is asked of the daemon,
// and what is just as large as may be is not.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.must("create_sandbox", object{"task": strings.Repeat("x", 1<<10)})
	packages := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("p%d", i))
		}
		return all
	}
	for name, c := range map[string]struct {
		tool     string
		most     object
		tooLarge object
	}{
		"a task":      {"create_sandbox", object{"task": strings.Repeat("x", 1<<10)}, object{"task": strings.Repeat("x", 1<<10+1)}},
		"a file":      {"write_file", object{"path": "a", "content": strings.Repeat("x", 2<<20)}, object{"path": "a", "content": strings.Repeat("x", 2<<20+1)}},
		"a path":      {"write_file", object{"path": strings.Repeat("x", 4<<10), "content": ""}, object{"path": strings.Repeat("x", 4<<10+1), "content": ""}},
		"a part":      {"read_file", object{"path": "a", "max_bytes": 1 << 20}, object{"path": "a", "max_bytes": 1<<20 + 1}},
		"an offset":   {"read_file", object{"path": "a", "offset": 1 << 30}, object{"path": "a", "offset": 1<<30 + 1}},
		"a depth":     {"list_files", object{"depth": 8}, object{"depth": 9}},
		"an argument": {"run_command", command("echo", strings.Repeat("x", 120<<10)), command("echo", strings.Repeat("x", 120<<10+1))},
		"a time":      {"run_command", object{"command": []string{"echo"}, "timeout_seconds": 3600}, object{"command": []string{"echo"}, "timeout_seconds": 3601}},
		"code":        {"run_code", object{"language": "bash", "code": strings.Repeat("x", 120<<10)}, object{"language": "bash", "code": strings.Repeat("x", 120<<10+1)}},
		"packages":    {"install_packages", object{"ecosystem": "python", "packages": packages(50)}, object{"ecosystem": "python", "packages": packages(51)}},
		"a package":   {"install_packages", object{"ecosystem": "python", "packages": []string{strings.Repeat("x", 200)}}, object{"ecosystem": "python", "packages": []string{strings.Repeat("x", 201)}}},
		"an option":   {"install_packages", object{"ecosystem": "python", "packages": []string{"x"}}, object{"ecosystem": "python", "packages": []string{"--index-url=x"}}},
		"two words":   {"install_packages", object{"ecosystem": "python", "packages": []string{"x>=1"}}, object{"ecosystem": "python", "packages": []string{"x -e"}}},
	} {
		look(h, func() bool { h.files["a"] = "content"; return true })
		if _, failure := p.call(c.tool, c.most); failure != "" {
			t.Errorf("%s that is as large as may be: %s", name, failure)
		}
		before := look(h, func() int { return len(h.commands) + h.made })
		if _, failure := p.call(c.tool, c.tooLarge); !strings.HasPrefix(failure, "too_large: ") && !strings.HasPrefix(failure, "invalid_argument: ") {
			t.Errorf("%s that is larger: %q", name, failure)
		}
		if after := look(h, func() int { return len(h.commands) + h.made }); after != before {
			t.Errorf("%s that is larger: the daemon was asked", name)
		}
	}
}

// TestAPlanHasNoMounts: what is resolved for a plan sees nothing of the host, whatever the
// client's other sandboxes see, and goes with the plan.
func TestAPlanHasNoMounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mounts := []api.Mount{{Source: "/srv/data", Destination: "/data"}}
	p := join(t, newServer(h, func(c *mcp.Config) { c.Sandbox.Mounts = mounts }), nil)
	p.must("plan_packages", object{"ecosystem": "python", "packages": []string{"rich"}})
	asked := look(h, func() []api.CreateSandbox { return h.asked })
	if len(asked) != 2 || len(asked[0].Mounts) != 1 || asked[0].Plan { // the control
		t.Fatalf("%+v", asked)
	}
	if !asked[1].Plan || asked[1].Linger || asked[1].Mounts != nil || asked[1].Run == "" {
		t.Errorf("the plan's is asked for as %+v", asked[1])
	}
}
