// Package releasediff tells how the files of one release differ from those of another, and shows
// one of them. Both are archives that publishers packed, read as strictly as before they were
// served. Pure.
//
// A path is that of a file within its release: without the folder that has the release's
// version in its name, so that two releases of a package have the same for the same file.
package releasediff

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/linediff"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Bounds of what is told.
const (
	MaxChanges = 2_000   // files
	MaxText    = 1 << 20 // bytes of each text that is compared or shown
	maxPath    = 400     // bytes; a release with a longer one is not compared
	maxFiles   = 50_000  // of a release
)

// Release is one file of a release.
type Release struct {
	Ecosystem pkgref.Ecosystem
	Name      string // as its index has it
	Content   ecosystem.Content
}

// Change is a file that is not the same in both.
type Change struct {
	Path   string
	Was    int64  // bytes; -1: it is new
	Is     int64  // bytes; -1: it is gone
	Runs   string // when it runs by itself; "": nothing is known to run it
	Native bool   // it is of machine code
}

// Listing is how two releases differ.
type Listing struct {
	Changes []Change // what runs first, then by path; at most MaxChanges
	Total   int
	Same    int // files
}

// member is a file of a release as it is compared.
type member struct {
	sum    [sha256.Size]byte
	size   int64
	native bool
	link   bool
}

// List compares two releases; without a before all files are new. ErrInvalid: one of them can't be read in one way.
func List(before *Release, after Release, known Known) (Listing, error) {
	now, err := members(after)
	if err != nil {
		return Listing{}, err
	}
	was := map[string]member{}
	if before != nil {
		if was, err = members(*before); err != nil {
			return Listing{}, err
		}
	}
	var l Listing
	named := known.namedFiles()
	add := func(name string, wasSize, isSize int64, native bool) {
		l.Changes = append(l.Changes, Change{Path: name, Was: wasSize, Is: isSize, Runs: known.whenRun(name, named), Native: native})
	}
	for name, m := range now {
		old, there := was[name]
		switch {
		case !there:
			add(name, -1, m.size, m.native)
		case old.sum != m.sum || old.link != m.link:
			add(name, old.size, m.size, m.native)
		default:
			l.Same++
		}
	}
	for name, m := range was {
		if _, there := now[name]; !there {
			add(name, m.size, -1, m.native)
		}
	}
	slices.SortFunc(l.Changes, func(a, b Change) int { return cmp.Or(a.rankOf()-b.rankOf(), cmp.Compare(a.Path, b.Path)) })
	l.Total = len(l.Changes)
	l.Changes = l.Changes[:min(l.Total, MaxChanges)]
	return l, nil
}

func (c Change) rankOf() int {
	switch {
	case c.Runs != "":
		return 0
	case c.Native:
		return 1
	}
	return 2
}

// Known is what is known of what runs by itself in the later release.
type Known struct {
	Starter ecosystem.Starter // of its ecosystem; nil: none
	Scripts []string          // the commands that run when it is installed
}

// namedFiles are the words of the scripts that may be a file's path, as the shell and node find it: looked through
// once, since a publisher may have many scripts, and many files.
func (k Known) namedFiles() map[string]bool {
	words := map[string]bool{}
	for _, script := range k.Scripts {
		for word := range strings.FieldsFuncSeq(script, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=,", r) }) {
			words[strings.TrimPrefix(path.Clean("/"+word), "/")] = true
		}
	}
	delete(words, "")
	return words
}

// whenRun says when a file runs by itself, as far as its name tells.
func (k Known) whenRun(name string, named map[string]bool) string {
	if k.Starter != nil {
		if when := k.Starter.Starts(name); when != "" {
			return when
		}
	}
	folder, isIndex := strings.CutSuffix(name, "/index.js")
	if named[name] || named[strings.TrimSuffix(name, path.Ext(name))] || isIndex && named[folder] {
		return "when it is installed"
	}
	return ""
}

// members are a release's files by path.
func members(r Release) (map[string]member, error) {
	found := map[string]member{}
	err := visitRelease(r, func(name string, m archive.Member, content io.Reader) error {
		if len(name) > maxPath || len(found) == maxFiles {
			return fault.Invalid("%s has more or longer names than can be compared", ecosystem.Line(r.Name))
		}
		head, content, err := ecosystem.Head(content)
		if err != nil {
			return err
		}
		h := sha256.New()
		if _, err = io.Copy(h, content); err != nil {
			return err
		}
		own := member{sum: [sha256.Size]byte(h.Sum(nil)), size: m.Size, native: ecosystem.MachineCode(name, head), link: m.Link != ""}
		if other, twice := found[name]; twice && other != own {
			return fault.Invalid("%s has %s twice, and not the same", ecosystem.Line(r.Name), ecosystem.Line(name))
		}
		found[name] = own
		return nil
	})
	return found, err
}

