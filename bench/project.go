package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The programs that fetch the projects are embedded, which takes package-level
// variables.
var (
	//go:embed npmproject.mjs
	npmProgram string
	//go:embed uvproject.py
	uvProgram string
)

// project is a real project of one client: its lockfile, and all that the
// lockfile names, as they were on the day on which they were first fetched.
type project struct {
	client   string
	dir      string   // what registry and static server show of it; the lockfile is in project/
	program  []string // fetches it into /out
	wanted   string
	packages []string // canonical; known once it is fetched
}

// npmDependencies make a project of some 300 packages, none of which runs
// anything when it is installed. Their requirements are locked when they are fetched.
func npmDependencies() map[string]string {
	return map[string]string{
		"express": "4.21.2", "webpack": "5.97.1", "webpack-cli": "5.1.4", "eslint": "8.57.1", "react": "18.3.1", "react-dom": "18.3.1",
		"axios": "1.7.9", "lodash": "4.17.21", "typescript": "5.7.3", "prettier": "3.4.2", "mocha": "10.8.2",
	}
}

// uvRequirements make a project of some 50.
func uvRequirements() []string {
	return []string{
		"flask==3.1.0", "requests==2.32.3", "httpx[http2]==0.28.1", "rich==13.9.4", "typer==0.15.1", "pytest==8.3.4", "jsonschema==4.23.0",
		"fastapi==0.115.6", "uvicorn==0.34.0", "sphinx==8.1.3",
	}
}

// fetchPolicy lets everything in for the one time that it is fetched; nothing
// of it is run then. A stable Verdaccio requires two releases that are none.
const fetchPolicy = "name: bench-download\npackages:\n  default: allow\n  install_scripts: allow\n  similar_names: allow\n" +
	"allowed_packages:\n  node:\n    - name: \"@verdaccio/ui-theme\"\n      prereleases: true\n    - name: clipanion\n      prereleases: true\n"

// npmProject is the project of npm.
func npmProject(home string) (project, error) {
	return newProject(home, "npm", npmDependencies(), "node", "--input-type=module", "--eval", npmProgram, "--", "/out", npmBase)
}

// uvProject is the project of uv.
func uvProject(home string) (project, error) {
	return newProject(home, "uv", uvRequirements(), "python3", "-c", uvProgram, "/out", indexBase)
}

// newProject gives a project its place, whose name has the digest of what is
// wanted: another wish is another place.
func newProject(home, client string, wanted any, program ...string) (project, error) {
	text, err := json.Marshal(wanted)
	if err != nil {
		return project{}, err
	}
	sum := sha256.Sum256([]byte(strings.Join(program, "\x00") + string(text)))
	dir := filepath.Join(home, "bench", client+"-"+hex.EncodeToString(sum[:6]))
	return project{client: client, dir: dir, program: program, wanted: string(text)}, nil
}

// fetch gets it, once, in a sandbox from the registry that this machine uses.
func (p *project) fetch(ctx context.Context, b *bench) error {
	if _, err := os.Stat(p.dir); errors.Is(err, fs.ErrNotExist) {
		b.progress.say("downloading the project for %s (once)", p.client)
		if err := b.fetchInto(ctx, p.dir, append(p.program, p.wanted)); err != nil {
			return err
		}
	}
	var err error
	p.packages, err = p.names()
	return err
}

// fetchInto has a program in a sandbox fill a directory, mounted as /out.
func (b *bench) fetchInto(ctx context.Context, dir string, program []string) error {
	partly := dir + ".part"
	policy := filepath.Join(b.dir, "fetch.yaml")
	err := errors.Join(
		os.RemoveAll(partly), os.MkdirAll(partly, 0o755), os.Chmod(partly, 0o777),
		os.WriteFile(policy, []byte(fetchPolicy), 0o600),
	)
	if err != nil {
		return err
	}
	state, err := b.freshState("fetch")
	if err != nil {
		return err
	}
	args := append([]string{"run", "--template", "debian", "--policy", policy, "--mount", partly + ":/out:rw", "--"}, program...)
	if err := b.cofferdam(ctx, state, args...); err != nil {
		return err
	}
	if err := b.cofferdam(ctx, state, "stop"); err != nil {
		return err
	}
	return errors.Join(os.Chmod(partly, 0o755), os.Rename(partly, dir))
}

// freshState makes a state directory that shares the templates.
func (b *bench) freshState(name string) (string, error) {
	state := filepath.Join(b.dir, name)
	if err := os.Mkdir(state, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	err := os.Symlink(filepath.Join(b.home, "templates"), filepath.Join(state, "templates"))
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return state, err
}

// names are the packages that the lockfile names.
func (p project) names() ([]string, error) {
	if text, err := os.ReadFile(filepath.Join(p.dir, "project", "names.json")); err == nil {
		var names []string
		return names, json.Unmarshal(text, &names)
	}
	pages, err := filepath.Glob(filepath.Join(p.dir, "simple", "*.json"))
	names := make([]string, 0, len(pages))
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(filepath.Base(page), ".json"))
	}
	return names, err
}

// files are what a page of a Python project lists, read anew each time, since
// the registry is there before the project is fetched; none if it has no such page.
func (p project) files(name string) []indexFile {
	var page struct {
		Files []indexFile `json:"files"`
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "simple", filepath.Base(name)+".json"))
	if err != nil || json.Unmarshal(text, &page) != nil {
		return nil
	}
	return page.Files
}

// locked puts the project with its lockfile, whose packages are at another
// base, into a directory.
func (p project) locked(dir, from, to string, lockfile string) error {
	entries, err := os.ReadDir(filepath.Join(p.dir, "project"))
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(p.dir, "project", e.Name()))
		if err != nil {
			return err
		}
		if e.Name() == lockfile {
			found = true
			text = []byte(strings.ReplaceAll(string(text), from, to))
		}
		if err := show(filepath.Join(dir, e.Name()), text); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s has no %s; remove it and try again", p.dir, lockfile)
	}
	return nil
}

// policy allows the packages by name and nothing else.
func (p project) policy(ecosystem string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "name: bench-%s\npackages:\n  default: deny\nallowed_packages:\n  %s:\n", p.client, ecosystem)
	for _, n := range p.packages {
		fmt.Fprintf(&text, "    - name: %q\n", n)
	}
	return text.String()
}
