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
	"maps"
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
	// Hidden: nothing is known of it, and its name is of the kind that programs keep their settings in.
	Hidden
	// Instructing: an agent that works there later takes it for what its user wants.
	Instructing
	// Started: a program runs it, or does what it says, when the directory is opened, listed
	// or worked in as usual, and shows nobody that it does.
	Started
	// Deciding: it says what later runs may do, and what they see.
	Deciding
)

// ByName tells whether such a file is brought over only if a person names it.
func (l Level) ByName() bool { return l >= Hidden }

// Effect is what happens with such a file, to follow its name; "" if nothing is known to.
func (l Level) Effect() string {
	switch l {
	case Used:
		return "which tools run when you use them there"
	case Hidden:
		return "in which programs that are not known here may keep settings"
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
	case Hidden:
		return "before you work there: its name is hidden, or a hidden file names it, and programs keep their settings in such files"
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
	case Hidden:
		return "before you work there, since their names are hidden, or hidden files name them, and programs keep their settings in such files"
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

// environmentParts are the names that are Python's in a virtual environment.
func environmentParts() []string {
	return []string{"pyvenv.cfg", "bin", "scripts", "lib", "lib64", "include", "share"}
}

// environmentMark makes a directory a virtual environment, whose programs editors and clients run.
const environmentMark = "pyvenv.cfg"

// Marks are names that Know has to hear of in each directory in which there are any, since
// they make it a repository, as git writes them, or a virtual environment.
func Marks() []string { return []string{"HEAD", "commondir", "objects", "refs", environmentMark} }

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
	names      map[string]match
	alone      map[string]match // names of files, which say nothing of what is below a directory that has one
	endings    []affix
	beginnings []affix
	tails      []affix          // names of several parts
	leads      map[string]match // paths, folded; what is below one counts as well
	whole      []grown          // directories that have no name of their own
}

// match is what is known of a name.
type match struct {
	level Level
	scope Scope
}

// affix is how a name ends or begins.
type affix struct {
	text string
	match
}

// grown is a directory that a program takes for one of its own by what is in it.
type grown struct {
	dir   string   // folded; "." is the whole
	parts []string // of the whole, its own
}

// Lead is a path that is as a file of a level: a link or a setting of that file leads there.
type Lead struct {
	Path  string
	Level Level
	Scope Scope
}

// With is a copy that knows leads as well, each with all that is below it.
func (f Files) With(leads ...Lead) Files {
	f.leads = maps.Clone(f.leads)
	for _, l := range leads {
		f.Learn(l)
	}
	return f
}

// Learn knows a lead from now on.
func (f Files) Learn(l Lead) {
	at := Fold(path.Clean(l.Path))
	m := f.leads[at]
	f.leads[at] = match{max(m.level, l.Level), max(m.scope, l.Scope)}
}

// Know looks at all paths of a directory, relative to it and with slashes. Those that were
// there before and those that are to come must be among them: git's parts of a repository may
// come one by one. deciding are those of which the caller knows that they are Deciding, with all
// that is below them, whatever their names are.
func Know(paths iter.Seq[string], deciding ...string) Files {
	f := Files{names: map[string]match{}, alone: map[string]match{}, leads: map[string]match{}}
	for _, name := range deciding {
		f.Learn(Lead{Path: name, Level: Deciding})
	}
	f.learnPrograms(programs())
	parts := map[string]map[string]bool{}
	for name := range paths {
		for name = Fold(name); name != "." && name != "/"; name = path.Dir(name) {
			base, dir := path.Base(name), path.Dir(name)
			switch base {
			default:
				continue
			case "head", "commondir", "objects", "refs", environmentMark: // as Marks, folded
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
			f.whole = append(f.whole, grown{dir, repositoryParts()})
		}
		if has[environmentMark] {
			f.whole = append(f.whole, grown{dir, environmentParts()})
		}
	}
	return f
}

// learnPrograms takes the names of programs.
func (f *Files) learnPrograms(all []program) {
	for _, p := range all {
		m := match{p.level, p.scope}
		for _, name := range p.names {
			if file, ok := strings.CutPrefix(name, "="); ok {
				f.alone[file] = m
			} else if ending, ok := strings.CutPrefix(name, "*"); ok {
				f.endings = append(f.endings, affix{ending, m})
			} else if beginning, ok := strings.CutSuffix(name, "*"); ok {
				f.beginnings = append(f.beginnings, affix{beginning, m})
			} else if strings.Contains(name, "/") {
				f.tails = append(f.tails, affix{"/" + name + "/", m})
			} else {
				f.names[name] = m
			}
		}
	}
}

// Level is a path's, which that of a directory above it may be.
func (f Files) Level(name string) Level { return f.matchName(name).level }

// Scope tells which paths that a file names are as that file itself.
func (f Files) Scope(name string) Scope { return f.matchName(name).scope }

func (f Files) matchName(name string) match {
	name = Fold(name)
	var found match
	sealed := false
	add := func(m match) {
		sealed = sealed || m.scope == ScopeSealed
		switch {
		case m.level > found.level:
			found = m
		case m.level == found.level:
			found.scope = max(m.scope, found.scope)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		add(f.namedPart(part))
	}
	add(f.alone[path.Base(name)])
	for _, t := range f.tails {
		if strings.Contains("/"+name+"/", t.text) {
			add(t.match)
		}
	}
	if slices.ContainsFunc(f.whole, func(g grown) bool { return g.hasName(name) }) {
		add(match{Started, ScopeSealed})
	}
	for at := name; len(f.leads) > 0; at = path.Dir(at) {
		add(f.leads[at])
		if at == "." || at == "/" {
			break
		}
	}
	if sealed {
		found.scope = ScopeSealed
	}
	return found
}

// namedPart is what one name of a path says, folded. One that is known as it is is nothing else.
func (f Files) namedPart(part string) match {
	if m, known := f.names[part]; known {
		return m
	}
	var found match
	for _, a := range f.endings {
		// How a hidden name ends says no less than that it is one.
		if strings.HasSuffix(part, a.text) && a.level > found.level && (a.level >= Hidden || !isHidden(part)) {
			found = a.match
		}
	}
	for _, a := range f.beginnings {
		if strings.HasPrefix(part, a.text) && a.level > found.level {
			found = a.match
		}
	}
	if found.level == Plain && (isHidden(part) || isShort(part)) {
		return match{Hidden, ScopeFiles}
	}
	return found
}

// isHidden tells of a name that listings do not show.
func isHidden(part string) bool {
	return strings.HasPrefix(part, ".") && part != "." && part != ".."
}

// isShort tells of a name that some file systems give a longer one besides, as GIT~1 is .git's: it
// may be any file's that the list has.
func isShort(part string) bool {
	base, ending, _ := strings.Cut(part, ".")
	name, number, ok := strings.Cut(base, "~")
	return ok && name != "" && len(base) <= 8 && len(ending) <= 3 && number != "" && strings.Trim(number, "0123456789") == ""
}

// hasName wants a folded name.
func (g grown) hasName(name string) bool {
	if g.dir == "." {
		first, _, _ := strings.Cut(name, "/")
		return slices.Contains(g.parts, first)
	}
	return name == g.dir || strings.HasPrefix(name, g.dir+"/")
}
