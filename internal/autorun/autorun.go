// Package autorun knows the files that programs of a developer's machine start, or take
// orders from, without being asked for it: editors, git, package clients, agents, and we
// ourselves. Somebody who brings over files from a sandbox is asked about these by name. Pure.
//
// A name is compared as the least exact of file systems does, since the one that the files come
// to may be one of them (Fold), and at any depth, since any directory may be the one that a
// program is started in. A directory that git takes for a repository has no name of its own;
// it is recognised by what is in it.
package autorun

import (
	"iter"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Level is how a file comes to be run.
type Level int

// Levels, from the harmless on.
const (
	// Plain: nothing is known to run it.
	Plain Level = iota
	// Used: a tool runs it when a person uses that tool there, as make does its makefile.
	Used
	// Instructing: an agent that works there later takes it for what its user wants.
	Instructing
	// Started: a program runs it, or does what it says, when the directory is opened, listed
	// or worked in as usual, and shows nobody that it does.
	Started
	// Deciding: it says what later runs may do, and what they see.
	Deciding
)

// ByName tells whether such a file is brought over only if a person names it.
func (l Level) ByName() bool { return l >= Instructing }

// Effect is what happens with such a file, to follow its name; "" if nothing is known to.
func (l Level) Effect() string {
	switch l {
	case Used:
		return "which tools run when you use them there"
	case Instructing:
		return "from which agents that work there take instructions"
	case Started:
		return "which programs of this host run by themselves"
	case Deciding:
		return "which decides what later runs may do"
	default:
		return ""
	}
}

// Caution is when such a file has to be looked at, and why; "" if nothing is known to use it.
func (l Level) Caution() string {
	switch l {
	case Used, Started:
		return "before you use a tool there: tools run what stands in it"
	case Instructing:
		return "before an agent works there: agents take instructions from it"
	case Deciding:
		return "before the next run: it decides what runs may do"
	default:
		return ""
	}
}

// Cautions is Caution of several files.
func (l Level) Cautions() string {
	switch l {
	case Used, Started:
		return "before you use a tool there, since tools run what stands in them"
	case Instructing:
		return "before an agent works there, since agents take instructions from them"
	case Deciding:
		return "before the next run, since they decide what runs may do"
	default:
		return ""
	}
}

// repositoryParts are the names that are git's in a repository without a working tree.
func repositoryParts() []string {
	return []string{
		"head", "config", "config.worktree", "commondir", "gitdir", "index", "objects", "refs", "packed-refs", "reftable",
		"hooks", "info", "logs", "modules", "worktrees", "branches", "description", "shallow", "orig_head", "fetch_head",
	}
}

// Marks are names that Know has to hear of in each directory in which there are any, since
// they make it a repository, as git writes them.
func Marks() []string { return []string{"HEAD", "commondir", "objects", "refs"} }

// Fold gives all names one form that some file system takes for the same: without regard to
// case and composition (in all of Unicode, as ext4 and others do it), without the characters that HFS+ ignores,
// and without what Windows drops from a name's end, such as dots, spaces and a stream's name.
func Fold(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // formats, which nobody sees
				return -1
			}
			return r
		}, name)
		name = norm.NFD.String(cases.Fold().String(norm.NFD.String(name)))
	}
	parts := strings.Split(strings.ToLower(name), "/")
	for i, part := range parts {
		if part == "." || part == ".." {
			continue
		}
		part, _, _ = strings.Cut(part, ":")
		parts[i] = strings.TrimRight(part, " .")
	}
	return strings.Join(parts, "/")
}

// Files tells the level of each path of a directory.
type Files struct {
	names        map[string]Level
	endings      []affix
	beginnings   []affix
	deciding     map[string]bool // paths, folded
	repositories []string        // directories that git takes for repositories, folded; "." is the whole
}

// affix is how a name ends or begins.
type affix struct {
	text  string
	level Level
}

// Know looks at all paths of a directory, relative to it and with slashes. Those that were
// there before and those that are to come must be among them: git's parts of a repository may
// come one by one. deciding are those of which the caller knows that they are Deciding, with all
// that is below them, whatever their names are.
func Know(paths iter.Seq[string], deciding ...string) Files {
	f := Files{names: map[string]Level{}, deciding: map[string]bool{}}
	for _, name := range deciding {
		f.deciding[Fold(path.Clean(name))] = true
	}
	for _, p := range programs() {
		for _, name := range p.names {
			if ending, ok := strings.CutPrefix(name, "*"); ok {
				f.endings = append(f.endings, affix{ending, p.level})
			} else if beginning, ok := strings.CutSuffix(name, "*"); ok {
				f.beginnings = append(f.beginnings, affix{beginning, p.level})
			} else {
				f.names[name] = max(f.names[name], p.level)
			}
		}
	}
	parts := map[string]map[string]bool{}
	for name := range paths {
		for name = Fold(name); name != "." && name != "/"; name = path.Dir(name) {
			base, dir := path.Base(name), path.Dir(name)
			switch base {
			default:
				continue
			case "head", "commondir", "objects", "refs": // as Marks, folded
			}
			if parts[dir] == nil {
				parts[dir] = map[string]bool{}
			}
			parts[dir][base] = true
		}
	}
	for dir, has := range parts {
		// A repository's objects and references may be elsewhere, where commondir says.
		if has["head"] && (has["commondir"] || has["objects"] && has["refs"]) {
			f.repositories = append(f.repositories, dir)
		}
	}
	slices.Sort(f.repositories)
	return f
}

// Level is a path's, which that of a directory above it may be.
func (f Files) Level(name string) Level {
	level := Plain
	name = Fold(name)
	for part := range strings.SplitSeq(name, "/") {
		level = max(level, f.names[part])
		for _, a := range f.endings {
			if strings.HasSuffix(part, a.text) {
				level = max(level, a.level)
			}
		}
		for _, a := range f.beginnings {
			if strings.HasPrefix(part, a.text) {
				level = max(level, a.level)
			}
		}
	}
	if f.inRepository(name) {
		level = max(level, Started)
	}
	if f.isDeciding(name) {
		level = Deciding
	}
	return level
}

// isDeciding wants a folded name.
func (f Files) isDeciding(name string) bool {
	for len(f.deciding) > 0 {
		if f.deciding[name] {
			return true
		}
		slash := strings.LastIndexByte(name, '/')
		if slash < 0 {
			break
		}
		name = name[:slash]
	}
	return false
}

// inRepository wants a folded name.
func (f Files) inRepository(name string) bool {
	return slices.ContainsFunc(f.repositories, func(dir string) bool {
		if dir == "." {
			first, _, _ := strings.Cut(name, "/")
			return slices.Contains(repositoryParts(), first)
		}
		return name == dir || strings.HasPrefix(name, dir+"/")
	})
}
