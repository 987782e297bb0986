package differential

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func mapKeys(m map[string]*counts) iter.Seq[string] { return maps.Keys(m) }

func startNodeManifests(t *testing.T) *worker {
	t.Helper()
	env := node(t)
	argv := []string{"npm", "install", "--prefix=.", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "npm@11", "@pnpm/workspace.find-packages@1000", "@pnpm/workspace.read-manifest@1000", "@pnpm/logger@1001"}
	modules := filepath.Join(installed(t, "manifests", env, argv...), "node_modules")
	return start(t, env, "node", filepath.Join("testdata", "manifests.cjs"), modules)
}

func startPythonManifests(t *testing.T) *worker {
	t.Helper()
	dir := installed(t, "manifests-python", nil, "sh", "-c", `python3 -m venv venv && venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25' packaging 'setuptools>=75,<81' poetry-core flit_core`)
	return start(t, nil, filepath.Join(dir, "venv", "bin", "python"), "-W", "ignore", filepath.Join("testdata", "manifests.py"))
}

var requirementsName = regexp.MustCompile(`(?i)requirements[^/]*\.(?:txt|in)$|(?:^|/)requirements/[^/]*\.(?:txt|in)$`)

// file compares one, if it is of a format that is read.
func (r *realLook) file(t *testing.T, file string) {
	t.Helper()
	dir, base := filepath.Split(file)
	dir = filepath.Clean(dir)
	switch {
	case base == "pyproject.toml", base == "setup.cfg", base == "Pipfile":
		r.manifest(t, pkgref.Python, base, r.python(), base, dir, file)
	case requirementsName.MatchString(file):
		r.requirements(t, file)
	case base == "package.json" && !hasFile(dir, "pnpm-workspace.yaml"):
		r.manifest(t, pkgref.Node, "npm", r.node(), base, dir, file)
	case base == "pnpm-workspace.yaml":
		r.manifest(t, pkgref.Node, "pnpm", r.node(), "", dir, file)
	case base == "go.mod", base == "go.work":
		r.module(t, dir, base)
	default:
		r.lockfile(t, file, base)
	}
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// manifest compares what is asked for by one. only is the one of our formats that is read; "": all.
func (r *realLook) manifest(t *testing.T, ecosystem pkgref.Ecosystem, tool string, by *worker, only, asked, file string) {
	t.Helper()
	var theirs askedAnswer
	by.request(t, tool, asked, &theirs)
	w, roots, err := askedHere(projectOnDisk{dir: filepath.Dir(file)}, ecosystem, only, only)
	format := filepath.Base(file)
	switch {
	case theirs.Error != "" && os.Getenv("COFFERDAM_REAL_ERRORS") != "":
		t.Logf("%s: the client: %s; here: %v", file, theirs.Error, err)
	case theirs.Error == "" && err != nil:
		r.count(t, format, file, "", []string{"it is refused here: " + err.Error()})
		return
	}
	r.count(t, format, file, theirs.Error, tellAsked(ecosystem, w, roots, theirs))
}

// requirements compares a requirements file, which may include others of its project; and as a lockfile, if it has hashes.
func (r *realLook) requirements(t *testing.T, file string) {
	t.Helper()
	below, err := filepath.Rel(r.top, file)
	if err != nil {
		t.Fatal(err)
	}
	project, within, _ := strings.Cut(filepath.ToSlash(below), "/")
	var theirs askedAnswer
	r.python().request(t, "requirements", file, &theirs)
	w, roots, err := askedHere(projectOnDisk{dir: filepath.Join(r.top, project)}, pkgref.Python, "requirements.txt", within)
	if theirs.Error == "" && err != nil {
		r.count(t, "requirements*.txt", file, "", []string{"it is refused here: " + err.Error()})
		return
	}
	r.count(t, "requirements*.txt", file, theirs.Error, tellAsked(pkgref.Python, w, roots, theirs))
	if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "--hash") {
		dir := filepath.Dir(file)
		held := r.pythonLocks().readPython(t, "requirements", map[string][]byte{"requirements.txt": text})
		ours, err := lockfile.Parse("requirements.txt", text)
		r.compare(t, filepath.Join(dir, filepath.Base(file)), "requirements with hashes", held.Error, err, func() []string { return tellPythonLocked(ours, held.Entries) })
	}
}

// modules are what go itself says of a go.mod or a go.work.
type modules struct {
	Module  struct{ Path string }
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Use []struct{ DiskPath string }
}

func editJSON(t *testing.T, what, file string) (m modules, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", what, "edit", "-json", file)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(out, &m)
}

