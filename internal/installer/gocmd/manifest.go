package gocmd

import (
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

// The files of modules and of workspaces of these.
const (
	modFile  = "go.mod"
	workFile = "go.work"
)

// Manifests implements installer.ManifestReader.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{{Name: modFile, Read: readModule}, {Name: workFile, Read: readWork}}
}

// RegistryFiles implements installer.RegistryNamer: there is none that go reads in a project.
func (client) RegistryFiles() []manifest.Format { return nil }

// RegistrySign implements installer.RegistryNamer.
func (client) RegistrySign() manifest.Sign { return signs.FindString }

// signs are the variables by which go asks other proxies, or none.
var signs = regexp.MustCompile(`\bGO(?:PROXY|PRIVATE|NOPROXY|NOSUMDB|ENV)\b`)

// readModule notes the direct requirements of a go.mod (with_dependencies brings the others), each as what replaces it.
func readModule(w *manifest.Wants, m manifest.Text) error {
	f, err := modfile.Parse(m.File, m.Data, nil) // the lax one reads no replacements, and what is replaced would be allowed
	if err != nil {
		return err
	}
	if f.Module != nil {
		w.Keep(f.Module.Mod.Path)
	}
	replaced := replacements(w, m.File, f.Replace)
	for _, r := range f.Require {
		if !r.Indirect && !replaced[r.Mod] && !replaced[module.Version{Path: r.Mod.Path}] {
			w.Add(r.Mod.Path, m.File, r.Syntax.Start.Line)
			w.Name(r.Mod.Path, "=="+r.Mod.Version)
		}
	}
	if m.File == modFile && !w.Has(workFile) {
		readNested(w, m)
	}
	return nil
}

// readNested reads the modules below the one at the project's top, where no workspace says which are worked on: each is installed by
// itself, in its directory, and their names are the project's. What go passes over is passed over.
func readNested(w *manifest.Wants, m manifest.Text) {
	dirs, err := w.Members(m, []string{"**"})
	if err != nil {
		w.LeaveOut(m.File, 0, "", "modules in its directories are not read, since there are too many directories: give each with --project")
		return
	}
	for _, dir := range dirs {
		file := path.Join(dir, modFile)
		if dir == "." || passedOver(dir) || !w.Has(file) {
			continue
		}
		if _, err := w.Include(manifest.Format{Name: modFile, Read: readModule}, file); err != nil {
			w.LeaveOut(file, 0, "", "it can't be read, and so nothing that it requires is allowed")
		}
	}
}

// passedOver tells of a directory whose modules are no part of a project: "./..." of go leaves it out, and so do we.
func passedOver(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") {
			return true
		}
	}
	return false
}

// replacements notes what is asked for in the place of other modules: these, without a version where every one is replaced. A
// module that is a directory, if only in one version, may have nobody outside who owns its name.
func replacements(w *manifest.Wants, file string, all []*modfile.Replace) map[module.Version]bool {
	replaced := map[module.Version]bool{}
	for _, r := range all {
		replaced[r.Old] = true
		if r.New.Version != "" {
			w.Add(r.New.Path, file, r.Syntax.Start.Line)
			w.Name(r.New.Path, "=="+r.New.Version)
			continue
		}
		w.LeaveOut(file, r.Syntax.Start.Line, strings.TrimSpace(r.Old.Path+" "+r.Old.Version)+" => "+r.New.Path, "it is a directory of your own")
		w.Keep(r.Old.Path)
		w.NoteFolder(file, r.New.Path)
	}
	return replaced
}

// readWork reads the modules of a workspace.
func readWork(w *manifest.Wants, m manifest.Text) error {
	f, err := modfile.ParseWork(m.File, m.Data, nil)
	if err != nil {
		return err
	}
	for old := range replacements(w, m.File, f.Replace) {
		if old.Version == "" {
			w.Keep(old.Path)
		}
	}
	for _, use := range f.Use {
		dir := path.Join(path.Dir(m.File), use.Path)
		if path.IsAbs(use.Path) || module.CheckFilePath(path.Join("x", use.Path)) != nil || strings.HasPrefix(dir, "..") {
			w.Withhold(m.File, use.Syntax.Start.Line, use.Path, "it is not in this directory, so that its module's name is not read")
			w.NoteFolder(m.File, use.Path)
			continue
		}
		found, err := w.Include(manifest.Format{Name: modFile, Read: readModule}, path.Join(dir, modFile))
		if err != nil {
			return err
		}
		if !found {
			w.LeaveOut(m.File, use.Syntax.Start.Line, use.Path, "there is no go.mod")
		}
	}
	return nil
}
