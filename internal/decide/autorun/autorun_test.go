package autorun

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLevels: names count at any depth, in any case, and for all that is below them.
func TestLevels(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)))
	for name, want := range map[string]Level{
		".git/config": Started, "sub/.GIT/hooks/x": Started, ".vscode/tasks.json": Started, "a/b/.envrc": Started,
		"opencode.json": Started, ".opencode/plugin/x.js": Started, ".qwen/settings.json": Started, ".cargo/config.toml": Started,
		".github/workflows/ci.yml": Started, ".npmrc": Started, ".pnpmfile.cjs": Started, "lefthook.yml": Started, ".mise.toml": Started,
		"x/evil.pth": Started, "my.code-workspace": Started, "cofferdam.yaml": Deciding, "sub/.AIignore": Deciding,
		"Makefile": Used, "sub/conftest.py": Used, "rules.mk": Used,
		"sub/.hg/hgrc": Started, ".jj/x": Started, ".helix/languages.toml": Started, ".config/mise/config.toml": Started, "sitecustomize/__init__.py": Started,
		"lefthook-local.yaml": Started,
		// The same names to some file system.
		".v\u017fcode/tasks.json": Started, ".g\u200cit/config": Started, ".git\u200d/x": Started, ".gitcon\ufb01g": Started, ".\u212airo/x": Started,
		".git./config": Started, ".git /config": Started, ".git::$INDEX_ALLOCATION/config": Started, "GIT~1/config": Started, ".envrc. .": Started,
		"src/main.go": Plain, "a/..b/c": Hidden, "caf\u00e9/x:y": Plain, "git/config": Plain, "README.md": Plain, ".gitignore": Plain, "HEAD": Plain, "config": Plain, "objects/x": Plain,
		"envrc": Plain, "a.pth.txt": Plain,
	} {
		if got := f.Level(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestKnownPrograms: what each program runs or obeys of a directory that it works in, in the form
// in which it is written there.
func TestKnownPrograms(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)))
	for level, names := range map[Level][]string{
		Deciding: {"cofferdam.yaml", "Cofferdam.YAML", "deep/down/cofferdam.yaml", ".aiignore"},
		Instructing: {
			"CLAUDE.md", "claude.md", "docs/CLAUDE.md", "CLAUDE.local.md", "GROK.md", "IFLOW.md", "CODEBUDDY.md", "codebuff.md", "knowledge.md", "CONVENTIONS.md", "SOUL.md", "llms.txt", "AGENTS.md", "AGENTS.override.md", "Agents.MD", "AGENT.md", "GEMINI.md", "QWEN.md", "CRUSH.md", "WARP.md", "skills/x/SKILL.md",
			".cursorrules", ".windsurfrules", ".clinerules", ".clinerules/01.md", ".roorules", ".roorules-code", ".rooignore", ".goosehints", ".goosehints.local", ".openhands_instructions",
			".augment-guidelines", ".augmentignore", "copilot-instructions.md", "go.instructions.md", "fix.prompt.md", "rules/a.mdc", ".rules", ".cursorignore", ".aiexclude",
		},
		Started: {
			".cursor/rules/a.mdc", ".windsurf/rules/a.md", ".roo/rules/a.md", ".roomodes", ".openhands/setup.sh", ".openhands/microagents/repo.md", ".amazonq/rules/a.md", ".kilocode/mcp.json", ".kiro/steering/a.md",
			".junie/guidelines.md", ".aider.conf.yml", ".aider.model.settings.yml", ".augment/rules/a.md", ".github/copilot-instructions.md", ".github/instructions/a.instructions.md", ".claude-plugin/plugin.json", ".claude/CLAUDE.md",
			".ghci", ".ocamlinit", ".pdbrc", ".pdbrc.py", ".Rprofile", ".Renviron", ".iex.exs", ".irbrc", ".pryrc", ".luarc.json", ".gdbinit", ".lldbinit", "lib/libx.so-gdb.py",
			"eslint.config.js", "eslint.config.mts", ".eslintrc", ".eslintrc.cjs", "prettier.config.mjs", ".prettierrc.js", "vite.config.ts", "vitest.config.ts", "jest.config.js", "postcss.config.cjs", "tailwind.config.js",
			"svelte.config.js", "astro.config.mjs", ".pylintrc", "pylintrc", ".rubocop.yml", ".flake8", "mypy.ini", ".luacheckrc", "hie.yaml",
			".emacs.d/init.el", ".dir-locals.el", ".exrc", ".nvimrc", ".nvim.lua", ".vscode/tasks.json", ".idea/runConfigurations/a.xml", ".run/a.run.xml", ".fleet/run.json", ".zed/tasks.json", "a.code-workspace", "a.sublime-project", "a.sublime-workspace",
			".travis.yml", ".drone.yml", ".drone.star", ".buildkite/pipeline.yml", ".woodpecker.yml", ".woodpecker/a.yml", "Jenkinsfile", "Jenkinsfile.release", "azure-pipelines.yml", ".azure-pipelines/a.yml", ".gitlab-ci.yml", ".gitlab/ci/a.yml",
			".circleci/config.yml", ".github/workflows/ci.yml", "bitbucket-pipelines.yml", ".gitea/workflows/a.yml", ".forgejo/workflows/a.yml", "appveyor.yml", ".cirrus.yml",
			".gitpod.yml", ".gitpod.Dockerfile", ".devcontainer/devcontainer.json", ".devcontainer.json", "shell.nix", "flake.nix", "default.nix", ".envrc", ".mise.toml", ".tool-versions",
			".pre-commit-config.yaml", "lefthook.yml", ".husky/pre-commit", ".lintstagedrc.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins/a.cjs", ".pnpmfile.cjs", "pnpm-workspace.yaml", "bunfig.toml", "pip.conf", "uv.toml",
			".env", ".env.local", ".env.leave", ".env.production", "sub/.rvmrc", ".xonshrc", ".octaverc", "startup.m", ".gclient", ".bazeliskrc", "tools/bazel", "sub/tools/bazel", ".vimrc.local", ".local.vimrc", ".hgrc", ".zlogout", ".ondirrc",
			".venv/bin/python", "venv/bin/python3", "node_modules/.bin/eslint", "node_modules/typescript/lib/tsserver.js", "vendor/bin/phpunit", "pkg/__pycache__/a.cpython-313.pyc", "a.pyc", ".yarn/releases/yarn.cjs", ".terraform/providers/x",
			"rust-analyzer.toml", ".rust-analyzer.toml", "biome.json", ".oxlintrc.json", ".golangci.yml", ".yamllint", "codebuff.json", ".opencode.json", "mcp_config.json", ".mcp/config.json", "my.mcp.json", ".kak.rc", ".projections.json", ".tmuxinator.yml",
			".codebuddy/settings.json", ".iflow/settings.json", ".qoder/settings.json", ".antigravity/mcp.json", ".letta/settings.json", ".forge.toml", "forge.yaml", ".cody/commands.json", "hooks/hooks.json",
			".julia/config/startup.jl", ".erlang", ".psqlrc", ".sqliterc", ".sbclrc", ".inputrc", ".bash_aliases", ".direnv/x", ".envrc.local", "Rprofile.site", "project/.sbt/x",
			".cargo/config.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml", "Gemfile",
		},
		Hidden: {
			".unknownrc", "sub/.unknown/settings.json", ".some-agent/servers.json", ".x/hooks/y", ".foo.toml", ".gitignore.local", "ENVRC~1", "CLAUDE~2.MD", "a/NPMRC~1/x", ".a.", ". a",
		},
		Used: {
			"package.json", "web/package.json", "pyproject.toml", "setup.py", "setup.cfg", "noxfile.py", "tasks.py", "conftest.py", "tox.ini", "go.work", "Cargo.toml",
			"Makefile", "makefile", "GNUmakefile", "Makefile.am", "rules.mk", "Taskfile.yml", "Taskfile.dist.yaml", "justfile", ".justfile", "Rakefile", "lib/tasks/a.rake", "Gulpfile.js", "gulpfile.babel.js", "Gruntfile.ts", "CMakePresets.json", "CMakeLists.txt",
			"babel.config.js", ".babelrc.js", "webpack.config.js", "webpack.config.prod.js", "rollup.config.mjs", "next.config.ts", "nuxt.config.ts",
			"Dockerfile", "Dockerfile.dev", "docker-compose.override.yml", "compose.yml", ".nvmrc",
		},
		// The controls: they have something of a name that counts, and nothing runs them.
		Plain: {
			"claude.md.txt", "my-claude.md", "agents", "rules", "jenkins", "src/eslint.js", "config.js", "vite.ts", "package.jsonx", "travis.yml", "gitpod.yml", "roo.md", "README.md", "docs/agents-guide.md", "envrc", "woodpecker.yml",
			".editorconfig", ".dockerignore", ".env.example", "sub/.gitkeep", "bazel", "tools/bazel.md", "a~b", "notes~", "longername~1", "file~1.text", "env.go", "python",
			"src/main.rs", "main.go", "a/b.py", "makefiles/x", "mdc", "x.md", "nix", "gdb.py",
		},
	} {
		for _, name := range names {
			if got := f.Level(name); got != level {
				t.Errorf("%s: %d, want %d", name, got, level)
			}
		}
	}
}

