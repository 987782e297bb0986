package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked is a project that asks for something behind a link.
type linked struct {
	files  map[string]string // of the project
	link   string            // its name in the project
	behind map[string]string // the files in what it leads to, or, by the name "", the file that it leads to
}

const (
	packageBehind = `{"name":"own","dependencies":{"behind":"1"}}`
	pythonBehind  = "[project]\nname='own'\ndependencies=['behind']\n[build-system]\nrequires=['behind']\n"
	pythonAbove   = "[project]\nname='p'\ndependencies=['own','six']\n[build-system]\nrequires=['six']\n"
)

// waysBehindLinks are the ways in which the files of a project lead to others, each through a link.
func waysBehindLinks() map[string]linked {
	return map[string]linked{
		"npm, a directory":          {map[string]string{"package.json": `{"dependencies":{"own":"file:link","ms":"2"}}`}, "link", map[string]string{"package.json": packageBehind}},
		"npm, an override":          {map[string]string{"package.json": `{"overrides":{"own":"file:link"},"dependencies":{"ms":"2"}}`}, "link", map[string]string{"package.json": packageBehind}},
		"npm, a member":             {map[string]string{"package.json": `{"workspaces":["packages/link"],"dependencies":{"own":"1","ms":"2"}}`}, "packages/link", map[string]string{"package.json": packageBehind}},
		"npm, members":              {map[string]string{"package.json": `{"workspaces":["packages/*"],"dependencies":{"own":"1","ms":"2"}}`}, "packages/link", map[string]string{"package.json": packageBehind}},
		"npm, members behind":       {map[string]string{"package.json": `{"workspaces":["link/*"],"dependencies":{"own":"1","ms":"2"}}`}, "link", map[string]string{"a/package.json": packageBehind}},
		"npm, any depth":            {map[string]string{"package.json": `{"workspaces":["**"],"dependencies":{"own":"1","ms":"2"}}`}, "packages/link", map[string]string{"package.json": packageBehind}},
		"npm, its own file":         {nil, "package.json", map[string]string{"": packageBehind}},
		"pnpm, members":             {map[string]string{"pnpm-workspace.yaml": "packages: ['packages/*']\n", "package.json": `{"dependencies":{"own":"1","ms":"2"}}`}, "packages/link", map[string]string{"package.json": packageBehind}},
		"pnpm, its other form":      {map[string]string{"pnpm-workspace.yaml": "packages: ['packages/*']\n", "package.json": `{"dependencies":{"own":"1","ms":"2"}}`}, "packages/link", map[string]string{"package.yaml": packageBehind}},
		"pnpm, its workspace":       {map[string]string{"package.json": `{"dependencies":{"own":"1","ms":"2"}}`}, "pnpm-workspace.yaml", map[string]string{"": "overrides:\n  x: npm:behind@1\n"}},
		"uv, members":               {map[string]string{"pyproject.toml": pythonAbove + "[tool.uv.workspace]\nmembers=['packages/*']\n"}, "packages/link", map[string]string{"pyproject.toml": pythonBehind}},
		"uv, a source":              {map[string]string{"pyproject.toml": pythonAbove + "[tool.uv.sources]\nown={path='link'}\n"}, "link", map[string]string{"pyproject.toml": pythonBehind}},
		"Poetry, a path":            {map[string]string{"pyproject.toml": "[tool.poetry.dependencies]\nown={path='link'}\nsix='*'\n"}, "link", map[string]string{"pyproject.toml": pythonBehind}},
		"Pipenv, a path":            {map[string]string{"Pipfile": "[packages]\nown={path='./link',editable=true}\nsix='*'\n"}, "link", map[string]string{"setup.cfg": "[metadata]\nname=own\n[options]\ninstall_requires=behind\n"}},
		"pip, an include":           {map[string]string{"requirements.txt": "six\n-r link/r.txt\n"}, "link", map[string]string{"r.txt": "behind\n"}},
		"pip, a file":               {map[string]string{"requirements.txt": "six\n-r r.txt\n"}, "r.txt", map[string]string{"": "behind\n"}},
		"pip, its own file":         {nil, "requirements.txt", map[string]string{"": "behind\n"}},
		"pip, editable":             {map[string]string{"requirements.txt": "own\nsix\n-e ./link\n"}, "link", map[string]string{"pyproject.toml": pythonBehind}},
		"pip, a directory":          {map[string]string{"requirements.txt": "own\nsix\n./link\n"}, "link", map[string]string{"setup.cfg": "[metadata]\nname=own\n[options]\ninstall_requires=behind\n"}},
		"pip, parts":                {map[string]string{"requirements.txt": "six\n"}, "requirements", map[string]string{"dev.txt": "behind\n"}},
		"pip, a part":               {map[string]string{"requirements.txt": "six\n"}, "requirements-dev.txt", map[string]string{"": "behind\n"}},
		"setuptools, a file of its": {map[string]string{"pyproject.toml": "[project]\nname='p'\ndynamic=['dependencies']\n[build-system]\nrequires=['six']\n[tool.setuptools.dynamic]\ndependencies={file=['link/r.in']}\n"}, "link", map[string]string{"r.in": "behind\n"}},
		"go, a member":              {map[string]string{"go.work": "go 1.26\nuse ./link\nuse ./a\n", "a/go.mod": "module a.example/a\ngo 1.26\nrequire x.example/x v1.0.0\n"}, "link", map[string]string{"go.mod": "module m.example/own\ngo 1.26\nrequire x.example/behind v1.0.0\n"}},
		"go, its own file":          {nil, "go.mod", map[string]string{"": "module m.example/own\ngo 1.26\nrequire x.example/behind v1.0.0\n"}},
	}
}

