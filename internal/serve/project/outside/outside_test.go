package outside_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/serve/project/outside"
)

// files are a directory's, read by their names.
type files string

func (f files) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f files) Folders(name string) (dirs, links []string, err error) {
	all, err := os.ReadDir(filepath.Join(string(f), path.Clean(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range all {
		if e.IsDir() {
			dirs = append(dirs, e.Name())
		}
	}
	return dirs, nil, err
}

// lay makes files below a directory.
func lay(t *testing.T, at string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		full := filepath.Join(at, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// repository is one with a commit.
func repository(t *testing.T, at string) {
	t.Helper()
	lay(t, at, map[string]string{"a.txt": "a"})
	git(t, at, "init", "-q")
	git(t, at, "add", ".")
	git(t, at, "commit", "-qm", "a")
}

// here is a directory of the test's own, without links.
func here(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// lines are what is said of a directory that is shown at /workspace, with T for the test's own.
func lines(dir, project string, copied bool, more ...outside.Shown) []string {
	of := outside.Shown{Source: filepath.Join(dir, project), Destination: "/workspace", ReadWrite: true}
	all := more
	if !copied {
		all = append(slices.Clone(more), of)
	}
	var said []string
	for _, part := range outside.Find(of, all, files(of.Source), copied) {
		said = append(said, strings.ReplaceAll(part.Line(), dir, "T"))
	}
	return said
}

const elsewhere = ".git leads to T/elsewhere, outside of /workspace: it does not name this directory back, so that it may be another project's; git finds no repository without it"

const noRepository = ", outside of /workspace: git finds no repository without "

// kinds are the ways in which a part of a project lies elsewhere. Each lays T/p, and what it needs beside it.
func kinds() map[string]struct {
	lay          func(t *testing.T, dir string)
	want, copied []string
} {
	type kind = struct {
		lay          func(t *testing.T, dir string)
		want, copied []string
	}
	written := func(all map[string]string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); lay(t, dir, all) }
	}
	one := func(line string) kind { return kind{want: []string{line}, copied: []string{line}} }
	named := func(file, dir string, all map[string]string) kind {
		k := one(file + " leads to T/" + dir + ", outside of /workspace: look whether it is this project's; it is not there without --mount T/" + dir + ":/" + dir)
		k.lay = written(all)
		return k
	}
	alternates := one(".git/objects/info/alternates leads to T/main/.git/objects, outside of /workspace: it does not name this directory back, so that it may be another project's; git may lack objects without it")
	alternates.lay = func(t *testing.T, dir string) {
		t.Helper()
		repository(t, filepath.Join(dir, "main"))
		git(t, dir, "clone", "-q", "--shared", "main", "p")
	}
	return map[string]kind{
		"a linked worktree": {
			lay: func(t *testing.T, dir string) {
				t.Helper()
				repository(t, filepath.Join(dir, "main"))
				git(t, filepath.Join(dir, "main"), "worktree", "add", "-q", "../p", "-b", "f")
			},
			want:   []string{".git leads to T/main/.git/worktrees/p" + noRepository + "--mount T/main/.git:T/main/.git --mount T/main/.git/worktrees/p:T/main/.git/worktrees/p:rw"},
			copied: []string{".git leads to T/main/.git/worktrees/p" + noRepository + "--mount T/main/.git:T/main/.git"},
		},
		"a linked worktree by relative paths": {
			lay: func(t *testing.T, dir string) {
				t.Helper()
				repository(t, filepath.Join(dir, "main"))
				git(t, filepath.Join(dir, "main"), "worktree", "add", "-q", "../p", "-b", "f")
				lay(t, dir, map[string]string{"p/.git": "gitdir: ../main/.git/worktrees/p\n", "main/.git/worktrees/p/gitdir": "../../../../p/.git\n"})
			},
			want:   []string{".git leads to T/main/.git/worktrees/p" + noRepository + "--mount T/main/.git:/main/.git --mount T/main/.git/worktrees/p:/main/.git/worktrees/p:rw"},
			copied: []string{".git leads to T/main/.git/worktrees/p" + noRepository + "--mount T/main/.git:/main/.git"},
		},
		"a submodule alone": {
			lay: func(t *testing.T, dir string) {
				t.Helper()
				repository(t, filepath.Join(dir, "lib"))
				repository(t, filepath.Join(dir, "main"))
				git(t, filepath.Join(dir, "main"), "submodule", "add", "-q", filepath.Join(dir, "lib"), "p")
				if err := os.Symlink("main/p", filepath.Join(dir, "p")); err != nil {
					t.Fatal(err)
				}
			},
			want:   []string{".git leads to T/main/.git/modules/p, outside of /workspace: it is a submodule, whose repository git finds with --mount T/main:/workspace:rw --workdir /workspace/p in place of the mount at /workspace"},
			copied: []string{".git leads to T/main/.git/modules/p, outside of /workspace: it is a submodule, and git finds its repository in a run of T/main only"},
		},
		"a repository elsewhere": {
			lay: func(t *testing.T, dir string) {
				t.Helper()
				git(t, dir, "init", "-q", "--separate-git-dir", filepath.Join(dir, "elsewhere"), "p")
			},
			want:   []string{elsewhere},
			copied: []string{elsewhere},
		},
		"alternates": alternates,
		"npm file:":  named("package.json", "x", map[string]string{"p/package.json": `{"dependencies":{"x":"file:../x"}}`, "x/package.json": "{}"}),
		"npm link:":  named("package.json", "x", map[string]string{"p/package.json": `{"dependencies":{"x":"link:../x"}}`, "x/package.json": "{}"}),
		"npm ../x":   named("package.json", "x", map[string]string{"p/package.json": `{"devDependencies":{"x":"../x"}}`, "x/package.json": "{}"}),
		"a member of an npm workspace": named("packages/m/package.json", "x", map[string]string{
			"p/package.json": `{"workspaces":["packages/*"]}`, "p/packages/m/package.json": `{"name":"m","dependencies":{"x":"file:../../../x"}}`, "x/package.json": "{}",
		}),
		"go replace": named("go.mod", "y", map[string]string{"p/go.mod": "module example.com/p\n\ngo 1.22\n\nrequire example.com/y v0.0.0\n\nreplace example.com/y => ../y\n", "y/go.mod": "module example.com/y\n"}),
		"go.work":    named("go.work", "z", map[string]string{"p/go.work": "go 1.22\n\nuse (\n\t./a\n\t../z\n)\n", "p/a/go.mod": "module example.com/a\n", "z/go.mod": "module example.com/z\n"}),
		"uv path":    named("pyproject.toml", "x", map[string]string{"p/pyproject.toml": "[project]\nname = \"p\"\nversion = \"1\"\ndependencies = [\"x\"]\n\n[tool.uv.sources]\nx = { path = \"../x\", editable = true }\n", "x/pyproject.toml": ""}),
		"pip -e":     named("requirements.txt", "x", map[string]string{"p/requirements.txt": "six\n-e ../x\n", "x/setup.py": ""}),
		"pip ../x":   named("requirements.txt", "x", map[string]string{"p/requirements.txt": "../x[dev]\n", "x/pyproject.toml": ""}),
	}
}

func TestPartsOutsideAreNamed(t *testing.T) {
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			dir := here(t)
			k.lay(t, dir)
			project := "p"
			if to, err := os.Readlink(filepath.Join(dir, "p")); err == nil { // where the project lies in another
				project = to
			}
			if got := lines(dir, project, false); !slices.Equal(got, k.want) {
				t.Errorf("a mount:\n%q, not\n%q", got, k.want)
			}
			if got := lines(dir, project, true); !slices.Equal(got, k.copied) {
				t.Errorf("a copy:\n%q, not\n%q", got, k.copied)
			}
		})
	}
}

// TestPartsThatAreShownAreNotNamed: with the flags of the line nothing more is said; nor is anything of a project that has
// all in itself.
func TestPartsThatAreShownAreNotNamed(t *testing.T) {
	for name, k := range kinds() {
		dir := here(t)
		k.lay(t, dir)
		of := outside.Shown{Source: filepath.Join(dir, "p"), Destination: "/workspace", ReadWrite: true}
		all := []outside.Shown{of}
		for _, part := range outside.Find(of, all, files(of.Source), false) {
			if part.Instead {
				of = outside.Shown(part.Flags[0])
				all = []outside.Shown{of}
				continue
			}
			for _, f := range part.Flags {
				all = append(all, outside.Shown(f))
			}
			if len(part.Flags) == 0 { // a person who knows that it is the project's mounts it all the same
				all = append(all, outside.Shown{Source: part.Path, Destination: part.Path})
			}
		}
		for _, part := range outside.Find(of, all, files(of.Source), false) {
			t.Errorf("%s: %s", name, part.Line())
		}
	}
	dir := here(t)
	repository(t, filepath.Join(dir, "p"))
	lay(t, dir, map[string]string{"p/package.json": `{"dependencies":{"x":"file:./x","y":"1"}}`, "p/x/package.json": "{}", "p/go.mod": "module a\n\nreplace b => ./b\n"})
	if got := lines(dir, "p", false); len(got) > 0 {
		t.Errorf("a project that has all in itself: %q", got)
	}
}

// counted are files whose looks are counted.
type counted struct {
	files
	n *int
}

func (c counted) Read(name string) ([]byte, error) {
	*c.n++
	return c.files.Read(name)
}

func (c counted) Folders(name string) (dirs, links []string, err error) {
	*c.n++
	return c.files.Folders(name)
}

// TestALargeProjectHoldsUpNoRun: however many directories a workspace has, few are looked at before a start, and what the
// project names itself is named all the same.
func TestALargeProjectHoldsUpNoRun(t *testing.T) {
	dir := here(t)
	lay(t, dir, map[string]string{"x/package.json": "{}", "p/package.json": `{"workspaces":["**"],"dependencies":{"x":"file:../x"}}`, "p/pnpm-workspace.yaml": "packages: ['**']\n"})
	for n := range 3000 {
		if err := os.Mkdir(filepath.Join(dir, "p", strconv.Itoa(n)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	looks, of := 0, outside.Shown{Source: filepath.Join(dir, "p"), Destination: "/workspace"}
	got := outside.Find(of, []outside.Shown{of}, counted{files(of.Source), &looks}, false)
	if looks > 5000 || len(got) != 1 {
		t.Errorf("%d looks, %+v", looks, got)
	}
}

// TestAProjectByALink: what lies in the project is shown, by whatever name the directory was given.
func TestAProjectByALink(t *testing.T) {
	dir := here(t)
	repository(t, filepath.Join(dir, "p"))
	if err := errors.Join(os.Rename(filepath.Join(dir, "p", ".git"), filepath.Join(dir, "p", ".bare")), os.Symlink("p", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, map[string]string{"p/.git": "gitdir: ./.bare\n"})
	for _, project := range []string{"p", "link"} {
		if got := lines(dir, project, false); len(got) > 0 {
			t.Errorf("%s: %q", project, got)
		}
	}
}

// TestStrangersNamesGetNoFlag: a project's files may name anything. A directory that does not belong to it gets no flag, and no name
// makes two lines, or reaches a terminal as it is.
func TestStrangersNamesGetNoFlag(t *testing.T) {
	secret := map[string]string{"secret/id": "key"}
	worktreeOf := func(t *testing.T, dir string) { // of somebody else's repository, whose worktree is another
		t.Helper()
		repository(t, filepath.Join(dir, "main"))
		git(t, filepath.Join(dir, "main"), "worktree", "add", "-q", "../theirs", "-b", "f")
		lay(t, dir, map[string]string{"p/.git": "gitdir: " + dir + "/main/.git/worktrees/theirs\n"})
	}
	for name, laid := range map[string]func(t *testing.T, dir string){
		"a directory that is no repository": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, secret)
			lay(t, dir, map[string]string{"p/.git": "gitdir: ../secret\n"})
		},
		"nothing": func(t *testing.T, dir string) {
			t.Helper()
			lay(t, dir, map[string]string{"p/.git": "gitdir: ../no/where\n"})
		},
		"another's worktree": worktreeOf,
		"another's repository": func(t *testing.T, dir string) {
			t.Helper()
			repository(t, filepath.Join(dir, "main"))
			lay(t, dir, map[string]string{"p/.git": "gitdir: ../main/.git\n"})
		},
		"a submodule's repository of the directory above": func(t *testing.T, dir string) { // such as a home under git
			t.Helper()
			repository(t, filepath.Join(dir, "lib"))
			git(t, dir, "init", "-q")
			git(t, dir, "submodule", "add", "-q", filepath.Join(dir, "lib"), "sub")
			lay(t, dir, map[string]string{"p/.git": "gitdir: ../.git/modules/sub\n"})
		},
		"a home": func(t *testing.T, dir string) {
			t.Helper()
			lay(t, dir, map[string]string{"me/package.json": "{}", "me/.ssh/id": "key", "p/package.json": `{"dependencies":{"x":"file:../me"}}`})
		},
		"this user's home": func(t *testing.T, dir string) {
			t.Helper()
			t.Setenv("HOME", filepath.Join(dir, "all", "me"))
			lay(t, dir, map[string]string{"all/me/go.mod": "", "all/package.json": "{}", "p/package.json": `{"dependencies":{"x":"file:../all"}}`, "p/go.mod": "module a\n\nreplace b => ../all/me\n"})
		},
		"this user's home, which is found by a link": func(t *testing.T, dir string) {
			t.Helper()
			t.Setenv("HOME", filepath.Join(dir, "home"))
			lay(t, dir, map[string]string{"all/me/go.mod": "", "all/package.json": "{}", "p/package.json": `{"dependencies":{"x":"file:../all"}}`, "p/go.mod": "module a\n\nreplace b => ../all/me\n"})
			if err := os.Symlink("all/me", filepath.Join(dir, "home")); err != nil {
				t.Fatal(err)
			}
		},
		"a home whose keys are elsewhere": func(t *testing.T, dir string) {
			t.Helper()
			lay(t, dir, map[string]string{"me/package.json": "{}", "keys/id": "key", "p/package.json": `{"dependencies":{"x":"file:../me"}}`})
			if err := os.Symlink("../keys", filepath.Join(dir, "me", ".ssh")); err != nil {
				t.Fatal(err)
			}
		},
		"another repository's objects": func(t *testing.T, dir string) {
			t.Helper()
			repository(t, filepath.Join(dir, "other"))
			repository(t, filepath.Join(dir, "p"))
			lay(t, dir, map[string]string{"p/.git/objects/info/alternates": dir + "/other/.git/objects\n"})
		},
		"control characters": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"p/.git": "gitdir: ../a\x1b[2Jb\rc\u202e\xff\n"})
		},
		"a long name": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"p/.git": "gitdir: ../" + strings.Repeat("x", 60<<10)})
		},
		"a huge file": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"p/.git": "gitdir: ../" + strings.Repeat("x", 1<<20)})
		},
		"no gitdir": func(t *testing.T, dir string) {
			t.Helper()
			lay(t, dir, map[string]string{"p/.git": "../secret\n"})
		},
		"a NUL": func(t *testing.T, dir string) {
			t.Helper()
			lay(t, dir, map[string]string{"p/.git": "gitdir: ../a\x00b\n"})
		},
		"a repository of our own": func(t *testing.T, dir string) {
			t.Helper()
			// whose worktree's part the project made itself
			repository(t, filepath.Join(dir, "main"))
			lay(t, dir, map[string]string{"p/.git": "gitdir: fake\n", "p/fake/commondir": dir + "/main/.git\n", "p/fake/gitdir": dir + "/p/.git\n", "p/fake/HEAD": ""})
		},
		"objects that are none": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, secret)
			repository(t, filepath.Join(dir, "p"))
			lay(t, dir, map[string]string{"p/.git/objects/info/alternates": dir + "/secret\n# " + dir + "/other\n\"" + dir + "/quoted\"\n"})
		},
		"many objects": func(t *testing.T, dir string) {
			t.Helper()

			repository(t, filepath.Join(dir, "p"))
			lay(t, dir, map[string]string{"p/.git/objects/info/alternates": strings.Repeat("/no/where/a\n/no/where/b\n../../objects\n", 1000)})
		},
		"a pipe": func(t *testing.T, dir string) {
			t.Helper()

			if err := errors.Join(os.Mkdir(filepath.Join(dir, "p"), 0o755), unix.Mkfifo(filepath.Join(dir, "p", ".git"), 0o644)); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"said": "gitdir: /etc\n", "p/x": ""})
			if err := os.Symlink("../said", filepath.Join(dir, "p", ".git")); err != nil {
				t.Fatal(err)
			}
		},
		"a pipe of a worktree's": func(t *testing.T, dir string) {
			t.Helper()

			worktreeOf(t, dir)
			at := filepath.Join(dir, "main/.git/worktrees/theirs/commondir")
			if err := errors.Join(os.Remove(at), unix.Mkfifo(at, 0o644)); err != nil {
				t.Fatal(err)
			}
		},
		"directories that are no projects": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, secret)
			lay(t, dir, map[string]string{
				"p/package.json": `{"dependencies":{"x":"file:../secret","y":"file:~/.ssh","z":"file:/etc"}}`, "p/requirements.txt": "-e ../secret\n",
				"p/go.mod": "module example.com/p\n\nreplace example.com/y => ../secret\n", "p/pyproject.toml": "[tool.uv.sources]\nx = { path = \"../secret\" }\n",
			})
		},
		"manifests that are none": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"p/package.json": "{", "p/go.mod": "\xff", "p/pyproject.toml": "[", "p/go.work": "use ("})
		},
		"what the project lies in": func(t *testing.T, dir string) {
			t.Helper()

			lay(t, dir, map[string]string{"p/package.json": `{"dependencies":{"x":"file:.."}}`, "package.json": "{}"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := here(t)
			laid(t, dir)
			for _, line := range lines(dir, "p", false) {
				if strings.Contains(line, "--mount") || len(line) > 2000 {
					t.Errorf("%.2000s", line)
				}
				if strings.ContainsFunc(line, func(r rune) bool {
					return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
				}) {
					t.Errorf("%q reaches a terminal", line)
				}
			}
		})
	}
}

// TestFlagsAreReadBackByAShell: a name with anything in it is one word of the flag, or there is no flag.
func TestFlagsAreReadBackByAShell(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"x y", "--mount 'T/x y:/x y'"},
		{"x'; touch z;'", `--mount 'T/x'\''; touch z;'\'':/x'\''; touch z;'\'''`},
		{"$(id)", "--mount 'T/$(id):/$(id)'"},
		{"a:b", "no flag can say such a name"},
		{"a\x1bb", "no flag can say such a name"},
		{"a\u202eb", "no flag can say such a name"},
		{"lib", "nothing can be mounted at /lib, where it is looked for: mount a directory that has both"},
		{"workspace", "nothing can be mounted at /workspace, where it is looked for: mount a directory that has both"},
	} {
		dir := here(t)
		lay(t, dir, map[string]string{"p/requirements.txt": "six\n", c.name + "/go.mod": "", "p/go.mod": "module example.com/p\n\nreplace example.com/y => " + quotedForGo("../"+c.name) + "\n"})
		got := lines(dir, "p", false)
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%q: %q", c.name, got)
		}
	}
}

func quotedForGo(s string) string { return "\"" + strings.ReplaceAll(s, "\"", "\\\"") + "\"" }
