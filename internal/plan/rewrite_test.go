package plan

import (
	"os/exec"
	"strings"
	"testing"
)

// rewritten is the part of a rewrite's script behind its prelude.
func rewritten(t *testing.T, r Rewrite) string {
	t.Helper()
	if len(r.Argv) != 3 || r.Argv[0] != "sh" || r.Argv[1] != "-c" {
		t.Fatalf("the rewrite is %q", r.Argv)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", r.Argv[2]).CombinedOutput(); err != nil {
		t.Fatalf("sh does not read the script: %v\n%s\n%s", err, out, r.Argv[2])
	}
	_, rest, _ := strings.Cut(r.Argv[2], "cd \"$work\" || exit 125\n")
	return rest
}

func TestRewrites(t *testing.T) {
	for _, tt := range []struct {
		command string
		client  Client
		want    []string // lines of the script
		not     string
	}{
		{"pip install rich", Pip, []string{`pip install --dry-run --ignore-installed --no-input --report "$out/report.json" rich || exit`}, ""},
		{"/usr/bin/pip3.11 install --dry-run --report x -r a.txt", Pip, []string{`/usr/bin/pip3.11 install --dry-run --ignore-installed --no-input --report "$out/report.json" -r a.txt || exit`}, " x "},
		{"python3 -m pip install rich", Pip, []string{`python3 -m pip install --dry-run --ignore-installed --no-input --report "$out/report.json" rich || exit`}, ""},
		{"uv pip install --system -c c.txt -r in.txt rich>=13", UVPip, []string{
			`printf '%s\n' 'rich>=13' >"$out/wanted.in" || exit`,
			`uv pip compile -q --generate-hashes --no-header --no-annotate -c c.txt -o "$out/requirements.txt" "$out/wanted.in" in.txt || exit`,
		}, "--system"},
		{"uv add rich --frozen", UVProject, []string{emptyProject, "uv add --no-sync rich || exit"}, "--frozen --no-sync"},
		{"uv sync --group dev -U", UVProject, []string{
			"uv lock -U || exit",
			`uv export -q --frozen --no-hashes --no-header --no-annotate --no-emit-workspace --group=dev >"$out/wanted.in" || exit`,
		}, "--universal"},
		{"uv sync --frozen", UVProject, nil, "uv lock"},
		{"uv lock", UVProject, []string{"uv lock || exit"}, ""},
		{"npm i -g --ignore-scripts express@4", NPM, []string{"npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved express@4 || exit"}, " -g"},
		{"npm ci", NPM, nil, "npm install"},
		{"pnpm add express", PNPM, []string{"pnpm add --lockfile-only --ignore-scripts express || exit"}, ""},
		{"pnpm install --frozen-lockfile", PNPM, []string{"pnpm install --lockfile-only --ignore-scripts --no-frozen-lockfile || exit"}, " --frozen-lockfile"},
		{"go get a.example/m@latest", GoGet, []string{emptyModule, "go get a.example/m@latest || exit"}, ""},
		{"go install -v a.example/m@v1.2.3", GoGet, []string{"go get a.example/m@v1.2.3 || exit"}, "go install"},
		{"go mod download -json", GoModules, []string{`go mod download -json >"$out/download.json" || exit`}, ""},
	} {
		r, err := Of(strings.Fields(tt.command), Project{})
		if err != nil {
			t.Errorf("%s: %v", tt.command, err)
			continue
		}
		text := rewritten(t, r)
		if r.Client != tt.client {
			t.Errorf("%s is for %s, want %s", tt.command, r.Client, tt.client)
		}
		for _, line := range tt.want {
			if !strings.Contains("\n"+text, "\n"+line+"\n") {
				t.Errorf("%s: the script has no line %q:\n%s", tt.command, line, text)
			}
		}
		if tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: the script has %q:\n%s", tt.command, tt.not, text)
		}
	}
}

func TestWhatCannotBePlanned(t *testing.T) {
	for command, why := range map[string]string{
		"":                                 "these can be planned",
		"make install":                     "these can: pip install",
		"pip download rich":                "these can: pip install",
		"npm run build":                    "these can: pip install",
		"uv pip install --what rich":       `the option "--what"`,
		"uv pip install --system":          "names no package",
		"uv sync rich":                     "takes no packages",
		"uv add --script x.py rich":        "a script's own requirements",
		"npm ci express":                   "takes no packages",
		"npm install --prefix=/x express":  "the project's folder",
		"pnpm add -g express":              "not the project's install",
		"go get -C /x a.example/m":         "another folder's",
		"go install -toolexec x a.example": "can't be planned",
		"cargo add serde":                  "these can: pip install",
	} {
		if r, err := Of(strings.Fields(command), Project{}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q gave %q, %v; want an error about %q", command, r.Argv, err, why)
		}
	}
}

// TestWordsAreWords: whatever a word has in it, the shell hands it on as one.
func TestWordsAreWords(t *testing.T) {
	for _, word := range []string{"a b", "$(touch x)", "`id`", "it's", "a;b", "*", "~", "", "\n", "\"", "\\", "a\tb", "-n", "ä"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' "+quote(word)+" end").Output()
		if err != nil || string(out) != word+"|end|" {
			t.Errorf("%q came out as %q (%v)", word, out, err)
		}
	}
}

// TestTheCopy runs the prelude itself: files are copied, large ones and what
// clients make are not, and the frames come out.
func TestTheCopy(t *testing.T) {
	top := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	must := func(words ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	must("sh", "-c", `mkdir -p "in side/node_modules/x" .git && echo one >"in side/requirements.txt" && echo no >"in side/node_modules/x/requirements.txt" && echo no >.git/x && truncate -s 17M large && ln -s /etc/passwd link`)
	argv := Project{Top: top, Here: "in side"}.script(
		"echo said", "ls -A .. >&2", `[ -e node_modules ] && exit 3; [ -e ../large ] && exit 4; [ -e ../.git ] && exit 5; [ -L ../link ] || exit 6`,
		"echo two >>requirements.txt", "emit requirements.txt requirements.txt", "emit uv.lock none")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	docs, err := ReadOutput(out)
	if err != nil || len(docs) != 1 || string(docs["requirements.txt"]) != "one\ntwo\n" || !strings.HasPrefix(said.String(), "said\n") {
		t.Errorf("documents %q, %v; said %q", docs, err, said.String())
	}
	must("sh", "-c", `[ "$(cat "in side/requirements.txt")" = one ]`)
}
