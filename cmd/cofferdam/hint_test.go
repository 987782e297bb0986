package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
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
		"pip install --targ lib flask":         {python, write, ""},
		"pip install -Ut lib flask":            {python, write, ""},
		"uv pip install -p .venv flask":        {python, write, ""},
		".venv/bin/pip install flask":          {python, write, ""},
		".venv/bin/python -m pip install x":    {python, write, ""},
		".venv/bin/uv pip install x":           {python, write, ""},
		"pip install -qU --no-deps flask":      {python, write, ""}, // it is not known what -qU is
		"pip install -q -U --pre -r r.txt":     {python, write, "gone with it"},
		"pip download flask":                   {python, write, ""},
		"uv sync":                              {python, write, ""},
		"npm ci":                               {node, write, ""},
		"pip install six":                      {nil, write, ""},
		"pip":                                  {python, write, ""},
		"python3 -m":                           {python, write, ""},
		"pip install six flask":                {python, []api.Mount{{Source: "/v", Destination: "/home/agent/.venv", ReadWrite: true}}, ""},
	} {
		got := keepHint(strings.Fields(command), api.CreateSandbox{Workdir: "/workspace/src", Mounts: of.mounts}, of.installed)
		if (got == "") != (of.want == "") || !strings.Contains(got, of.want) {
			t.Errorf("%s: %q", command, got)
		}
	}
	argv := []string{"pip", "install", "it's>=2", "a b"}
	for name, request := range map[string]api.CreateSandbox{
		"can't be written":          {Workdir: "/workspace", Mounts: read},
		"is not where it starts":    {Workdir: "/home/agent", Mounts: write},
		"is beside where it starts": {Workdir: "/workspaces", Mounts: write},
		"is not known to be that":   {Mounts: write},
	} {
		if got := keepHint(argv, request, python); strings.Contains(got, ".venv") || !strings.Contains(got, "gone with it") {
			t.Errorf("a mount that %s is to have an environment: %s", name, got)
		}
	}
	for name, request := range map[string]api.CreateSandbox{
		"a home":     {Home: &api.Home{Name: "a", Keeps: []string{".venv"}}},
		"a target":   {Env: map[string]string{"PIP_TARGET": "/workspace/lib"}},
		"an own one": {Env: map[string]string{"VIRTUAL_ENV": "/workspace/.venv"}},
	} {
		if got := keepHint(argv, request, python); got != "" {
			t.Errorf("%s keeps it: %s", name, got)
		}
	}
	got := keepHint(argv, api.CreateSandbox{}, python)
	_, line, _ := strings.Cut(got, "-- ")
	shown, err := exec.CommandContext(t.Context(), "sh", "-c", "pip() { printf '%s\\n' \"$@\"; }; sh() { eval \"${2% && *}\"; }; "+line).Output()
	if err != nil || string(shown) != "install\nit's>=2\na b\n" {
		t.Errorf("a shell reads %q, %v of %s", shown, err, line)
	}
}

// TestAProjectsFileIsMissedByItsClient: the client of a project that was started without a mount fails with the name of
// its own file, which the command does not name; a mount that shows it, or a directory without it, needs no word.
func TestAProjectsFileIsMissedByItsClient(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for command, file := range map[string]string{
		"npm install": "package.json", "npm ci": "package.json", "pnpm install --frozen-lockfile": "package.json",
		"uv sync --frozen": "pyproject.toml", "uv run main": "pyproject.toml", "go build ./...": "go.mod", "go test": "go.mod", "make": "Makefile",
		"make all": "Makefile", "pip install .": "pyproject.toml", "pip install -e .": "setup.py",
	} {
		argv := strings.Fields(command)
		if got := mountHints(argv, "", nil, false); len(got) > 0 {
			t.Errorf("%s without %s: %q", command, file, got)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mountHints(argv, "", nil, false); len(got) != 1 || !strings.HasPrefix(got[0], file+" is on the host") || !strings.Contains(got[0], "--mount .:/workspace:rw") {
			t.Errorf("%s: %q", command, got)
		}
		if got := mountHints(argv, "/workspace", []api.Mount{{Source: here, Destination: "/workspace"}}, false); len(got) > 0 {
			t.Errorf("%s with a mount: %q", command, got)
		}
		if got := mountHints(argv, "", nil, true); len(got) > 0 {
			t.Errorf("%s that was refused something: %q", command, got)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("pyproject.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"pip install six", "uv pip install six", "python3 -V"} {
		if got := mountHints(strings.Fields(command), "", nil, false); len(got) > 0 {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// TestNoFileIsMissedThatARunSees: a copy of the directory has its files; a command that starts in another mount reads that
// one's; and what a registry did not give, or a host that was refused, is another reason for a client to fail.
func TestNoFileIsMissedThatARunSees(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"package.json", "main.py"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	original, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	made, err := workspace.Make(t.Context(), original, filepath.Join(t.TempDir(), "copy"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{workspace: made, request: api.CreateSandbox{Workdir: workspaceInside, Mounts: []api.Mount{{Source: made.Dir(), Destination: workspaceInside}}}}
	other := []api.Mount{{Source: t.TempDir(), Destination: "/other"}}
	for _, argv := range [][]string{{"npm", "test"}, {"python3", "main.py"}} {
		if got := mountHints(argv, r.request.Workdir, r.seen(), false); len(got) > 0 {
			t.Errorf("%s in a copy: %q", argv, got)
		}
		if got := mountHints(argv, "/home/agent", other, false); len(got) != 1 {
			t.Errorf("INCONCLUSIVE: %s beside a mount: %q", argv, got)
		}
	}
	if got := mountHints([]string{"npm", "test"}, "/other/app", other, false); len(got) > 0 {
		t.Errorf("npm test in another mount: %q", got)
	}
	for _, s := range []api.RunSummary{
		{Refused: []api.Package{{}}}, {Missing: []api.Package{{}}}, {Failed: []api.Package{{}}}, {Hosts: []api.Host{{Refused: 1}}},
	} {
		if !anotherReason(s) {
			t.Errorf("no other reason in %+v", s)
		}
	}
	if anotherReason(api.RunSummary{Hosts: []api.Host{{Connections: 1}}}) {
		t.Error("a host that was reached is a reason to fail")
	}
}

// TestASuggestionThatWasNotTriedSaysHowToTryIt: with the run that it is of.
func TestASuggestionThatWasNotTriedSaysHowToTryIt(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]string{
		"run-1": "cofferdam policy suggest --run run-1 --mount .:/workspace -- npm install",
		"":      "cofferdam policy suggest --mount .:/workspace -- npm install",
	} {
		if got := notTried(run); !strings.HasSuffix(got, want) {
			t.Errorf("%q: %q", run, got)
		}
	}
}
