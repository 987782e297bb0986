package mcp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestTextThatIsNone: a call with half of a surrogate pair, or with bytes that are no UTF-8, is
// refused wherever that stands. encoding/json would make U+FFFD of it: another argument, variable or
// file. The control is the pair.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	for name, tool := range map[string][2]string{
		"argument":        {"run_command", `{"command":["echo","%s"]}`},
		"shell's text":    {"run_command", `{"command":"echo %s"}`},
		"variable's name": {"run_command", `{"command":["echo"],"env":{"A%s":"1"}}`},
		"variable":        {"run_command", `{"command":["echo"],"env":{"A":"%s"}}`},
		"folder":          {"run_command", `{"command":["echo"],"dir":"/%s"}`},
		"code":            {"run_code", `{"language":"bash","code":"%s"}`},
		"read":            {"read_file", `{"path":"/%s"}`},
		"write":           {"write_file", `{"path":"/%s","content":""}`},
		"content":         {"write_file", `{"path":"/content","content":"%s"}`},
		"list":            {"list_files", `{"path":"/%s"}`},
	} {
		for _, none := range []string{`\udcff`, `\ud83d`, `\ud83dx`, "\xff"} {
			arguments := json.RawMessage(fmt.Sprintf(tool[1], none))
			if _, err := p.session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool[0], Arguments: arguments}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
				t.Errorf("%s: %q came through: %v", name, none, err)
			}
		}
		if name == "read" {
			continue // there is no such file
		}
		if _, failure := p.call(tool[0], json.RawMessage(fmt.Sprintf(tool[1], `\ud83d\ude00`))); failure != "" && name != "shell's text" && name != "code" {
			t.Errorf("%s: %s", name, failure)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for path := range h.files {
		if strings.ContainsRune(path, '\ufffd') {
			t.Errorf("%q was written", path)
		}
	}
}

// TestACommandAsText: a text is a shell's, and a list is not.
func TestACommandAsText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	p.call("run_command", object{"command": "ls -l | head"})
	p.must("run_command", object{"command": []string{"echo", "ls -l | head"}})
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, want := range map[string][]string{"c1": {"sh", "-c", "ls -l | head"}, "c2": {"echo", "ls -l | head"}} {
		if got := h.commands[id].Argv; !slices.Equal(got, want) {
			t.Errorf("%s ran %q, want %q", id, got, want)
		}
	}
}

// TestEmptyTexts: a text with nothing in it is a text. A program of none does nothing and ends well, a
// variable is there, a file is empty; an option that is empty is one that was not given. Those that
// name something, or tell a person why, are refused (TestWrongCalls).
func TestEmptyTexts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	for i, c := range []struct {
		tool string
		in   object
		want []string
	}{
		{"run_code", object{"language": "python", "code": ""}, []string{"python3", "-c", ""}},
		{"run_code", object{"language": "javascript", "code": ""}, []string{"node", "-e", ""}},
		{"run_code", object{"language": "bash", "code": ""}, []string{"bash", "-c", ""}},
		{"run_command", object{"command": ""}, []string{"sh", "-c", ""}},
		{"run_command", object{"command": []string{"sh", ""}}, []string{"sh", ""}},
		{"run_code", object{"language": "bash", "code": "", "dir": "", "sandbox": "", "env": object{"EMPTY": ""}}, []string{"bash", "-c", ""}},
	} {
		if out := p.must(c.tool, c.in); out["exit_code"] != 0.0 || out["stdout"] != "" || out["stderr"] != "" || out["error"] != nil {
			t.Errorf("%s %v: %v", c.tool, c.in, out)
		}
		started := look(h, func() api.StartCommand { return h.commands[fmt.Sprintf("c%d", i+1)] })
		if !slices.Equal(started.Argv, c.want) {
			t.Errorf("%s %v ran %q, want %q", c.tool, c.in, started.Argv, c.want)
		}
		if _, there := started.Env["EMPTY"]; there != (c.in["env"] != nil) {
			t.Errorf("%s %v has the environment %q", c.tool, c.in, started.Env)
		}
	}
	for _, binary := range []bool{false, true} {
		p.must("write_file", object{"path": "/empty", "content": "", "binary": binary})
		if out := p.must("read_file", object{"path": "/empty", "sandbox": ""}); out["content"] != "" || out["size"] != 0.0 || out["binary"] != false {
			t.Errorf("an empty file, written with binary %v, is read as %v", binary, out)
		}
	}
	p.must("list_files", object{"path": ""})
	p.must("create_sandbox", object{"task": ""})
	p.must("why_blocked", object{"sandbox": ""})
}

// TestAResultIsSentOnce: a client that reads texts and one that reads structured results both get
// the output, and neither gets it twice.
func TestAResultIsSentOnce(t *testing.T) {
	t.Parallel()
	p := join(t, newServer(newHouse(t), nil), nil)
	output := strings.Repeat("a line of an output, and some more\n", 64<<10/36)
	result, err := p.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_command", Arguments: command("echo", output)})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes are %d on the wire", len(output), len(sent))
	if len(sent) > len(output)*11/10 {
		t.Errorf("%d bytes of output are %d on the wire", len(output), len(sent))
	}
	if n := strings.Count(string(sent), "a line"); n != strings.Count(output, "a line") {
		t.Errorf("the output's lines are there %d times, of %d", n, strings.Count(output, "a line"))
	}
	if out, _ := read(t, result); out["stdout"] != output+"\n" {
		t.Errorf("%.200v", out)
	}
}

// TestReadThroughALink: the size is that of the file that is read, at each offset. A link's own
// size is that of its target's name.
func TestReadThroughALink(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	h.mu.Lock()
	h.files["/l3"], h.links = strings.Repeat("x", 3_000_000), map[string]string{"/l3": "f3"}
	h.mu.Unlock()
	for _, offset := range []int{0, 1 << 20, 2_999_999, 3_000_000} {
		out := p.must("read_file", object{"path": "/l3", "offset": offset, "max_bytes": 10})
		if out["size"] != 3_000_000.0 || out["truncated"] != (offset+10 < 3_000_000) {
			t.Errorf("at %d: size %v, truncated %v", offset, out["size"], out["truncated"])
		}
	}
}

// TestNamesInAList: a name is exact, or marked as one that no tool takes.
func TestNamesInAList(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	h.mu.Lock()
	for _, name := range []string{`/a\nb`, "/a\nb", "/bad\ufffd", "/é"} {
		h.listed = append(h.listed, api.FileInfo{Path: name, Kind: "file"})
	}
	h.mu.Unlock()
	entries, _ := p.must("list_files", nil)["entries"].([]any)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprint(e.(map[string]any)["path"], " ", e.(map[string]any)["escaped"]))
	}
	if want := []string{`/a\nb <nil>`, `/a\nb true`, "/bad\ufffd true", "/é <nil>"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