// laidBehind lays out a project whose link leads to a directory, or a file, made at another place below top.
func laidBehind(t *testing.T, c linked, project, place string) {
	t.Helper()
	at := filepath.Join(project, c.link)
	for file, text := range c.files {
		put(t, filepath.Join(project, file), text)
	}
	for file, text := range c.behind {
		put(t, filepath.Join(place, file), text)
	}
	fine(t, os.MkdirAll(filepath.Dir(at), 0o755))
	to, err := filepath.Rel(filepath.Dir(at), place)
	fine(t, err)
	fine(t, os.Symlink(to, at))
}

func put(t *testing.T, at, text string) {
	t.Helper()
	fine(t, os.MkdirAll(filepath.Dir(at), 0o755))
	fine(t, os.WriteFile(at, []byte(text), 0o644))
}

// isTold tells whether a line about a link has some words.
func isTold(lines []string, link, words string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		return (strings.HasPrefix(l, link+": this ") || strings.Contains(l, "the link "+link+" ")) && strings.Contains(l, strings.TrimPrefix(words, "link "))
	})
}

// TestNothingIsReadBehindALinkOutOfTheProject: in each way in which a project's files lead to others. Nothing that lies there
// gets into the policy, nor into a message, nor is any name a root that may be of a package there. The control is a link that stays
// inside: it is followed.
func TestNothingIsReadBehindALinkOutOfTheProject(t *testing.T) {
	t.Parallel()
	const secret = "\x00{root:$6$s3cret"
	for name, c := range waysBehindLinks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			inside, outside, hostile := filepath.Join(top, "i"), filepath.Join(top, "o"), filepath.Join(top, "h")
			laidBehind(t, c, inside, filepath.Join(inside, "real"))
			if roots, lines := rootsAndLines(t, inside, false); !strings.Contains(roots, "behind") || strings.Contains(strings.Join(lines, "\n"), "link is not followed") {
				t.Errorf("the control: %q, %q", roots, lines)
			}
			laidBehind(t, c, outside, filepath.Join(top, "elsewhere"))
			roots, lines := rootsAndLines(t, outside, false)
			if roots != "" || !isTold(lines, c.link, "link is not followed, since it leads out of the project") {
				t.Errorf("%q are roots, and %q is told", roots, lines)
			}
			if roots, _ := rootsAndLines(t, outside, true); strings.Contains(roots, "behind") {
				t.Errorf("%q are roots by what lies outside", roots)
			}
			for file := range c.behind {
				c.behind[file] = secret
			}
			laidBehind(t, c, hostile, filepath.Join(top, "secrets"))
			if roots, lines := rootsAndLines(t, hostile, false); roots != "" || strings.Contains(strings.Join(lines, "\n"), "root:") {
				t.Errorf("%q, %q", roots, lines)
			}
		})
	}
}