// TestLevelsSayWhatTheyDo: each but the first has an effect and a caution of its own words, and
// those that steer or decide are brought over by name alone.
func TestLevelsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	effects := map[string]Level{}
	for level := Plain; level <= Deciding; level++ {
		if other, twice := effects[level.Effect()]; twice {
			t.Errorf("%d says the same as %d", level, other)
		}
		effects[level.Effect()] = level
		if (level.Effect() == "") != (level == Plain) || (level.Caution() == "") != (level == Plain) {
			t.Errorf("%d: %q, %q", level, level.Effect(), level.Caution())
		}
		if level.ByName() != (level > Used) {
			t.Errorf("%d: by name: %t", level, level.ByName())
		}
	}
}

// TestDeciding: what the caller knows to decide is known by its path, as the least exact of file
// systems compares it, with what is below it.
func TestDeciding(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)), "conf/Policy.yaml", "./uv.lock", "locks")
	for name, want := range map[string]Level{
		"conf/Policy.yaml": Deciding, "conf/policy.YAML": Deciding, "conf/policy.yaml/x": Deciding, "uv.lock": Deciding, "UV.lock.": Deciding, "locks/a/b": Deciding,
		"policy.yaml": Plain, "conf": Plain, "conf/other.yaml": Plain, "sub/uv.lock": Plain, "lock": Plain,
	} {
		if got := f.Level(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestNamesAreOnce: a name has one level, and is written as it is compared.
func TestNamesAreOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, p := range programs() {
		for _, name := range p.names {
			if other, twice := seen[name]; twice || name != Fold(name) {
				t.Errorf("%s of %s is also of %q, or is not written as it is compared", name, p.name, other)
			}
			seen[name] = p.name
		}
	}
}

// TestRepositories: git itself says what it takes for a repository, and each of those is known.
func TestRepositories(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files []string // with a text after "=", or directories
		want  bool
	}{
		"bare":                     {[]string{"HEAD=ref: refs/heads/main\n", "objects", "refs"}, true},
		"bare, HEAD detached":      {[]string{"HEAD=" + strings.Repeat("a", 40) + "\n", "objects", "refs"}, true},
		"with its parts elsewhere": {[]string{"HEAD=ref: refs/heads/main\n", "commondir=../other\n", "../other/objects", "../other/refs"}, true},
		"no objects":               {[]string{"HEAD=ref: refs/heads/main\n", "refs"}, false},
		"no HEAD":                  {[]string{"objects", "refs", "config=[core]\n"}, false},
		"nothing but a file HEAD":  {[]string{"HEAD=ref: refs/heads/main\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			var paths []string
			for _, file := range tt.files {
				at, text, isFile := strings.Cut(file, "=")
				at = filepath.Join("repo", at)
				paths = append(paths, at)
				full := filepath.Join(top, at)
				if !isFile {
					if err := os.MkdirAll(full, 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "git", "rev-parse", "--git-dir")
			cmd.Dir = filepath.Join(top, "repo")
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+top, "GIT_CONFIG_GLOBAL=/dev/null")
			if taken := cmd.Run() == nil; taken != tt.want {
				t.Fatalf("git takes it for a repository: %t", taken)
			}
			f := Know(slices.Values(paths))
			if got := f.Level("repo/config") == Started; got != tt.want {
				t.Errorf("it is known as one: %t", got)
			}
			if got := f.Level("repo"); (got == Started) != tt.want || f.Level("other/x") != Plain {
				t.Errorf("the directory: %d", got)
			}
		})
	}
	// Where a file system takes names for the same, parts that come under each of them are one's.
	if f := Know(slices.Values([]string{"bare/HEAD", "Bare/objects/x", "BARE/REFS/heads/main"})); f.Level("bare/config") != Started || f.Level("bArE./hooks/x") != Started {
		t.Error("a repository under several names of one directory")
	}
	top := Know(slices.Values([]string{"HEAD", "objects", "refs", "src/x"}))
	if top.Level("config") != Started || top.Level("hooks/pre-commit") != Started || top.Level("src/x") != Plain {
		t.Error("a directory that is a repository itself")
	}
}

// TestFoldOfComposedLetters: some file systems take a letter with its accent and the two of them
// for the same.
func TestFoldOfComposedLetters(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)), "r\u00e8gles/\u00c9tat.conf")
	for _, name := range []string{"r\u00e8gles/\u00c9tat.conf", "re\u0300gles/E\u0301tat.conf", "R\u00c8GLES/e\u0301TAT.CONF"} {
		if f.Level(name) != Deciding {
			t.Errorf("%+q does not decide", name)
		}
	}
	if f.Level("regles/etat.conf") != Plain {
		t.Error("letters without accents are taken for those with them")
	}
}

