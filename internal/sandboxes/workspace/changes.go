package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// How a path has changed.
type How string

// A path is one of these. Directories are only Added or Removed.
const (
	Added    How = "added"
	Modified How = "modified"
	Removed  How = "removed"
)

// Change is one path of the copy that is not as it was.
type Change struct {
	Path string // with slashes, below the copy
	How  How
	Kind Kind // now; of what was removed, before
	// Executable tells of a file whether it may be executed, which may be all that changed.
	Executable bool
	Target     string // of a link
	// Seen is how a file of the copy was when this was found: another is not brought over.
	Seen Stamp
	// Conflict says what else was done to the original's file meanwhile; "": nothing.
	Conflict string
	// Refused says why it can't be brought over; "": it can.
	Refused string
}

// Changes are those of a copy in which nobody works any more, by their paths, parents before
// what is in them.
func (w *Workspace) Changes(ctx context.Context) ([]Change, error) {
	copied, err := os.OpenRoot(w.Dir())
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Close() }()
	original, err := w.openOriginal()
	if err != nil {
		return nil, err
	}
	defer func() { _ = original.Close() }()
	c := &comparison{w: w, copied: copied, original: original, seen: map[string]bool{}}
	if err := c.findNew(ctx); err != nil {
		return nil, err
	}
	c.findGone(ctx)
	slices.SortFunc(c.found, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return c.found, nil
}

// comparison is one look for changes.
type comparison struct {
	w                *Workspace
	copied, original *os.Root
	seen             map[string]bool
	found            []Change
}

// findNew finds what is new or other.
func (c *comparison) findNew(ctx context.Context) error {
	return lookThrough(ctx, c.copied, bounds(), func(name string, info fs.FileInfo) error {
		c.seen[name] = true
		return c.compareOne(ctx, name, info)
	})
}

func (c *comparison) compareOne(ctx context.Context, name string, info fs.FileInfo) error {
	before, was := c.w.list.Entries[name]
	kind := kindOfMode(info.Mode())
	change := Change{Path: name, How: Added, Kind: kind, Executable: info.Mode().Perm()&0o111 != 0}
	if kind == File {
		change.Seen = stampOf(info)
	}
	if kind == Link {
		target, err := c.copied.Readlink(name)
		if err != nil {
			return err
		}
		change.Target = target
	}
	if was && before.Kind == kind {
		switch {
		case kind == Dir, kind == Link && change.Target == before.Target, kind == File && before.Copy.sameAs(stampOf(info)):
			return nil
		case kind == File:
			other, err := c.isOther(name, before, info)
			if err != nil || !other {
				return err
			}
		}
		change.How = Modified
	} else if was {
		change.How = Modified // a file became a directory, or the like
	}
	change.Refused = refusal(change, was && before.Kind != kind)
	c.found = append(c.found, c.judged(ctx, change, before, was))
	return nil
}

// isOther tells whether a file that was written is really another one than the original: many
// tools write what was there.
func (c *comparison) isOther(name string, before Entry, info fs.FileInfo) (bool, error) {
	if before.Original.Mode&0o111 != 0 != (info.Mode().Perm()&0o111 != 0) || before.Original.Size != info.Size() {
		return true, nil
	}
	same, err := sameContent(c.original, c.copied, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
		return true, nil // the original has it no more: that is a conflict
	}
	return !same, err
}

// findGone finds what was removed: of a directory that was, the directory alone.
func (c *comparison) findGone(ctx context.Context) {
	for name, before := range c.w.list.Entries {
		if c.seen[name] {
			continue
		}
		if parent := path.Dir(name); parent != "." && !c.seen[parent] {
			continue
		}
		change := Change{Path: name, How: Removed, Kind: before.Kind, Target: before.Target}
		c.found = append(c.found, c.judged(ctx, change, before, true))
	}
}

// judged adds what happened to the original meanwhile.
func (c *comparison) judged(ctx context.Context, change Change, before Entry, was bool) Change {
	info, err := c.original.Lstat(change.Path)
	switch there := err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		change.Conflict = "the original can't be looked at: " + text.Line(err.Error())
	case there && !was:
		if change.Kind != Dir || !info.IsDir() {
			change.Conflict = "the original has one of its own since"
		}
	case !there && was && change.How != Removed:
		change.Conflict = "the original's was removed since"
	case there && was && before.Kind == File && !before.Original.sameAs(stampOf(info)):
		change.Conflict = "the original's was changed since"
	case there && was && before.Kind != kindOfMode(info.Mode()):
		change.Conflict = "the original's was replaced since"
	case there && was && before.Kind == Link && !c.leadsAsBefore(change.Path, before):
		change.Conflict = "the original's leads elsewhere since"
	case there && was && before.Kind == Dir && change.How == Removed && before.Original.Mode != stampOf(info).Mode:
		change.Conflict = "the original's mode was changed since"
	case there && change.How == Removed && before.Kind == Dir:
		change.Conflict = c.workedIn(ctx, change.Path)
	}
	return change
}

// leadsAsBefore tells whether a link of the original has the target that it had when it was
// copied; one that can't be read has not.
func (c *comparison) leadsAsBefore(name string, before Entry) bool {
	target, err := c.original.Readlink(name)
	return err == nil && target == before.Target
}

// workedIn says what was done in a directory of the original since it was copied; "": nothing.
func (c *comparison) workedIn(ctx context.Context, dir string) string {
	errWorked := errors.New("something in the original's was changed since")
	err := treewalk.WalkRootAt(ctx, c.original, dir, bounds(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		before, was := c.w.list.Entries[name]
		if !was || before.Kind != kindOfMode(info.Mode()) || before.Kind == File && !before.Original.sameAs(stampOf(info)) ||
			before.Kind == Link && !c.leadsAsBefore(name, before) || before.Kind == Dir && before.Original.Mode != stampOf(info).Mode {
			return errWorked
		}
		return nil
	})
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errWorked):
		return err.Error()
	}
	return "the original can't be looked at: " + text.Line(err.Error())
}

// refusal is why a change can't be brought over.
func refusal(c Change, otherKind bool) string {
	switch {
	case c.Kind == "":
		return "it is neither a file, a directory nor a link"
	case !utf8.ValidString(c.Path) || strings.ContainsFunc(c.Path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "its name is no plain text: it has control characters, or bytes that are no UTF-8"
	case otherKind:
		return "it was something else before; remove the original's first"
	case c.Kind == Link && !leadsInside(c.Path, c.Target):
		return "it is a link that leads out of the directory"
	}
	return ""
}

// leadsInside tells whether a link's target is below the directory, whatever other links
// there are. A ".." is understood only at its beginning, where it climbs from directories
// that are no links: after a name, nobody knows what it climbs from.
func leadsInside(name, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
		return false
	}
	depth, climbing := strings.Count(name, "/"), true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part != "..":
			climbing = climbing && (part == "" || part == ".")
		case !climbing || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}
