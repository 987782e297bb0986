package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun/follow"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// pointOut tells of names by which programs of this machine run, or are changed
// by, what lies there. The directories count for what they make of what is in them. All are
// below dir.
func (c *copying) pointOut(ctx context.Context, dir string, names, dirs []string) {
	look := lookInto(ctx, dir, slices.Concat(names, dirs))
	found := map[autorun.Level][]string{}
	for _, name := range names {
		level := look.levelOf(name)
		// Tools run the one when they are asked to, and the other unasked: both are looked at before.
		if level == autorun.Used {
			level = autorun.Started
		}
		found[level] = append(found[level], ui.PrintableName(name))
	}
	const most = 8
	for level := autorun.Hidden; level <= autorun.Deciding; level++ { // as "apply" has them named
		of, more := found[level], ""
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		if len(of) > most {
			more = fmt.Sprintf(" and %d more", len(of)-most)
			of = of[:most]
		}
		c.addNote("look at these %s: %s%s", level.Cautions(), strings.Join(of, ", "), more)
	}
}

// targetLook judges what was copied into a directory of this machine by where it lies there.
type targetLook struct {
	dirs  []string // the directory's absolute names: without links, and as it was written
	trees []knownTree
	place autorun.Files // by absolute paths, without the first slash
}

// knownTree is a directory, absolute and without links, with what is known of the paths below it.
type knownTree struct {
	top   string
	files autorun.Files
}

// lookInto looks at a directory into which paths were copied, relative to it, and at what was there before.
func lookInto(ctx context.Context, dir string, paths []string) targetLook {
	to := resolvedFromHere(dir)
	l := targetLook{dirs: []string{to}}
	if written, err := filepath.Abs(dir); err == nil && written != to {
		l.dirs = append(l.dirs, written)
	}
	var whole []string
	for _, at := range l.dirs {
		for _, name := range paths {
			whole = append(whole, filepath.Join(at, name))
		}
	}
	whole = append(whole, marksAbove(whole)...)
	l.place = autorun.Know(pathsIn("/", whole))
	l.place = l.place.With(leadsToPlace(to, l.place, whole)...)
	for _, top := range treesOf(to) {
		files := autorun.Know(pathsIn(top, whole), decidingBelow(top)...)
		l.trees = append(l.trees, knownTree{top, files.With(leadsInto(ctx, top, files)...)})
	}
	return l
}

// leadsToPlace are the leads to absolute paths, without the first slash, and to the directories above them: the
// person's own surroundings may lead to the directory itself into which something was copied. Links whose
// names are visible do not count, by which many a person has nothing but data elsewhere.
func leadsToPlace(to string, place autorun.Files, whole []string) []autorun.Lead {
	names := personsNames(to)
	for _, link := range personsLinks() {
		if strings.Contains(link, "/.") {
			names = append(names, link)
		}
	}
	own := leadsTo("/", names)
	tree := follow.Tree{
		Root: "/", Paths: pathsIn("/", whole),
		Texts: func(string) [][]byte { return nil }, // those of the trees are read with these
		Leads: func(string) []string { return nil },
	}
	return append(own, follow.Find(place.With(own...), tree, outsideTexts(to))...)
}

// levelOf is that of a path below the directory: in each tree that it belongs to, as "apply" would see it, and
// by the directories above. A hidden name of those tells nothing about what is below, unless programs keep
// their settings there.
func (l targetLook) levelOf(name string) autorun.Level {
	var level autorun.Level
	for _, dir := range l.dirs {
		at := filepath.Join(dir, name)
		for in := range pathsIn("/", []string{at}) {
			if placed := l.place.Level(in); placed >= autorun.Instructing || holdsSettings(dir) {
				level = max(level, placed)
			}
		}
		for _, tree := range l.trees {
			for in := range pathsIn(tree.top, []string{at}) {
				level = max(level, tree.files.Level(in))
			}
			for _, in := range leadsBelow(tree.top, at) { // it was written there
				level = max(level, tree.files.Level(in))
			}
		}
	}
	return level
}

// holdsSettings tells whether a directory is one in which programs keep their settings, by its name: a
// hidden one itself, such as .ssh, or one for them by custom.
func holdsSettings(dir string) bool {
	return strings.HasPrefix(filepath.Base(dir), ".") || strings.Contains(dir+"/", "/.config/")
}

// pathsIn are those of absolute paths that lie below a directory, relative to it and with slashes.
func pathsIn(top string, paths []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range paths {
			rel, err := filepath.Rel(top, name)
			if err == nil && rel != "." && filepath.IsLocal(rel) && !yield(filepath.ToSlash(rel)) {
				return
			}
		}
	}
}

// treesOf are the trees that a directory belongs to: itself, and each one above it that git or this program
// takes for a whole. That it is one itself, which what was copied may make it, takes it out of none.
func treesOf(dir string) []string {
	trees := []string{dir}
	for at := filepath.Dir(dir); at != filepath.Dir(at); at = filepath.Dir(at) {
		for _, mark := range []string{".git", project.File} {
			if _, err := os.Lstat(filepath.Join(at, mark)); err == nil {
				trees = append(trees, at)
				break
			}
		}
	}
	return trees
}

// marksAbove are the marks (autorun.Marks) that the directories of absolute paths have now.
func marksAbove(paths []string) []string {
	var found []string
	looked := map[string]bool{}
	for _, name := range paths {
		for dir := filepath.Dir(name); !looked[dir]; dir = filepath.Dir(dir) {
			looked[dir] = true
			for _, mark := range autorun.Marks() {
				if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
					found = append(found, filepath.Join(dir, mark))
				}
			}
		}
	}
	return found
}