// TestVirtualEnvironments: a directory is one by what is in it, whatever its name is.
func TestVirtualEnvironments(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	top := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip", filepath.Join(top, "tools", "py")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var paths []string
	if err := filepath.WalkDir(top, func(name string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(top, name); rel != "." {
			paths = append(paths, rel)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f := Know(slices.Values(paths))
	for name, want := range map[string]Level{"tools/py/bin/python3": Started, "tools/py/bin/new": Started, "tools/py": Started, "tools/other": Plain, "bin/python3": Plain} {
		if got := f.Level(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	top1 := Know(slices.Values([]string{"pyvenv.cfg", "src/x"}))
	if top1.Level("bin/python") != Started || top1.Level("src/x") != Plain {
		t.Error("a directory that is an environment itself")
	}
}

// TestLeads: a lead counts with all that is below it, in every form of its name, and never lowers
// what a name says.
func TestLeads(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)))
	led := f.With(Lead{Path: "docs/Guide.md", Level: Instructing}, Lead{Path: "./hooks", Level: Started, Scope: ScopeDirs}, Lead{Path: ".git/x", Level: Hidden})
	for name, want := range map[string]Level{"docs/guide.MD": Instructing, "hooks/pre-commit": Started, "HOOKS./a": Started, "hooks": Started, ".git/x": Started, "docs/other.md": Plain, "sub/hooks/x": Plain} {
		if got := led.Level(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if f.Level("hooks/x") != Plain || led.Scope("hooks/x") != ScopeDirs || f.Scope("node_modules/.envrc") != ScopeSealed || f.Scope(".envrc") != ScopeDirs {
		t.Error("the scopes, or what was known before")
	}
}