// modulesBelow are the go.mod files below a module that go can read: where no workspace says otherwise, a project has these modules,
// too, but for those in directories that "./..." leaves out.
func modulesBelow(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := ""
		if err == nil {
			name = d.Name()
		}
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (name == "testdata" || name == "vendor" || name == "node_modules" || name[0] == '_' || name[0] == '.'):
			return fs.SkipDir
		case name == "go.mod" && filepath.Dir(path) != dir && d.Type().IsRegular():
			if _, err := editJSON(t, "mod", path); err == nil {
				found = append(found, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// module compares a go.mod or a go.work.
func (r *realLook) module(t *testing.T, dir, base string) {
	t.Helper()
	var theirs askedAnswer
	file := filepath.Join(dir, base)
	all := []string{file}
	if base == "go.work" {
		space, err := editJSON(t, "work", file)
		if err != nil {
			theirs.Error = err.Error()
		}
		theirs.replaced(space)
		for _, u := range space.Use {
			if at := filepath.Join(dir, u.DiskPath, "go.mod"); strings.HasPrefix(at, dir+"/") && hasFile(filepath.Dir(at), "go.mod") {
				all = append(all, at)
			}
		}
		all = all[1:]
	} else if !hasFile(dir, "go.work") {
		all = append(all, modulesBelow(t, dir)...)
	}
	for _, one := range all {
		m, err := editJSON(t, "mod", one)
		if err != nil {
			theirs.Error = err.Error()
			continue
		}
		theirs.Own = append(theirs.Own, m.Module.Path)
		theirs.replaced(m)
		for _, q := range m.Require {
			if !q.Indirect && !m.isReplaced(q.Path, q.Version) {
				theirs.Names = append(theirs.Names, askedName{Name: q.Path})
			}
		}
	}
	w, roots, err := askedHere(projectOnDisk{dir: dir}, pkgref.Go, base, base)
	if theirs.Error == "" && err != nil {
		r.count(t, base, file, "", []string{"it is refused here: " + err.Error()})
		return
	}
	r.count(t, base, file, theirs.Error, tellAsked(pkgref.Go, w, roots, theirs))
}

func (m modules) isReplaced(path, version string) bool {
	for _, r := range m.Replace {
		if r.Old.Path == path && (r.Old.Version == "" || r.Old.Version == version) {
			return true
		}
	}
	return false
}

// replaced adds what is asked for in the place of other modules.
func (a *askedAnswer) replaced(m modules) {
	for _, r := range m.Replace {
		if r.New.Version == "" {
			a.Own = append(a.Own, r.Old.Path)
			continue
		}
		a.Names = append(a.Names, askedName{Name: r.New.Path})
	}
}

// lockfile compares one, if it is one.
func (r *realLook) lockfile(t *testing.T, file, base string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	switch base {
	case "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml":
		tool := "npm"
		if base == "pnpm-lock.yaml" {
			tool = "pnpm"
		}
		theirs := r.locks().read(t, tool, base, text)
		if tool == "pnpm" && len(theirs.Entries) == 0 || strings.Contains(string(text), "lockfileVersion: '6") {
			theirs.Error = "its version is one that this pnpm does not read" // or it has nothing
		}
		ours, err := lockfile.Parse(base, text)
		if ours != nil {
			withoutTools(ours, string(text))
		}
		r.compare(t, file, base, theirs.Error, err, func() []string { return tellLocked(ours, theirs.Entries) })
	case "uv.lock":
		var theirs pythonAnswer
		r.python().request(t, base, file, &theirs)
		ours, err := lockfile.Parse(base, text)
		r.compare(t, file, base, theirs.Error, err, func() []string { return tellPythonLocked(ours, theirs.Entries) })
	case "go.sum", "go.work.sum":
		ours, err := lockfile.Parse(base, text)
		r.compare(t, file, base, "", err, func() []string { return tellSums(ours, string(text)) })
	}
}

// compare counts a lockfile. One of a version that is not read is told by that, and counted apart.
func (r *realLook) compare(t *testing.T, file, format, theirError string, err error, faults func() []string) {
	t.Helper()
	switch {
	case err != nil && theirError == "" && isRefusedByDesign(err):
		r.count(t, format+", refused", file, "", nil)
	case err != nil && theirError == "":
		r.count(t, format, file, "", []string{"it is refused here: " + err.Error()})
	case err != nil:
		r.count(t, format, file, theirError, nil)
	default:
		r.count(t, format, file, theirError, faults())
	}
}

// isRefusedByDesign tells of a whole lockfile whether it is one that is not read at all: of an older version, or with an index of its own.
func isRefusedByDesign(err error) bool {
	return strings.Contains(err.Error(), "write it again with") || strings.Contains(err.Error(), "is not read in a lockfile: it brings in")
}

// withoutTools takes the pins of pnpm's first document out, which are of no project.
func withoutTools(lock *lockfile.Lockfile, text string) {
	at := strings.Index(strings.TrimPrefix(text, "---"), "\n---")
	if at < 0 {
		return
	}
	from := strings.Count(text[:at+len("\n---")], "\n")
	for name, pins := range lock.Pins {
		lock.Pins[name] = slices.DeleteFunc(pins, func(p policyPin) bool { return p.Line <= from })
	}
}

// tellSums compares go.sum with its lines, which are all that go's own reader has: it parts each at its blanks.
func tellSums(lock *lockfile.Lockfile, text string) (faults []string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		version, _ := strings.CutSuffix(f[1], "/go.mod")
		name, _ := canonicalName(pkgref.Go, f[0])
		if !slices.ContainsFunc(lock.Pins[name], func(p policyPin) bool {
			return p.Version == version && slices.Contains(slices.Concat(p.Digests, p.Metadata), f[2])
		}) && !slices.ContainsFunc(lock.Skipped, func(s lockfile.Skipped) bool { return s.Name == f[0]+" "+f[1] }) && len(lock.Unpinned[name]) == 0 {
			faults = append(faults, fmt.Sprintf("nothing is said of %q", strings.TrimSpace(line)))
		}
	}
	return faults
}
