package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a workspace's patterns.
const (
	mostFolders  = 20_000 // directories that are looked at
	mostPatterns = 1_000
	mostParts    = 100 // of a pattern
)

// skipped are directories in which neither npm nor pnpm looks for members of a workspace, unless a pattern names them.
func skipped(name string) bool { return name == "node_modules" || strings.HasPrefix(name, ".") }

// Members are the directories that a workspace's patterns lead to, from the directory of its manifest, sorted. As the clients
// have it, * is a part of a name, ** any directories, {a,b} alternatives, and a pattern behind ! takes away what all others lead to, before it
// and behind it. It is an error to have more than is looked at: a member that nobody reads is one whose name is taken for a registry's. For a
// pattern that leads out of the project, or has something else in it that one of the clients may understand, all names are withheld.
func (w *Wants) Members(m Text, patterns []string) ([]string, error) {
	return w.leadFrom(m, patterns, leading{skips: skipped})
}

// MembersTakenBack is Members as npm has it, whose later patterns can take back a pattern behind !.
func (w *Wants) MembersTakenBack(m Text, patterns []string) ([]string, error) {
	return w.leadFrom(m, patterns, leading{skips: skipped, takesBack: true, hidden: true})
}

// AllMembers is Members as uv has it, whose patterns lead to directories of any name: to those with a dot in front as well.
func (w *Wants) AllMembers(m Text, patterns []string) ([]string, error) {
	return w.leadFrom(m, patterns, leading{skips: func(string) bool { return false }, hidden: true})
}

// Below are the directories at and below that of a manifest, as go has it, which passes over links.
func (w *Wants) Below(m Text) ([]string, error) {
	return w.leadFrom(m, []string{"**"}, leading{skips: skipped, unlinked: true})
}

func (w *Wants) leadFrom(m Text, patterns []string, l leading) ([]string, error) {
	if len(patterns) > mostPatterns {
		return nil, fmt.Errorf("its workspace has more than %d patterns", mostPatterns)
	}
	from := path.Dir(m.File)
	l.w, l.been = w, map[step]bool{}
	total, negated := 0, []string(nil)
	for i, written := range patterns {
		pattern := strings.TrimLeft(written, "!")
		not := (len(written)-len(pattern))%2 == 1
		why := unreadable(pattern)
		if why == "" && !l.takesBack && strings.HasPrefix(pattern, "/") { // npm begins at the project, others at the host's root
			why = notRead
		}
		if why != "" {
			w.Withhold(m.File, m.LineOf(written), written, why)
			continue
		}
		all, err := alternatives(pattern)
		if err != nil {
			return nil, err
		}
		if total += len(all); total > mostAlternatives {
			return nil, fmt.Errorf("the patterns of its workspace have more than %d alternatives", mostAlternatives)
		}
		switch {
		case !not:
			for _, one := range all {
				if err := l.followPattern(from, one); err != nil {
					return nil, err
				}
			}
		case !l.takesBack || !takenBack(all, patterns[i+1:]):
			negated = append(negated, all...)
		}
	}
	for _, pattern := range negated {
		if err := l.takeAway(from, pattern); err != nil {
			return nil, err
		}
	}
	slices.Sort(l.members)
	return slices.Compact(l.members), nil
}

// takenBack tells whether a later pattern is one that a pattern behind !, or one of its alternatives, takes away as it is written: npm then
// takes nothing away by it, nor by its other alternatives.
func takenBack(alternatives, later []string) bool {
	return slices.ContainsFunc(alternatives, func(pattern string) bool {
		parts, err := partsOf(pattern)
		return err == nil && slices.ContainsFunc(later, func(one string) bool {
			other := strings.TrimLeft(one, "!")
			others, err := partsOf(other)
			return err == nil && (len(one)-len(other))%2 == 0 && fitsPattern(parts, others)
		})
	})
}

// understood is a class of characters in a pattern: what is not this may mean something else to some client.
var understood = regexp.MustCompile(`\[[!^]?[A-Za-z0-9_.-]+\]`)

// unreadable tells why it can't be said surely where a pattern leads, "" if it can.
func unreadable(pattern string) string {
	depth := 0
	for _, c := range pattern {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return notRead
			}
		case '(', ')', '|', '\\', '$', '~':
			return notRead
		}
	}
	rest := understood.ReplaceAllString(pattern, "")
	switch {
	case depth != 0, strings.ContainsAny(rest, "[]!^"), pattern != strings.TrimSpace(pattern):
		return notRead // a space in front of ! makes that a part of a name
	case slices.Contains(strings.FieldsFunc(pattern, func(c rune) bool { return strings.ContainsRune("/{,}", c) }), ".."):
		return "it leads out of the project, where no member's name is read"
	case strings.Contains(pattern, ".."):
		return notRead // such as {1..3}
	}
	return ""
}

const notRead = "this pattern can't be read surely, so that a member of the workspace may have any name"

const (
	// mostAlternatives is how many patterns those of a workspace may be with their braces.
	mostAlternatives = 2_000
	mostBytes        = 4 << 10 // of a pattern with braces
)

