package gocmd

import (
	"errors"
	"maps"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// The files of modules and of workspaces of these.
const (
	modFile  = "go.mod"
	workFile = "go.work"
)

// Manifests implements installer.ManifestReader.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{{Name: workFile, Read: readWork}, {Name: modFile, Read: readModule}} // one that a workspace uses is read by that
}

// RegistryFiles implements installer.RegistryNamer: there is none that go reads in a project.
func (client) RegistryFiles() []manifest.Format { return nil }

// RegistrySign implements installer.RegistryNamer.
func (client) RegistrySign() manifest.Sign { return signs.FindString }

// signs are the variables by which go asks other proxies, or none.
var signs = regexp.MustCompile(`\bGO(?:PROXY|PRIVATE|NOPROXY|NOSUMDB|ENV)\b`)

// parsed is a go.mod as it was read.
type parsed struct {
	text manifest.Text
	file *modfile.File
	// shortened are versions written as v1.2: go asks a registry which version that is, whatever the line is for.
	shortened map[module.Version]bool
}

// parseModule parses a go.mod as go does. The lax parser would read no replacements, and what is replaced would be allowed.
func parseModule(m manifest.Text) (parsed, error) {
	one := parsed{text: m, shortened: map[module.Version]bool{}}
	var err error
	one.file, err = modfile.Parse(m.File, m.Data, func(name, version string) (string, error) {
		whole := module.CanonicalVersion(version)
		if whole == "" {
			return "", &module.ModuleError{Path: name, Err: &module.InvalidVersionError{Version: version, Err: errors.New("must be of the form v1.2.3")}}
		}
		if whole != version {
			one.shortened[module.Version{Path: name, Version: whole}] = true
		}
		return whole, nil
	})
	return one, err
}

// readModule notes what a go.mod asks for.
func readModule(w *manifest.Wants, m manifest.Text) error {
	one, err := parseModule(m)
	if err != nil {
		return err
	}
	noteModules(w, replacements{}, []parsed{one})
	if m.File == modFile && !w.Has(workFile) {
		readNested(w, m)
	}
	return nil
}

// readNested reads the modules below the one at the project's top, where no workspace says which are worked on: each is installed by
// itself, in its directory, and their names are the project's. Directories that go passes over are passed over.
func readNested(w *manifest.Wants, m manifest.Text) {
	dirs, err := w.Below(m)
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

// noteModules notes the direct requirements of modules (with_dependencies brings the others), each as what replaces it. In a workspace,
// replacements and exclusions of one module hold for all of them, and those of the workspace's go before.
func noteModules(w *manifest.Wants, work replacements, modules []parsed) {
	replaced, excluded := replacements{}, map[module.Version]bool{}
	maps.Copy(replaced, work)
	for _, one := range modules {
		if one.file.Module != nil {
			w.Keep(one.file.Module.Mod.Path)
		}
		replaced.noteReplacements(w, one.text.File, one.file.Replace, work)
		for _, x := range one.file.Exclude {
			excluded[x.Mod] = true
			if one.shortened[x.Mod] {
				w.Add(x.Mod.Path, one.text.File, x.Syntax.Start.Line)
			}
		}
	}
	for _, one := range modules {
		for _, r := range one.file.Require {
			switch {
			case r.Indirect || replaced.hasReplacement(r.Mod):
			case excluded[r.Mod]:
				w.LeaveOut(one.text.File, r.Syntax.Start.Line, r.Mod.String(), "this version is excluded, so that go does not ask for it")
			default:
				w.Add(r.Mod.Path, one.text.File, r.Syntax.Start.Line)
				w.Name(r.Mod.Path, "=="+r.Mod.Version)
			}
		}
	}
}

// replacements are modules that go asks for another one in the place of, with what that is: a module, or a directory from the project's.
type replacements map[module.Version]module.Version

func (all replacements) hasReplacement(required module.Version) bool {
	_, one := all[required]
	_, every := all[module.Version{Path: required.Path}]
	return one || every
}

// noteReplacements notes what is asked for in the place of other modules: these, without a version where every one is replaced. A module
// that is a directory, if only in one version, may have nobody outside who owns its name. Of what a workspace replaces
// itself (work), no member's replacement is asked for.
func (all replacements) noteReplacements(w *manifest.Wants, file string, lines []*modfile.Replace, work replacements) {
	for _, r := range lines {
		number, text, to := r.Syntax.Start.Line, strings.TrimSpace(r.Old.Path+" "+r.Old.Version)+" => "+r.New.Path, r.New
		if r.New.Version == "" {
			w.LeaveOut(file, number, text, "it is a directory of your own")
			w.Keep(r.Old.Path)
			w.NoteFolder(file, r.New.Path)
			to.Path = path.Join(path.Dir(file), r.New.Path)
		}
		if work.hasReplacement(r.Old) {
			continue
		}
		before, is := all[r.Old]
		all[r.Old] = to
		switch {
		case is && before != to:
			w.LeaveOut(file, number, text, "another module of the workspace replaces it otherwise, which go refuses")
		case to.Version != "":
			w.Add(to.Path, file, number)
			w.Name(to.Path, "=="+to.Version)
		}
	}
}

// readWork reads the modules of a workspace.
func readWork(w *manifest.Wants, m manifest.Text) error {
	f, err := modfile.ParseWork(m.File, m.Data, nil)
	if err != nil {
		return err
	}
	work := replacements{}
	work.noteReplacements(w, m.File, f.Replace, nil)
	var modules []parsed
	member := manifest.Format{Name: modFile, Read: func(_ *manifest.Wants, m manifest.Text) error {
		one, err := parseModule(m)
		modules = append(modules, one)
		return err
	}}
	for _, use := range f.Use {
		dir := path.Join(path.Dir(m.File), use.Path)
		if path.IsAbs(use.Path) || module.CheckFilePath(path.Join("x", use.Path)) != nil || strings.HasPrefix(dir, "..") {
			w.Withhold(m.File, use.Syntax.Start.Line, use.Path, "it is not in this directory, so that its module's name is not read")
			w.NoteFolder(m.File, use.Path)
			continue
		}
		found, err := w.Include(member, path.Join(dir, modFile))
		if err != nil {
			return err
		}
		if !found {
			w.LeaveOut(m.File, use.Syntax.Start.Line, use.Path, "there is no go.mod")
		}
	}
	noteModules(w, work, modules)
	return nil
}
