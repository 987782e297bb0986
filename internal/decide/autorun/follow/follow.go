// Package follow finds the files that count as those that programs start or obey, though their
// names say nothing: a link leads to them, or a setting of such a file names them. Pure.
//
// It finds names that stand in a text as they are, whole or from a directory above the file. A
// name that a program puts together when it runs is not found, nor one in a text that is larger
// than what is read.
package follow

import (
	"cmp"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// Bounds of following links: the kernel's own for one way, and how many names are gone through for
// all of a tree, whose links whoever was inside chose. Past that every link counts.
const (
	mostLinks = 40
	mostNames = 500_000
	maxTarget = 4096
)

// Tree is a directory as it is, and as it would be with changes of a copy.
type Tree struct {
	Root string // absolute, without links
	// Paths are all files and links, and whether they are changed, or may be.
	Paths iter.Seq[string]
	// Links are what links lead to: in the original, and with the changes.
	Links map[string][]string
	// Texts are what a file holds, in the original and with the changes.
	Texts func(name string) [][]byte
	// Unread tells of a name that is, in the original or with the changes, something else than a file
	// that Texts gives: a link, or one that is too large. nil: there is none.
	Unread func(name string) bool
	// Leads are the places below Root that a link of the original leads to and through, as the
	// host's file system has it; relative. nil: none are known but by Links.
	Leads func(name string) []string
}

// Outside is a text from outside of the tree that programs obey, such as git's own settings.
type Outside struct {
	Bases []string // directories that its relative names may be from; absolute
	Text  []byte
}

// Find finds the leads of a tree.
func Find(files autorun.Files, t Tree, outside []Outside) []autorun.Lead {
	s := &search{tree: t, files: files.With(), all: map[string]string{}, stems: map[string][]string{}, dirs: map[string]bool{".": true}, links: map[string][]string{}, found: map[string]autorun.Lead{}, ways: map[string]autorun.Level{}}
	for name := range t.Paths {
		s.knowName(name)
	}
	for name, targets := range t.Links {
		s.knowName(name)
		s.links[autorun.Fold(name)] = targets
	}
	for _, o := range outside {
		s.readText(o.Text, o.Bases, autorun.Lead{Level: autorun.Started, Scope: autorun.ScopeDirs})
	}
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		s.lookAt(name)
	}
	for len(s.queue) > 0 {
		name := s.queue[0]
		s.queue = s.queue[1:]
		s.lookAt(name)
	}
	for at, level := range s.ways {
		old := s.found[at]
		s.found[at] = autorun.Lead{Path: at, Level: max(old.Level, level), Scope: old.Scope}
	}
	return slices.SortedFunc(maps.Values(s.found), func(a, b autorun.Lead) int { return cmp.Compare(a.Path, b.Path) })
}

// search is one looking for leads. Its names are folded, but for the values of all.
type search struct {
	tree  Tree
	files autorun.Files
	all   map[string]string   // files and links
	stems map[string][]string // the same without the ends of their names
	odd   []string            // those whose names are no words of a text
	dirs  map[string]bool
	links map[string][]string
	found map[string]autorun.Lead
	ways  map[string]autorun.Level // links on the way, which say where it goes, and are not followed to their own ends
	queue []string                 // that have become what they are since they were looked at
	names int                      // that were gone through to follow links
}

func (s *search) knowName(name string) {
	at := autorun.Fold(name)
	if _, known := s.all[at]; known {
		return
	}
	s.all[at] = name
	if stem, ok := strings.CutSuffix(at, path.Ext(at)); ok && stem != at {
		s.stems[stem] = append(s.stems[stem], at)
	}
	if strings.ContainsFunc(at, isBorder) {
		s.odd = append(s.odd, at)
	}
	for dir := path.Dir(at); !s.dirs[dir]; dir = path.Dir(dir) {
		s.dirs[dir] = true
	}
}

