package manifest

import (
	"path"
	"slices"
	"strings"
)

// mostFolders is how many directories are looked at for the patterns of a workspace.
const mostFolders = 20_000

// skipped are directories in which no client looks for members of a workspace.
func skipped(name string) bool { return name == "node_modules" || strings.HasPrefix(name, ".") }

// Members are the directories that a workspace's patterns lead to, from the directory of its manifest, sorted. As the clients
// have it, * is a part of a name, ** any directories, and a pattern behind ! takes away what those before it led to. whole is false
// where there are more directories than are looked at.
func (w *Wants) Members(from string, patterns []string) (members []string, whole bool, err error) {
	looked := 0
	for _, pattern := range patterns {
		pattern, not := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		parts := strings.Split(strings.Trim(path.Clean(strings.TrimPrefix(pattern, "./")), "/"), "/")
		if not {
			members = slices.DeleteFunc(members, func(m string) bool {
				return fits(parts, strings.Split(strings.TrimPrefix(strings.TrimPrefix(m, from), "/"), "/"))
			})
			continue
		}
		if members, err = w.lead(members, from, parts, &looked); err != nil {
			return nil, false, err
		}
	}
	slices.Sort(members)
	return slices.Compact(members), looked <= mostFolders, nil
}

// lead adds the directories below one that a pattern's parts lead to.
func (w *Wants) lead(members []string, dir string, parts []string, looked *int) (_ []string, err error) {
	if *looked++; *looked > mostFolders {
		return members, nil
	}
	if len(parts) == 0 {
		return append(members, dir), nil
	}
	first, rest := parts[0], parts[1:]
	if first == "." {
		return w.lead(members, dir, rest, looked)
	}
	if !strings.ContainsAny(first, "*?[{") {
		if first == ".." {
			return members, nil // outside of the project
		}
		return w.lead(members, path.Join(dir, first), rest, looked)
	}
	if first == "**" {
		if members, err = w.lead(members, dir, rest, looked); err != nil {
			return nil, err
		}
	}
	names, err := w.files.Folders(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch below := path.Join(dir, name); {
		case skipped(name):
		case first == "**":
			members, err = w.lead(members, below, parts, looked)
		case fitsPart(first, name):
			members, err = w.lead(members, below, rest, looked)
		}
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// fits tells whether a pattern leads to a directory.
func fits(parts, names []string) bool {
	switch {
	case len(parts) == 0:
		return len(names) == 0
	case parts[0] == "**":
		return fits(parts[1:], names) || len(names) > 0 && fits(parts, names[1:])
	}
	return len(names) > 0 && fitsPart(parts[0], names[0]) && fits(parts[1:], names[1:])
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
