package main

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestAnInstallThatIsGoneIsTold: a run that does nothing but install with pip has left nothing, and says how to have it
// used or kept; what goes elsewhere, or did not come in, needs no word.
func TestAnInstallThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	python, node := []api.Package{{Ecosystem: "python", Name: "flask"}}, []api.Package{{Ecosystem: "node", Name: "express"}}
	write, read := []api.Mount{{Source: "/p", Destination: "/workspace", ReadWrite: true}}, []api.Mount{{Source: "/p", Destination: "/workspace"}}
	for command, of := range map[string]struct {
		installed []api.Package
		mounts    []api.Mount
		want      string // a part of it; empty: no hint
	}{
		"pip install -r requirements.txt":      {python, write, "-- sh -c 'pip install -r requirements.txt && python3 ...'"},
		"pip3 install flask":                   {python, write, "python3 -m venv .venv"},
		"python3 -m pip install flask":         {python, nil, "python3 -m pip install flask && python3"},
		"uv pip install flask":                 {python, read, "uv pip install flask && python3"},
		"pip install --target lib flask":       {python, write, ""},
		"pip install -tlib flask":              {python, write, ""},
		"uv pip install --python=.venv flask":  {python, write, ""},
		"pip install --prefix=/workspace/x fl": {python, write, ""},
		"pip download flask":                   {python, write, ""},
		"uv sync":                              {python, write, ""},
		"npm ci":                               {node, write, ""},
		"pip install six":                      {nil, write, ""},
		"pip":                                  {python, write, ""},
		"python3 -m":                           {python, write, ""},
		"pip install six flask":                {python, []api.Mount{{Source: "/v", Destination: "/home/agent/.venv", ReadWrite: true}}, ""},
	} {
		got := keepHint(strings.Fields(command), api.CreateSandbox{Mounts: of.mounts}, of.installed)
		if (got == "") != (of.want == "") || !strings.Contains(got, of.want) {
			t.Errorf("%s: %q", command, got)
		}
	}
	if got := keepHint([]string{"pip", "install", "flask"}, api.CreateSandbox{Mounts: read}, python); strings.Contains(got, ".venv") {
		t.Errorf("a mount that can't be written is to have an environment: %s", got)
	}
}
