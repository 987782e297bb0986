package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun/follow"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// mostNaming bounds a text that is looked through for names of files.
const mostNaming = 1 << 20

// leadsOf are the paths of a copy and of its original that count for what leads there: links and
// settings, those of the original, those that would come, and the person's own from elsewhere.
func leadsOf(ctx context.Context, w *workspace.Workspace, files autorun.Files, changes []workspace.Change) ([]autorun.Lead, error) {
	now, links, err := w.Now(ctx)
	if err != nil {
		return nil, err
	}
	own := personsLeads(w.Original())
	for _, c := range changes {
		if isCommand(c) {
			own = append(own, autorun.Lead{Path: c.Path, Level: autorun.Started, Scope: autorun.ScopeDirs})
		}
	}
	tree := follow.Tree{
		Root: w.Original(), Links: targetsOf(w, links, changes),
		Paths: func(yield func(string) bool) {
			for _, name := range now {
				if !yield(name) {
					return
				}
			}
			for _, c := range changes {
				if c.Kind != workspace.Dir && !yield(c.Path) {
					return
				}
			}
		},
		Texts: func(name string) [][]byte {
			old, young := w.Texts(name, mostNaming)
			return [][]byte{old, young}
		},
		Unread: func(name string) bool {
			return isUnread(filepath.Join(w.Original(), name)) || isUnread(filepath.Join(w.Dir(), name))
		},
		Leads: func(name string) []string {
			return leadsBelow(w.Original(), filepath.Join(w.Original(), filepath.FromSlash(name)))
		},
	}
	return append(own, follow.Find(files.With(own...), tree, outsideTexts(w.Original()))...), nil
}

// isUnread tells of something that is there, and no file that is looked through for names.
func isUnread(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && (!info.Mode().IsRegular() || info.Size() > mostNaming)
}

// targetsOf is what links lead to: those that the original has now, then those that it had, then those that
// would come.
func targetsOf(w *workspace.Workspace, now map[string]string, changes []workspace.Change) map[string][]string {
	targets := map[string][]string{}
	add := func(name, target string) {
		if !slices.Contains(targets[name], target) {
			targets[name] = append(targets[name], target)
		}
	}
	for name, target := range now {
		add(name, target)
	}
	for name, target := range w.ListedLinks() {
		add(name, target)
	}
	for _, c := range changes {
		if c.Kind == workspace.Link && c.How != workspace.Removed {
			add(c.Path, c.Target)
		}
	}
	return targets
}

// isCommand tells of what can be run by its name alone where a shell looks for programs: in such
// directories as people and tools have in their PATH.
func isCommand(c workspace.Change) bool {
	if c.How == workspace.Removed || c.Kind != workspace.Link && (c.Kind != workspace.File || !c.Executable) {
		return false
	}
	switch strings.ToLower(path.Base(path.Dir(c.Path))) {
	case "bin", "sbin", "shims", "scripts-bin":
		return true
	}
	return false
}

// leadsBelow are the links on the way of a path, and where it leads, below a directory; relative.
func leadsBelow(dir, name string) []string {
	to, links, err := hostpath.Links(name)
	if err == nil {
		links = append(links, to)
	}
	var all []string
	for _, at := range links {
		if rel, err := filepath.Rel(dir, at); err == nil && rel != "." && filepath.IsLocal(rel) {
			all = append(all, filepath.ToSlash(rel))
		}
	}
	return all
}

// personsLeads are the paths below a directory that the person's own surroundings lead to: the
// directories of the PATH, files that variables name for shells and git, and links of the home directory.
func personsLeads(dir string) []autorun.Lead {
	return leadsTo(dir, append(personsNames(dir), personsLinks()...))
}

// leadsTo are the paths below a directory that absolute names lead to and through.
func leadsTo(dir string, names []string) []autorun.Lead {
	var all []autorun.Lead
	for _, name := range names {
		for _, rel := range leadsBelow(dir, name) {
			all = append(all, autorun.Lead{Path: rel, Level: autorun.Started, Scope: autorun.ScopeDirs})
		}
	}
	return all
}

