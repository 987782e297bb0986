package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testServer = mcpServer{command: "cofferdam", args: []string{"mcp", "--policy", "/p.yaml"}}

// TestClientFilesKeepWhatElseIsThere: for each client an entry is put in, is found to be
// there, and is taken out again, and then the file is what it was, byte for byte.
func TestClientFilesKeepWhatElseIsThere(t *testing.T) {
	t.Parallel()
	documents := []string{
		"", "{}", "{}\n", "{\n  \"theme\": \"dark\"\n}\n", "{\"a\":1,\"b\":{\"c\":[1,2,{\"mcpServers\":3}]}}",
		"{\n\t\"mcpServers\": {\n\t\t\"other\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t},\n\t\"n\": 12345678901234567890.10\n}\n",
		"{\n    \"mcp\": {\"other\": {\"type\": \"local\", \"command\": [\"x\"]}},\n    \"mcpServers\": { \"z\": {} },\n    \"last\": \"\\u00e9\\/\"\n}",
		"{\"mcp\": {\"servers\": {\"x\": {\"command\": []}}}}",
	}
	tables := []string{
		"", "model = \"m\"\n", "model = \"m\"", "# a comment\n[mcp_servers.other]\ncommand = \"x\" # keep\n\n[profiles.a]\nb = 1\n",
		"text = \"\"\"\n[mcp_servers.cofferdam]\n\"\"\"\n", "[[list]]\na = 1\n",
	}
	for _, c := range mcpClients() {
		edit, all := editJSON, documents
		if c.toml {
			edit, all = editTOML, tables
		}
		for _, before := range all {
			with, err := edit([]byte(before), c.member, c.entry(testServer))
			if err != nil {
				t.Errorf("%s: %q: %v", c.name, before, err)
				continue
			}
			if !strings.Contains(string(with), "/p.yaml") {
				t.Errorf("%s: %q became %q", c.name, before, with)
			}
			again, err := edit(with, c.member, c.entry(testServer))
			if err != nil || string(again) != string(with) {
				t.Errorf("%s: %q became %q, %v when it was put in twice", c.name, with, again, err)
			}
			out, err := edit(with, c.member, nil)
			if err != nil || strings.Contains(string(out), "/p.yaml") {
				t.Errorf("%s: %q became %q, %v", c.name, with, out, err)
			}
			if !c.toml {
				before := strings.TrimSpace(before)
				if before == "" {
					before = "{}"
				}
				var was, is any
				if err := json.Unmarshal([]byte(before), &was); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(out, &is); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(was, pruned(is, was)); diff != "" {
					t.Errorf("%s: %q came back as %q: %s", c.name, before, out, diff)
				}
			} else if strings.TrimSuffix(string(out), "\n") != strings.TrimSuffix(before, "\n") {
				t.Errorf("%s: %q came back as %q", c.name, before, out)
			}
		}
	}
}

// pruned leaves out the empty objects that held our entry and were not there before.
func pruned(is, was any) any {
	now, _ := is.(map[string]any)
	then, _ := was.(map[string]any)
	for _, name := range []string{"mcpServers", "mcp"} {
		if inner, ok := now[name].(map[string]any); ok && len(inner) == 0 {
			if _, had := then[name]; !had {
				delete(now, name)
			}
		}
	}
	return now
}

// TestNeighboursKeepTheirBytes: what is around an entry is not written anew.
func TestNeighboursKeepTheirBytes(t *testing.T) {
	t.Parallel()
	claude, err := mcpClientOf("claude")
	if err != nil {
		t.Fatal(err)
	}
	before := "{\n  \"n\":   1.50,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  },\n  \"z\": [ 1,2 ]\n}\n"
	want := "{\n  \"n\":   1.50,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"cofferdam\": {\n      \"type\": \"stdio\",\n      \"command\": \"cofferdam\",\n      \"args\": [\n        \"mcp\",\n        \"--policy\",\n        \"/p.yaml\"\n      ]\n    }\n  },\n  \"z\": [ 1,2 ]\n}\n"
	after, err := editJSON([]byte(before), claude.member, claude.entry(testServer))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(after)); diff != "" {
		t.Error(diff)
	}
	if out, err := editJSON(after, claude.member, nil); err != nil || string(out) != before {
		t.Errorf("it came back as %q, %v", out, err)
	}
	first := strings.Replace(before, `"a": {"command": "x"}`, `"cofferdam": {}, "a": {"command": "x"}`, 1)
	if out, err := editJSON([]byte(first), claude.member, nil); err != nil || strings.Contains(string(out), "cofferdam") || !strings.Contains(string(out), `"a": {"command": "x"}`) {
		t.Errorf("the first of two was taken out as %q, %v", out, err)
	}
}

// TestWhatCanNotBeReadIsLeftAlone: no file that is not understood is changed.
func TestWhatCanNotBeReadIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, c := range mcpClients() {
		edit := editJSON
		all := []string{"{", "[]", "null", "{\"a\":1} x", "{} {}", "// comment\n{}", "{\"a\":1,\"a\":2}", `{"mcpServers": [], "mcp": 3}`, "{\"a\": \xff}", `{"mcpServers": {"cofferdam": {}, "cofferdam": {}}, "mcp": {"x": 1, "x": 2}}`}
		if c.toml {
			edit = editTOML
			all = []string{"a = ", "[a]\n[a]\n", "mcp_servers = { cofferdam = { command = \"x\" } }\n", "mcp_servers = 3\n", "[mcp_servers]\ncofferdam.command = \"x\"\n"}
		}
		for _, text := range all {
			if after, err := edit([]byte(text), c.member, c.entry(testServer)); err == nil {
				t.Errorf("%s: %q became %q", c.name, text, after)
			} else if len(err.Error()) > 400 {
				t.Errorf("%s: %q: a long error: %v", c.name, text, err)
			}
		}
	}
}

// TestAnEditIsWrittenOnlyIfTheFileIsWhatWasShown: and through a link, with its mode.
func TestAnEditIsWrittenOnlyIfTheFileIsWhatWasShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(target, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	client, err := mcpClientOf("claude")
	if err != nil {
		t.Fatal(err)
	}
	client.project = link
	flags := mcpInstallFlags{project: true}
	e, err := flags.planEdit(client, client.entry(testServer))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.writeFile(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(target)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if at, err := os.Readlink(link); err != nil || at != "real.json" {
		t.Errorf("the link leads to %q, %v", at, err)
	}
	if err := e.writeFile(); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("a second write of the same edit: %v", err)
	}
}
