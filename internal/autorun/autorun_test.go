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
		"x/evil.pth": Started, "my.code-workspace": Started, "cofferdam.yaml": Started, ".aiignore": Started,
		"Makefile": Used, "sub/conftest.py": Used, "rules.mk": Used,
		"sub/.hg/hgrc": Started, ".jj/x": Started, ".helix/languages.toml": Started, ".config/mise/config.toml": Started, "sitecustomize/__init__.py": Started,
		"lefthook-local.yaml": Started,
		// The same names to some file system.
		".v\u017fcode/tasks.json": Started, ".g\u200cit/config": Started, ".git\u200d/x": Started, ".gitcon\ufb01g": Started, ".\u212airo/x": Started,
		".git./config": Started, ".git /config": Started, ".git::$INDEX_ALLOCATION/config": Started, "GIT~1/config": Started, ".envrc. .": Started,
		"src/main.go": Plain, "a/..b/c": Plain, "caf\u00e9/x:y": Plain, "git/config": Plain, "README.md": Plain, ".gitignore": Plain, "HEAD": Plain, "config": Plain, "objects/x": Plain,
		"envrc": Plain, "a.pth.txt": Plain, "package.json": Plain,
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
			if other, twice := seen[name]; twice || name != strings.ToLower(name) || strings.Contains(name, "/") {
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
