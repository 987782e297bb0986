package follow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// made is a tree of texts; a link is "-> TARGET", and its second target comes after " | ".
func made(all map[string]string) Tree {
	t := Tree{Root: "/home/me/project", Links: map[string][]string{}}
	t.Paths = maps.Keys(all)
	t.Texts = func(name string) [][]byte { return [][]byte{[]byte(all[name])} }
	for name, text := range all {
		if targets, ok := strings.CutPrefix(text, "-> "); ok {
			t.Links[name] = strings.Split(targets, " | ")
			all[name] = ""
		}
	}
	return t
}

// TestFind: whatever leads to a file from one that programs start or obey has it count as that.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  map[string]autorun.Level // of those that lead somewhere
		plain []string                 // the controls
	}{
		"a link": {
			map[string]string{".envrc": "-> conf/direnv", "conf/direnv": "", "conf/other": ""},
			map[string]autorun.Level{"conf/direnv": autorun.Started},
			[]string{"conf/other"},
		},
		"a link to instructions": {
			map[string]string{"CLAUDE.md": "-> docs/guide.md"},
			map[string]autorun.Level{"docs/guide.md": autorun.Instructing},
			[]string{"docs/x.md", "docs"},
		},
		"a link of many": {
			map[string]string{".envrc": "-> a", "a": "-> sub/../b", "b": "-> c/d", "c": "-> deep/e"},
			map[string]autorun.Level{"a": autorun.Started, "b": autorun.Started, "c": autorun.Started, "deep/e/d": autorun.Started},
			[]string{"deep/e"},
		},
		"a link that would come": {
			map[string]string{".envrc": "-> old | new"},
			map[string]autorun.Level{"old": autorun.Started, "new": autorun.Started},
			[]string{"other"},
		},
		"a link on the way that would come": {
			map[string]string{"CLAUDE.md": "-> docs/guide.md", "docs": "-> before | after"},
			map[string]autorun.Level{"docs": autorun.Instructing, "before/guide.md": autorun.Instructing, "after/guide.md": autorun.Instructing},
			[]string{"after/x"},
		},
		"links to directories": {
			map[string]string{".vscode": "-> conf/code", "conf/code/tasks.json": `{"command": "${workspaceFolder}/scripts/run.sh"}`, "scripts/run.sh": "", "scripts/x.sh": ""},
			map[string]autorun.Level{"conf/code/tasks.json": autorun.Started, "conf/code/new": autorun.Started, "scripts/run.sh": autorun.Started},
			[]string{"scripts/x.sh"},
		},
		"absolute, and out and in again": {
			map[string]string{".envrc": "-> /home/me/project/one", ".npmrc": "-> ../project/two", ".bashrc": "-> /elsewhere"},
			map[string]autorun.Level{"one": autorun.Started, "two": autorun.Started},
			[]string{"elsewhere"},
		},
		"links in a circle": {
			map[string]string{".envrc": "-> a", "a": "-> b | c", "b": "-> a | c", "c": "-> a/x | b | end"},
			map[string]autorun.Level{"end": autorun.Started},
			[]string{"other"},
		},
		"git's settings": {
			map[string]string{
				".git/config":            "[core]\n\thooksPath = tools/hooks\n\tfsmonitor = watch\n[include]\n\tpath = ../conf/more\n[alias]\n\tst = !sh \"./tools/a b.sh\"\n[filter \"x\"]\n\tclean = tools/clean %f\n",
				"tools/hooks/pre-commit": "", "watch": "", "conf/more": "[core]\n\tpager=page.sh\n", "page.sh": "", "tools/a b.sh": "", "tools/clean": "", "origin": "",
			},
			map[string]autorun.Level{"tools/hooks/pre-commit": autorun.Started, "tools/hooks/new": autorun.Started, "watch": autorun.Started, "conf/more": autorun.Started, "page.sh": autorun.Started, "tools/a b.sh": autorun.Started, "tools/clean": autorun.Started},
			[]string{"origin", "tools"},
		},
		"all of it is hooks": {
			map[string]string{".git/config": "[core]\n\thookspath=.\n", "pre-commit": "", "main.go": ""},
			map[string]autorun.Level{"pre-commit": autorun.Started, "post-merge": autorun.Started},
			[]string{"main.go"},
		},
		"a hook, and what it runs": {
			map[string]string{".git/hooks/pre-push": "#!/bin/sh\nexec scripts/check.sh\n", "scripts/check.sh": "python3 -m tools.lint\ngo run ./cmd/gen\nnpm test", "tools/lint.py": "", "cmd/gen/main.go": "", "test/x": "", ".git/hooks/a.sample": "sh scripts/sample.sh", "scripts/sample.sh": ""},
			map[string]autorun.Level{"scripts/check.sh": autorun.Started, "tools/lint.py": autorun.Started, "cmd/gen/main.go": autorun.Started},
			[]string{"test/x", "scripts/sample.sh"},
		},
		"direnv": {
			map[string]string{".envrc": "source_env conf/env\nPATH_add helpers\nuse flake ./nix\n", "conf/env/.envrc": "", "conf/env/x": "", "helpers/ls": "", "nix/flake.nix": "", "src/x": ""},
			map[string]autorun.Level{"conf/env/x": autorun.Started, "helpers/ls": autorun.Started, "nix/a": autorun.Started},
			[]string{"src/x"},
		},
		"agents": {
			map[string]string{".mcp.json": `{"args": ["tools/server.py", "--dir=./data"]}`, ".claude/settings.json": `{"command": "\"$CLAUDE_PROJECT_DIR\"/hooks/x.sh\nC:\\tools\\y.ps1"}`, "tools/server.py": "", "hooks/x.sh": "", "tools/y.ps1": "", "data/a": ""},
			map[string]autorun.Level{"tools/server.py": autorun.Started, "hooks/x.sh": autorun.Started, "data/a": autorun.Started},
			[]string{"tools/other"},
		},
		"clients": {
			map[string]string{".npmrc": "node-options=--require ./lib/pre.js\nscript-shell=./lib/sh\n", "lib/pre.js": "", "lib/sh": "", ".yarnrc.yml": "yarnPath: lib/yarn.cjs\n", "lib/yarn.cjs": "", "lib/main.js": ""},
			map[string]autorun.Level{"lib/pre.js": autorun.Started, "lib/sh": autorun.Started, "lib/yarn.cjs": autorun.Started},
			[]string{"lib/main.js", "lib"},
		},
		"checkers": {
			map[string]string{"eslint.config.js": "import rules from './lint/rules'\nexport default [{ files: ['src/**/*.ts'] }, path.resolve(__dirname, 'src')]\n", "lint/rules.ts": "", "src/a.ts": ""},
			map[string]autorun.Level{"lint/rules.ts": autorun.Started},
			[]string{"src/a.ts", "src"},
		},
		"what instructions import": {
			map[string]string{"AGENTS.md": "See @docs/style.md, and read src/main.go.\n", "docs/style.md": "@more.md", "docs/more.md": "", "src/main.go": ""},
			map[string]autorun.Level{"docs/style.md": autorun.Instructing, "docs/more.md": autorun.Instructing},
			[]string{"src/main.go"},
		},
		"in every form of a name": {
			map[string]string{".ENVRC": "source ./Conf/Env.sh", "conf/env.sh": ""},
			map[string]autorun.Level{"CONF/env.sh": autorun.Started},
			[]string{"conf/x"},
		},
		"a hook that enters a directory": {
			map[string]string{".husky/pre-commit": "cd web && ./check.sh && npm run lint\n", "web/check.sh": "", "web/package.json": "", "web/src/a.ts": "", "web/b.ts": ""},
			map[string]autorun.Level{"web/check.sh": autorun.Started, "web/package.json": autorun.Started},
			[]string{"web/src/a.ts", "web/b.ts", "web"},
		},
		"settings of hooks": {
			map[string]string{".pre-commit-config.yaml": "exclude: ^docs/\nrepos:\n- hooks:\n  - entry: ./tools/check.sh\n    files: ^src/.*\\.py$\n", "tools/check.sh": "", "docs/a.md": "", "src/a.py": ""},
			map[string]autorun.Level{"tools/check.sh": autorun.Started},
			[]string{"docs/a.md", "src/a.py"},
		},
		// The usual flow: none of these makes an apply leave out the work.
		"what agents and editors may read, and speak of": {
			map[string]string{
				".claude/settings.json":   `{"permissions": {"allow": ["Edit(src/**)", "Read(./docs/**)", "Bash(go test ./internal/...)"], "additionalDirectories": ["lib/"]}, "hooks": {"command": "tools/fmt.sh"}}`,
				".claude/commands/fix.md": "---\nallowed-tools: Bash(src/)\n---\nFix src/main.go, and what is in src/ and docs/. !`tools/status.sh`\n", ".cursor/rules/a.mdc": "---\nglobs: src/**/*.ts\n---\nSee src/a.ts, @docs/style.md\n",
				".gitattributes": "package-lock.json -diff\ndocs/** linguist-documentation\n", ".gitmodules": "[submodule]\n\tpath = lib\n", ".git/info/attributes": "src/a.ts -diff\n",
				".idea/workspace.xml": `<entry file="file://$PROJECT_DIR$/src/main.go"/><change beforePath="$PROJECT_DIR$/src/a.ts" afterPath="$PROJECT_DIR$/src/a.ts"/><option name="SCRIPT_PATH" value="$PROJECT_DIR$/tools/start.sh"/>`,
				".bloop/a.json":       `{"sources": ["src/main.go"]}`, "package-lock.json": "", "src/main.go": "", "src/a.ts": "", "docs/a.md": "", "docs/style.md": "", "internal/x": "", "lib/x": "", "tools/fmt.sh": "", "tools/status.sh": "", "tools/start.sh": "",
			},
			map[string]autorun.Level{"tools/fmt.sh": autorun.Started, "tools/status.sh": autorun.Started, "tools/start.sh": autorun.Started, "docs/style.md": autorun.Started},
			[]string{"package-lock.json", "src/main.go", "src/a.ts", "src", "docs/a.md", "docs", "internal/x", "lib/x", "lib"},
		},
		"what nothing starts": {
			map[string]string{"README.md": "run scripts/x.sh", "scripts/x.sh": "", "link": "-> target", "target": "", ".github/workflows/ci.yml": "run: scripts/ci.sh", "scripts/ci.sh": "", "node_modules/a/.envrc": "source ../../src/x.sh", "src/x.sh": "", "Makefile": "include conf.mkx", "conf.mkx": ""},
			nil,
			[]string{"scripts/x.sh", "target", "scripts/ci.sh", "src/x.sh", "conf.mkx"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := made(test.files)
			files := autorun.Know(tree.Paths)
			files = files.With(Find(files, tree, nil)...)
			for at, want := range test.want {
				if got := files.Level(at); got != want {
					t.Errorf("%s: %d, want %d", at, got, want)
				}
			}
			for _, at := range test.plain {
				if got := files.Level(at); got != autorun.Plain {
					t.Errorf("%s: %d, and nothing leads there", at, got)
				}
			}
		})
	}
}

// TestOutside: settings that lie elsewhere name files from the directories that they are in force in.
func TestOutside(t *testing.T) {
	t.Parallel()
	tree := made(map[string]string{"hooks/pre-commit": "", "conf/env.sh": "", "tools/x": "", "deep/hooks/a": ""})
	files := autorun.Know(tree.Paths)
	leads := Find(files, tree, []Outside{
		{Bases: []string{"/home/me/project", "/home/me"}, Text: []byte("[core]\n\thooksPath = hooks\n")},
		{Bases: []string{"/home/me"}, Text: []byte(". ~/project/conf/env.sh\nexport A=/home/me/project/tools/x\n")},
	})
	var got []string
	for _, l := range leads {
		got = append(got, l.Path)
	}
	if want := []string{"conf/env.sh", "hooks", "tools/x"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
