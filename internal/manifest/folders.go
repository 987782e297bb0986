package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of a workspace's patterns.
const (
	mostFolders  = 20_000 // directories that are looked at
	mostPatterns = 1_000
	mostParts    = 100 // of a pattern
)

// skipped are directories in which no client looks for members of a workspace.
func skipped(name string) bool { return name == "node_modules" || strings.HasPrefix(name, ".") }

// Members are the directories that a workspace's patterns lead to, from the directory of its manifest, sorted. As the clients
// have it, * is a part of a name, ** any directories, and a pattern behind ! takes away what those before it led to. It is an
// error to have more than is looked at: a member that nobody reads is one whose name is taken for a registry's.
func (w *Wants) Members(from string, patterns []string) ([]string, error) {
	if len(patterns) > mostPatterns {
		return nil, fmt.Errorf("its workspace has more than %d patterns", mostPatterns)
	}
	l := leading{files: w.files, been: map[step]bool{}}
	for _, pattern := range patterns {
		pattern, not := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		parts, err := partsOf(pattern)
		if err != nil {
			return nil, err
		}
		if not {
			l.members = slices.DeleteFunc(l.members, func(m string) bool {
				return fits(parts, strings.Split(below(from, m), "/"))
			})
			continue
		}
		clear(l.been)
		if err := l.lead(from, parts); err != nil {
			return nil, err
		}
	}
	slices.Sort(l.members)
	return slices.Compact(l.members), nil
}

// below is a member's name from the directory of the workspace's manifest.
func below(from, member string) string {
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
	for _, part := range parts {
		if strings.Count(part, "{") > 2 || strings.Count(part, ",") > 40 {
			return nil, fmt.Errorf("a pattern of its workspace has too many alternatives: %.80q", part)
		}
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
	files   Files
	been    map[step]bool // by the pattern of now: several ** lead to a directory in many ways
	looked  int
	members []string
}

// lead adds the directories below one that a pattern's parts lead to.
func (l *leading) lead(dir string, parts []string) error {
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
	if !strings.ContainsAny(first, "*?[{") {
		if first == ".." {
			return nil // outside of the project
		}
		return l.lead(path.Join(dir, first), rest)
	}
	if first == "**" {
		if err := l.lead(dir, rest); err != nil {
			return err
		}
	}
	names, err := l.files.Folders(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch next := path.Join(dir, name); {
		case skipped(name):
		case first == "**":
			err = l.lead(next, parts)
		case fitsPart(first, name):
			err = l.lead(next, rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fits tells whether a pattern leads to a directory. What fits the parts after a ** first need not be given up for a later
// one, but for what the last ** took.
func fits(parts, names []string) bool {
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

// fitsPart is path.Match with alternatives in braces.
func fitsPart(pattern, name string) bool {
	before, rest, braces := strings.Cut(pattern, "{")
	list, after, closed := strings.Cut(rest, "}")
	if !braces || !closed {
		is, err := path.Match(pattern, name)
		return err == nil && is
	}
	for one := range strings.SplitSeq(list, ",") {
		if fitsPart(before+one+after, name) {
			return true
		}
	}
	return false
}