// TestALinkThatAnAgentCouldHavePutThereWithholdsNames: none of the project's own is taken for a registry's, because it could not
// be read.
func TestALinkThatAnAgentCouldHavePutThereWithholdsNames(t *testing.T) {
	project, _, _ := grounds(t)
	for name, c := range waysBehindLinks() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(project, strings.ReplaceAll(name, " ", "-"))
			laidBehind(t, c, dir, filepath.Join(dir, "real"))
			roots, lines := rootsAndLines(t, dir, false)
			if roots != "" || !isTold(lines, c.link, "link is not followed, since an agent could have put it there") {
				t.Errorf("%q are roots, and %q is told", roots, lines)
			}
		})
	}
}

// TestLinksThatLeadToNoMemberAreNone: links that a project has for other ends take no name from it.
func TestLinksThatLeadToNoMemberAreNone(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "p")
	put(t, filepath.Join(top, "store", "x"), "x")
	put(t, filepath.Join(top, "store", "go.mod"), "module m.example/x\ngo 1.26\nrequire x.example/behind v1.0.0\n")
	put(t, filepath.Join(dir, "package.json"), `{"workspaces":["**"],"dependencies":{"ms":"2"}}`)
	put(t, filepath.Join(dir, "go.mod"), "module m.example/m\ngo 1.26\nrequire x.example/x v1.0.0\n")
	for link, to := range map[string]string{"result": "../store", "AGENTS.md": "../store/x", "gone": "../gone"} {
		fine(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	if roots, lines := rootsAndLines(t, dir, false); roots != "ms x.example/x" || len(lines) > 0 {
		t.Errorf("%q, %q", roots, lines)
	}
}

// TestAProjectMayLieBehindALink: its files are read where its own name leads, from the start of the path, and no other directory's.
func TestAProjectMayLieBehindALink(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for dir, name := range map[string]string{"deep/a/real": "real", "deep/b": "beside", "b": "elsewhere"} {
		put(t, filepath.Join(top, dir, "package.json"), `{"dependencies":{"`+name+`":"1"}}`)
		put(t, filepath.Join(top, dir, "requirements", "dev.txt"), "part-of-"+name+"\n")
	}
	fine(t, os.Symlink("deep/a", filepath.Join(top, "link")))
	fine(t, os.Symlink("link/real", filepath.Join(top, "project")))
	for project, want := range map[string]string{"/project": "real", "/link/real/": "real", "/project/.": "real", "/link/../b": "beside", "/b": "elsewhere"} {
		if roots, lines := rootsAndLines(t, top+project, false); roots != "part-of-"+want+" "+want && roots != want+" part-of-"+want || len(lines) > 0 {
			t.Errorf("%s: %q, %q", project, roots, lines)
		}
	}
}

// TestAProjectIsADirectory: a policy for one that is not there would say that nothing is asked for.
func TestAProjectIsADirectory(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	put(t, filepath.Join(top, "file"), "x")
	fine(t, os.Symlink("gone", filepath.Join(top, "link")))
	for project, want := range map[string]string{
		"": "does not exist", top + "/none": "does not exist", top + "/link": "does not exist",
		top + "/file": "is not a directory", "/dev/null": "is not a directory",
	} {
		if _, err := wantsOf(project, asksHere, false); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", project, err)
		}
	}
}