// alternatives are a pattern's without braces, which may lie in each other and have slashes in them.
func alternatives(pattern string) ([]string, error) {
	if strings.Contains(pattern, "{") && len(pattern) > mostBytes { // each pair of braces copies it
		return nil, fmt.Errorf("a pattern of its workspace has braces and more than %d bytes", mostBytes)
	}
	done, open := []string(nil), []string{pattern}
	for len(open) > 0 {
		one := open[len(open)-1]
		open = open[:len(open)-1]
		end := strings.IndexByte(one, '}')
		begin := strings.LastIndexByte(one[:max(end, 0)], '{')
		if end < 0 || begin < 0 {
			done = append(done, one)
			continue
		}
		for choice := range strings.SplitSeq(one[begin+1:end], ",") {
			open = append(open, one[:begin]+choice+one[end+1:])
		}
		if len(done)+len(open) > mostAlternatives {
			return nil, fmt.Errorf("a pattern of its workspace has too many alternatives: %.80q", pattern)
		}
	}
	return done, nil
}

// belowDir is a member's name from the directory of the workspace's manifest.
func belowDir(from, member string) string {
	if from == "." {
		return member
	}
	return strings.TrimPrefix(strings.TrimPrefix(member, from), "/")
}

// partsOf are a pattern's parts, without ** that follow each other, which lead nowhere else than one.
func partsOf(pattern string) ([]string, error) {
	parts := strings.Split(strings.Trim(path.Clean(strings.TrimPrefix(pattern, "./")), "/"), "/")
	parts = slices.CompactFunc(parts, func(a, b string) bool { return a == "**" && b == "**" })
	if len(parts) > mostParts {
		return nil, fmt.Errorf("a pattern of its workspace has more than %d parts", mostParts)
	}
	return parts, nil
}

// step is a directory and how many parts of a pattern lead on from it.
type step struct {
	dir  string
	left int
}

// leading follows patterns.
type leading struct {
	w         *Wants
	unlinked  bool                   // links are passed over
	skips     func(name string) bool // where it does not look
	takesBack bool                   // a later pattern can take back one behind !
	hidden    bool                   // a star behind ! takes away what has a dot in front, too; pnpm's does not
	been      map[step]bool          // by the pattern of now: several ** lead to a directory in many ways
	looked    int
	members   []string
}

// takeAway takes away what a pattern leads to.
func (l *leading) takeAway(from, pattern string) error {
	parts, err := partsOf(pattern)
	if err != nil {
		return err
	}
	l.members = slices.DeleteFunc(l.members, func(m string) bool {
		names := strings.Split(belowDir(from, m), "/")
		return fitsPattern(parts, names) && (l.hidden || !slices.ContainsFunc(names, func(name string) bool { return hiddenFrom(parts, name) }))
	})
	return nil
}

// hiddenFrom tells of a name with a dot in front that no part of a pattern has with its dot.
func hiddenFrom(parts []string, name string) bool {
	return name != "." && strings.HasPrefix(name, ".") && !slices.ContainsFunc(parts, func(part string) bool {
		return strings.HasPrefix(part, ".") && fitsPart(part, name)
	})
}

// followPattern follows one pattern.
func (l *leading) followPattern(from, pattern string) error {
	parts, err := partsOf(pattern)
	if err != nil {
		return err
	}
	clear(l.been)
	return l.leadOn(from, parts)
}

// leadOn adds the directories below one that a pattern's parts lead to.
func (l *leading) leadOn(dir string, parts []string) error {
	at := step{dir, len(parts)}
	if l.been[at] {
		return nil
	}
	l.been[at] = true
	if l.looked++; l.looked > mostFolders {
		return fmt.Errorf("its workspace's patterns lead to more than %d directories", mostFolders)
	}
	if len(parts) == 0 {
		l.members = append(l.members, dir)
		return nil
	}
	first, rest := parts[0], parts[1:]
	if !strings.ContainsAny(first, "*?[") {
		return l.leadOn(path.Join(dir, first), rest)
	}
	if first == "**" {
		if err := l.leadOn(dir, rest); err != nil {
			return err
		}
	}
	dirs, links, err := l.list(dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(dirs, links) {
		next := path.Join(dir, name)
		switch {
		case l.skips(name) && !strings.HasPrefix(first, "."):
		case first == "**" && slices.Contains(links, name):
			err = l.leadOn(next, rest) // and no further: it may lead to where it is
		case first == "**":
			err = l.leadOn(next, parts)
		case fitsPart(first, name):
			err = l.leadOn(next, rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list gives the directories in one, and the links to such; none behind a link that is not followed, which is noted.
func (l *leading) list(dir string) (dirs, links []string, err error) {
	dirs, links, err = l.w.files.Folders(dir)
	if l.w.noteBehind(err) {
		return nil, nil, nil
	}
	if l.unlinked {
		links = nil
	}
	return dirs, links, err
}

// fitsPattern tells whether a pattern leads to a directory. The first fit of the parts after a ** need not be given up
// for a later one: only the last ** may take more.
func fitsPattern(parts, names []string) bool {
	part, name, star, from := 0, 0, -1, 0
	for name < len(names) {
		switch {
		case part < len(parts) && parts[part] == "**":
			star, from = part, name
			part++
		case part < len(parts) && fitsPart(parts[part], names[name]):
			part, name = part+1, name+1
		case star >= 0:
			from++
			part, name = star+1, from
		default:
			return false
		}
	}
	for part < len(parts) && parts[part] == "**" {
		part++
	}
	return part == len(parts)
}

// fitsPart is path.Match that takes [!a] for [^a].
func fitsPart(pattern, name string) bool {
	is, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && is
}