// personsNames are the directories of the PATH, of which relative ones begin at dir, and the files and
// directories that variables name.
func personsNames(dir string) []string {
	var names []string
	for _, at := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		names = append(names, at)
	}
	for _, variable := range []string{"BASH_ENV", "ENV", "ZDOTDIR", "PYTHONSTARTUP", "GIT_CONFIG_GLOBAL", "GIT_TEMPLATE_DIR", "GIT_EXEC_PATH", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER", "NPM_CONFIG_USERCONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} {
		if at := os.Getenv(variable); filepath.IsAbs(at) {
			names = append(names, at)
		}
	}
	return names
}

// personsLinks are links of the home directory, and of those in it from which programs are started or set.
func personsLinks() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var names []string
	for _, sub := range []string{"", ".config", ".local/bin", "bin", ".claude", ".codex"} {
		names = append(names, linksIn(filepath.Join(home, sub))...)
	}
	return names
}

// linksIn are the links in a directory of the person's.
func linksIn(dir string) []string {
	at, err := hostpath.Follow(dir)
	if err != nil {
		return nil // there is none
	}
	defer at.Close()
	root, err := at.Root()
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			all = append(all, filepath.Join(at.Name, e.Name()))
		}
	}
	return all
}

// gitDir is git's directory of a working tree with such a top; "" if it is none.
func gitDir(top string) string {
	at := filepath.Join(top, ".git")
	p, err := hostpath.Follow(at)
	if err != nil {
		return ""
	}
	defer p.Close()
	if p.ID.Type == hostpath.Dir {
		return p.Name
	}
	text, err := p.ReadFile(mostNaming)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if dir = strings.TrimSpace(dir); err != nil || !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	if common := strings.TrimSpace(string(textOf(filepath.Join(dir, "commondir")))); common != "" {
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
		return filepath.Clean(common)
	}
	return dir
}

// textOf is a file that is read to find out what it names, and wherever it lies; nil: none.
func textOf(name string) []byte {
	p, err := hostpath.Follow(name)
	if err != nil {
		return nil
	}
	defer p.Close()
	text, err := p.ReadFile(mostNaming)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return text
}

// mostLooked is how many files of a directory are looked at for what leads to what is copied there.
const mostLooked = 50_000

// tooDeep tells of a directory in which nobody keeps settings, whose depth would end the looking.
func tooDeep(name string) bool { return strings.Count(name, "/") >= 100 || len(name) > 3000 }

// leadsInto are the paths below a directory of the person's to which its links and settings, and
// the person's own from elsewhere, lead. It is as much as the first so many files tell.
func leadsInto(ctx context.Context, dir string, files autorun.Files) []autorun.Lead {
	at, err := openNamed(dir)
	if err != nil {
		return nil
	}
	defer at.Close()
	root, err := at.Root()
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	paths, links := filesToLookAt(ctx, at, root, files)
	own := personsLeads(at.Name)
	tree := follow.Tree{
		Root: at.Name, Paths: slices.Values(paths), Links: links,
		Texts: func(name string) [][]byte { return [][]byte{textOf(filepath.Join(at.Name, name))} },
		Leads: func(name string) []string { return leadsBelow(at.Name, filepath.Join(at.Name, name)) },
	}
	return append(own, follow.Find(files.With(own...), tree, outsideTexts(at.Name))...)
}

// filesToLookAt are the first so many of a directory, and where those of them that are links lead. Settings have names with a dot at the top,
// which come first: a walk has no order in a large directory.
func filesToLookAt(ctx context.Context, at *hostpath.Path, root *os.Root, files autorun.Files) (paths []string, links map[string][]string) {
	links = map[string][]string{}
	for _, dotted := range []bool{true, false} {
		// A file that can't be read leads nowhere that is known.
		_ = treewalk.Walk(ctx, at, ".", treewalk.Usual(), func(name string, d fs.DirEntry, err error) error {
			others := name != "." && strings.HasPrefix(name, ".") != dotted
			switch {
			case err != nil || d.IsDir() && (others || files.Scope(name) == autorun.ScopeSealed || tooDeep(name)):
				return fs.SkipDir
			case d.IsDir() || others:
				return nil
			case len(paths) == mostLooked:
				return fs.SkipAll
			}
			paths = append(paths, name)
			if target, err := root.Readlink(name); err == nil && d.Type()&fs.ModeSymlink != 0 {
				links[name] = []string{target}
			}
			return nil
		})
	}
	return paths, links
}
