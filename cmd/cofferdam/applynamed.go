package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// mostNamed is how many places that have to be named are told of one by one.
const mostNamed = 30

// autorunOf knows the paths of a copy, of what was copied, and of what else made directories
// repositories since, by what programs of this host would do with them: by their names, and by what
// leads to them.
func autorunOf(ctx context.Context, w *workspace.Workspace, changes []workspace.Change) (autorun.Files, error) {
	files := autorunByName(w, changes)
	leads, err := leadsOf(ctx, w, files, changes)
	return files.With(leads...), err
}

func autorunByName(w *workspace.Workspace, changes []workspace.Change) autorun.Files {
	return autorun.Know(func(yield func(string) bool) {
		for name := range w.Listed() {
			if !yield(name) {
				return
			}
		}
		for _, c := range changes {
			if !yield(c.Path) {
				return
			}
		}
		for _, name := range marksNow(w, changes) {
			if !yield(name) {
				return
			}
		}
	}, slices.Concat(w.Deciding(), decidingByProject(w), decidingByContent(w, changes))...)
}

// decidingByProject are the paths of the original that settings name, its own, those above it
// and those below: policies and lockfiles, and what lies on the way to them.
func decidingByProject(w *workspace.Workspace) []string {
	paths := project.Deciding(w.Original())
	for name := range w.Listed() {
		if strings.EqualFold(path.Base(name), project.File) {
			paths = append(paths, project.Deciding(filepath.Join(w.Original(), filepath.FromSlash(path.Dir(name))))...)
		}
	}
	return pathsBelow(w.Original(), paths)
}

// decidingByRequest are the paths of a directory that a run was given to be decided by.
func decidingByRequest(dir string, r *runner) []string {
	paths := withWays(r.request.Policy.Source)
	for _, l := range r.request.Lockfiles {
		paths = append(paths, withWays(l.Source)...)
	}
	return pathsBelow(dir, paths)
}

// withWays adds to an absolute path the links on its way, and where it leads.
func withWays(name string) []string {
	if !filepath.IsAbs(name) {
		return nil // of no file
	}
	all := []string{name}
	resolved, links, err := hostpath.Links(name)
	if err == nil {
		all = append(all, resolved)
	}
	return append(all, links...)
}

// pathsBelow are those of absolute paths that lie below a resolved directory, relative to it.
func pathsBelow(dir string, paths []string) []string {
	var all []string
	for _, p := range paths {
		for _, p := range []string{p, filepath.Join(resolved(filepath.Dir(p)), filepath.Base(p))} {
			rel, err := filepath.Rel(dir, p)
			if err == nil && rel != "." && filepath.IsLocal(rel) && !slices.Contains(all, filepath.ToSlash(rel)) {
				all = append(all, filepath.ToSlash(rel))
			}
		}
	}
	return all
}

// marksNow are the marks of repositories that the original has now in the directories of
// changes: another copy's may have come since this one was made, and what either brings over
// may be no repository without the other's.
func marksNow(w *workspace.Workspace, changes []workspace.Change) []string {
	return w.Marks(func(yield func(string) bool) {
		for _, c := range changes {
			if !yield(c.Path) {
				return
			}
		}
	}, autorun.Marks())
}

// leaveUnnamed leaves out what has to be named and is not among what was, and says so. A
// directory above it does not name it; and who removes one that has some removes that, too.
func leaveUnnamed(w *workspace.Workspace, files autorun.Files, changes []workspace.Change, named []string) []workspace.Change {
	holders := map[string]autorun.Level{}
	for name := range w.Listed() {
		if level := files.Level(name); level.ByName() {
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				holders[dir] = max(holders[dir], level)
			}
		}
	}
	var rest []workspace.Change
	left := map[leftOut]int{}
	for _, c := range changes {
		level := files.Level(c.Path)
		removes := c.How == workspace.Removed && holders[c.Path] > level
		switch {
		case !removes && !level.ByName(), !removes && isNamed(files, named, c.Path), removes && slices.Contains(named, c.Path):
			rest = append(rest, c)
			continue
		case removes:
			level = holders[c.Path]
		}
		left[leftOut{topNamed(files, c.Path), level}]++
	}
	sayLeftOut(left)
	return rest
}

// leftOut is a place that has to be named, and why.
type leftOut struct {
	top   string
	level autorun.Level
}

// describePlace tells of the place, which has so many paths.
func (l leftOut) describePlace(count int) string {
	return fmt.Sprintf("%s in %s, %s: name it to see them and bring them over", pathsText(count), ui.PrintableName(l.top), l.level.Effect())
}

// sayLeftOut tells of places that have to be named, with how many paths there are in each: what
// decides first. Of many, which an install may have made, it tells the rest together.
func sayLeftOut(left map[leftOut]int) {
	places := slices.SortedFunc(maps.Keys(left), func(a, b leftOut) int {
		return cmp.Or(cmp.Compare(b.level, a.level), strings.Compare(a.top, b.top))
	})
	stderr := ui.NewStderr(os.Stderr)
	for _, p := range places[:min(len(places), mostNamed)] {
		stderr.Say("%s", p.describePlace(left[p]))
	}
	for len(places) > mostNamed {
		level, count, more := places[mostNamed].level, 0, 0
		for len(places) > mostNamed && places[mostNamed].level == level {
			count, more = count+left[places[mostNamed]], more+1
			places = slices.Delete(places, mostNamed, mostNamed+1)
		}
		stderr.Say("%s in %d more places, %s: name a directory to see those in it", pathsText(count), more, level.Effect())
	}
}

// isNamed tells whether one of the names is of what has to be named, and has a path in it, or
// on its way to it. A file that decides is not named by naming a directory that programs run
// something of.
func isNamed(files autorun.Files, named []string, at string) bool {
	level := files.Level(at)
	return slices.ContainsFunc(named, func(n string) bool {
		of := files.Level(n)
		return of.ByName() && of >= level && (n == at || strings.HasPrefix(at, n+"/") || strings.HasPrefix(n, at+"/"))
	})
}

// topNamed is the part of a path for which it has to be named.
func topNamed(files autorun.Files, name string) string {
	level := files.Level(name)
	for dir := name; ; dir = path.Dir(dir) {
		if parent := path.Dir(dir); parent == "." || files.Level(parent) < max(level, autorun.Instructing) {
			return dir
		}
	}
}