// visitRelease visits the files of a release. A link is one with a text of ours: a file that became a link is no file that is
// gone.
func visitRelease(r Release, visit func(name string, m archive.Member, content io.Reader) error) error {
	each := func(m archive.Member, content io.Reader) error {
		if m.Mode.IsDir() {
			return nil
		}
		if m.Link != "" {
			text := "This is a link to " + m.Link + "\n"
			m.Size, content = int64(len(text)), strings.NewReader(text)
		}
		return visit(pathWithin(r, m.Path), m, content)
	}
	name := strings.ToLower(r.Name)
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return archive.TarGz(r.Content, r.Content.Size(), archive.Limits{Careless: true}, each)
	case strings.HasSuffix(name, ".whl"), strings.HasSuffix(name, ".zip"):
		z, err := archive.Zip(r.Content, r.Content.Size(), archive.Limits{})
		if err != nil {
			return err
		}
		return z.Visit(each)
	}
	return fault.Invalid("%s is no archive that is looked into here", ecosystem.Line(r.Name))
}

// pathWithin is a member's path within its release: a wheel has folders with its version in their names, a Go module
// lies below its path and version, and all else below one folder.
func pathWithin(r Release, name string) string {
	top, rest, below := strings.Cut(name, "/")
	switch {
	case strings.HasSuffix(strings.ToLower(r.Name), ".whl"):
		for _, end := range []string{".dist-info", ".data"} {
			if below && strings.HasSuffix(top, end) {
				return end[1:] + "/" + rest
			}
		}
		return name
	case r.Ecosystem.Traits().NamesArePaths: // the folders above are those of its name, with its version behind
		_, versioned, _ := strings.Cut(name, "@")
		_, rest, below = strings.Cut(versioned, "/")
	}
	if below {
		return rest
	}
	return name
}

// Text is one file of a release, or how it differs.
type Text struct {
	Path   string
	Was    int64  // bytes; -1: the earlier release has no such file
	Is     int64  // bytes; -1: the later one has none
	Binary bool   // it is no text, and not shown
	Cut    bool   // a file has more bytes than are looked at
	Diff   string // in unified form, of a file that is new against nothing; "": both are the same
}

// File shows a file of a release, as it differs from the earlier one's. fault.ErrNotFound: neither has it.
func File(before *Release, after Release, name string) (Text, error) {
	t := Text{Path: name, Was: -1, Is: -1}
	is, err := textOf(after, name, &t.Is)
	if err != nil {
		return t, err
	}
	var was []byte
	if before != nil {
		if was, err = textOf(*before, name, &t.Was); err != nil {
			return t, err
		}
	}
	t.Cut = t.Is > MaxText || t.Was > MaxText
	switch {
	case t.Is < 0 && t.Was < 0:
		return t, fault.New(fault.ErrNotFound, "%s has no file %q", ecosystem.Line(after.Name), ecosystem.Line(name[:min(len(name), maxPath)]))
	case binary(is) || binary(was):
		t.Binary = true
	default:
		from, to := "/dev/null", "/dev/null"
		if t.Was >= 0 {
			from = before.Name + "/" + name
		}
		if t.Is >= 0 {
			to = after.Name + "/" + name
		}
		t.Diff = linediff.Unified(from, to, was, is)
	}
	return t, nil
}

// textOf reads the beginning of one file; size stays if there is none. One that is there twice
// is refused unless both are the same, since clients would differ in which they take.
func textOf(r Release, name string, size *int64) (text []byte, err error) {
	err = visitRelease(r, func(at string, m archive.Member, content io.Reader) error {
		if at != name {
			return nil
		}
		read, err := io.ReadAll(io.LimitReader(content, MaxText))
		if err != nil {
			return err
		}
		if *size >= 0 && (m.Size != *size || !bytes.Equal(read, text)) {
			return fault.Invalid("%s has %s twice, and not the same", ecosystem.Line(r.Name), ecosystem.Line(name))
		}
		text, *size = read, m.Size
		return nil
	})
	return text, err
}

// binary tells what is no text.
func binary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8<<10)], 0) >= 0 }