// lookAt follows a link, or reads a file, that is one of those that programs start or obey.
func (s *search) lookAt(at string) {
	name := s.all[at]
	lead := autorun.Lead{Level: s.files.Level(name), Scope: s.files.Scope(name)}
	if lead.Level == autorun.Used {
		s.lookInside(at)
	}
	if !lead.Level.ByName() || lead.Level == autorun.Deciding { // what decides is followed by who knows its form
		return
	}
	if targets, ok := s.links[at]; ok {
		for _, target := range targets {
			s.followLink(path.Dir(path.Join(s.tree.Root, name)), target, lead, 0)
		}
		if s.tree.Leads != nil {
			for _, to := range s.tree.Leads(name) {
				s.markPath(to, lead)
			}
		}
	}
	if lead.Scope == autorun.ScopeNone || lead.Scope == autorun.ScopeSealed || isStore(at) {
		return
	}
	for _, text := range s.tree.Texts(name) {
		if isProse(at) {
			s.readProse(text, s.dirsAbove(name), lead)
		} else {
			s.readText(text, s.dirsAbove(name), lead)
		}
	}
}

// dirsAbove are the directories above a file, from the nearest to the tree's root.
func (s *search) dirsAbove(name string) []string {
	var all []string
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		all = append(all, path.Join(s.tree.Root, dir))
		if dir == "." {
			return all
		}
	}
}

// isStore tells of what a version control keeps, and names nothing by: in git's directory only
// settings and hooks do. Folded.
func isStore(at string) bool {
	in := "/" + at
	_, rest, ok := strings.Cut(in, "/.git/")
	if !ok {
		return strings.Contains(in, "/.hg/store/") || strings.Contains(in, "/.svn/")
	}
	if strings.HasSuffix(rest, ".sample") {
		return true
	}
	return !strings.HasPrefix(rest, "config") && !strings.Contains("/"+rest, "/hooks/") && path.Base(rest) != "config"
}

// markPath notes that a path is as a file that leads to it; what is below it is looked at anew.
func (s *search) markPath(rel string, lead autorun.Lead) {
	at := autorun.Fold(path.Clean(rel))
	if at == "." || at == ".." || strings.HasPrefix(at, "../") || strings.HasPrefix(at, "/") {
		return
	}
	old := s.found[at]
	made := autorun.Lead{Path: at, Level: max(old.Level, lead.Level), Scope: max(old.Scope, lead.Scope)}
	if made == old {
		return
	}
	s.found[at] = made
	s.files.Learn(made)
	if _, is := s.all[at]; is {
		s.queue = append(s.queue, at)
	}
	if s.dirs[at] {
		for name := range s.all {
			if strings.HasPrefix(name, at+"/") {
				s.queue = append(s.queue, name)
			}
		}
	}
}

// followLink goes where a link leads, and marks each link on the way, which says where, and the end.
// dir is absolute, as the link is in it.
func (s *search) followLink(dir, target string, lead autorun.Lead, links int) {
	if links > mostLinks || len(target) > maxTarget || s.names > mostNames {
		return
	}
	at := dir
	if strings.HasPrefix(target, "/") {
		at = "/"
	}
	parts := strings.Split(target, "/")
	for i, part := range parts {
		if s.names++; s.names > mostNames {
			for link := range s.links {
				s.markPath(link, lead)
			}
			return
		}
		at = path.Join(at, part)
		rel, ok := s.relative(at)
		if !ok {
			continue
		}
		targets := s.links[autorun.Fold(rel)]
		if len(targets) == 0 {
			continue
		}
		s.ways[autorun.Fold(rel)] = max(s.ways[autorun.Fold(rel)], lead.Level)
		rest := path.Join(parts[i+1:]...)
		for _, next := range targets {
			if rest != "" {
				next += "/" + rest
			}
			s.followLink(path.Dir(at), next, lead, links+1)
		}
		return
	}
	if rel, ok := s.relative(at); ok {
		s.markPath(rel, lead)
	}
}

// relative is a path from the root, if it is below that.
func (s *search) relative(abs string) (string, bool) {
	if s.tree.Root == "/" {
		return strings.TrimPrefix(abs, "/"), true
	}
	return strings.CutPrefix(abs, s.tree.Root+"/")
}
