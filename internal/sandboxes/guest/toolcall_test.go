package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolHost answers as the host does, and gives how to reach it.
func toolHost(t *testing.T) (server *httptest.Server, dial func(context.Context) (net.Conn, error)) {
	t.Helper()
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := func(status int, text string) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
		switch said := r.Method + " " + r.URL.Path + " " + string(body); said {
		case "GET /tools ":
			answer(200, `{"tools":[{"name":"order","description":"looks\n  up","arguments":{"type":"object"}}]}`)
		case `POST /call_tool {"tool":"order","args":{"id":"7"}}`, `POST /call_tool {"tool": "order", "args": {"id": "7"}}`:
			answer(200, `{"result":{"state":"sent"}}`)
		case `POST /call_tool {"tool":"text","args":{}}`, `POST /call_tool {"tool": "text", "args": {}}`:
			answer(200, `{"result":"a\nb\n"}`)
		case `POST /call_tool {"tool":"broken","args":{}}`, `POST /call_tool {"tool": "broken", "args": {}}`:
			answer(200, `{"error":"it failed"}`)
		case `POST /call_tool {"tool":"silent","args":{}}`:
			panic(http.ErrAbortHandler)
		case `POST /call_tool {"tool":"half","args":{}}`:
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"result"`)
		case `POST /call_tool {"tool":"held","args":{}}`, `POST /call_tool {"tool": "held", "args": {}}`:
			answer(403, `{"approval":"ap-1","error":"rule r has a person asked first; request ap-1"}`)
		default:
			answer(403, `{"error":"tool_allowlist does not name this tool"}`)
		}
	}))
	t.Cleanup(server.Close)
	return server, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
}

func TestToolCommand(t *testing.T) {
	_, dial := toolHost(t)
	for _, c := range []struct {
		args          string
		stdin         string
		code          int
		stdout, wrong string
	}{
		{"", "", 0, "order looks up\n  {\"type\":\"object\"}\n", ""},
		{`order {"id":"7"}`, "", 0, "{\"state\":\"sent\"}\n", ""},
		{`order -`, `{"id":"7"}`, 0, "{\"state\":\"sent\"}\n", ""},
		{`text`, "", 0, "a\nb\n", ""},
		{`broken`, "", 1, "", "cofferdam-tool: it failed\n"},
		{`other {}`, "", 1, "", "cofferdam-tool: tool_allowlist does not name this tool\n"},
		{`held`, "", 3, "", "cofferdam-tool: rule r has a person asked first; request ap-1\n"},
		{`order {"id"`, "", 1, "", "not JSON"},
		{`order {},"tool":"text"`, "", 1, "", "not JSON"},
		{`silent`, "", 1, "", "the host did not answer"},
		{`half`, "", 1, "", "the host did not answer"},
		{`--help`, "", 0, toolHelp, ""},
		{`--what`, "", 2, "", toolHelp},
		{`a {} more`, "", 2, "", toolHelp},
		{`--python`, "", 0, pythonStub, ""},
		{`--javascript`, "", 0, javascriptStub, ""},
	} {
		var out, wrong bytes.Buffer
		code := Tool(t.Context(), strings.Fields(c.args), ToolConfig{Dial: dial, Stdin: strings.NewReader(c.stdin), Stdout: &out, Stderr: &wrong})
		if code != c.code || out.String() != c.stdout || !strings.Contains(wrong.String(), c.wrong) || (c.wrong == "") != (wrong.Len() == 0) {
			t.Errorf("%s: %d, %q, %q", c.args, code, out.String(), wrong.String())
		}
	}
	var wrong bytes.Buffer
	away := func(context.Context) (net.Conn, error) { return nil, errors.New("away") }
	if code := Tool(t.Context(), nil, ToolConfig{Dial: away, Stdout: io.Discard, Stderr: &wrong}); code != 1 || !strings.Contains(wrong.String(), "away") {
		t.Errorf("%d %q", code, wrong.String())
	}
}

// TestStubs: the modules that `cofferdam-tool --python` and its like print, with the machine's
// own interpreters.
func TestStubs(t *testing.T) {
	server, _ := toolHost(t)
	for program, c := range map[string]struct{ file, stub, code string }{
		"python3": {"tool_client.py", pythonStub, `
from tool_client import call_tool
print(call_tool("order", {"id": "7"})["result"]["state"], call_tool("text")["result"].split(), call_tool("broken")["error"])
for name in ["other", "held"]:
    try:
        call_tool(name)
    except RuntimeError as e:
        print(e, e.approval)
`},
		"node": {"tool_client.mjs", javascriptStub, `
const { callTool } = await import("./tool_client.mjs");
console.log((await callTool("order", { id: "7" })).result.state, JSON.stringify((await callTool("text")).result.split("\n").slice(0, 2)).replaceAll('"', "'").replace(",", ", "), (await callTool("broken")).error);
for (const name of ["other", "held"]) await callTool(name).catch((e) => console.log(e.message, e.approval ?? "None"));
`},
	} {
		dir := t.TempDir()
		must(os.WriteFile(filepath.Join(dir, c.file), []byte(c.stub), 0o600))
		args := []string{"-c", c.code}
		if program == "node" {
			args = []string{"--input-type=module", "-e", c.code}
		}
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatalf("%v: templates are built with both, so the machine that tests has them", err)
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.Env = dir, []string{"TOOL_PROXY_URL=" + server.URL, "http_proxy=http://127.0.0.1:1", "PYTHONDONTWRITEBYTECODE=1"}
		out, err := cmd.CombinedOutput()
		if want := "sent ['a', 'b'] it failed\nTool call denied: tool_allowlist does not name this tool None\nTool call denied: rule r has a person asked first; request ap-1 ap-1\n"; err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}
