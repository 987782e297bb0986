// Package outside finds the parts of a project that lie outside of what a sandbox is shown of it: git's directory of a
// linked worktree or of a submodule, the objects that a repository borrows, directories that manifests name.
//
// Nothing is ever mounted for what a file of the project says: a stranger may have written it. A part is named, in one
// line, with the flag that shows it, which a person types. Where nothing but the project says that a place belongs to
// it, the line says that too.
package outside

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// Shown is a path of the host that a sandbox is shown.
type Shown struct {
	Source      string // absolute
	Destination string // in the sandbox, absolute
	ReadWrite   bool
}

// Part is something of a project that lies outside of all that is shown.
type Part struct {
	File string // of the project, from its directory, that names it
	Path string // on the host, absolute; may be anything
	Of   string // where in the sandbox the project is
	Why  string // how the line goes on behind "FILE leads to PATH, outside of OF: "
	// Flags are what is to be typed to have it, with a reason of their own or none; nil: there is nothing to be shown.
	Flags []Flag
	// Instead says that the flags take the place of the project's own mount.
	Instead bool
	Workdir string // with Instead, where the project is then
}

// Flag is a mount to be typed.
type Flag struct {
	Source, Destination string
	ReadWrite           bool
}

// mostParts bounds the parts of one project.
const mostParts = 20

// Find gives the parts of what one of the paths of the host shows, if that is a directory, without those that another
// one shows where the project looks for them. files are those of its directory; copied says that the sandbox has a copy
// of it, which nothing of the person's is written for.
func Find(of Shown, all []Shown, files manifest.Files, copied bool) []Part {
	dir, err := hostpath.Resolve(of.Source, nil)
	if err != nil {
		return nil // whoever mounts it says why not
	}
	defer dir.Close()
	if dir.ID.Type != hostpath.Dir {
		return nil
	}
	of.Source = dir.Name
	f := finder{of: of, all: all, copied: copied}
	f.findGit(dir)
	f.manifests(files)
	if len(f.parts) > mostParts {
		f.parts = f.parts[:mostParts]
	}
	return f.parts
}

type finder struct {
	of     Shown
	all    []Shown
	copied bool
	parts  []Part
}

// look begins the reason of a flag for what can't name the project back: an agent may have written the file that leads there.
const look = "look whether it is this project's; "

// addPart notes a part, once.
func (f *finder) addPart(p Part) {
	p.Of = f.of.Destination
	for _, flag := range p.Flags {
		if isHome(flag.Source) {
			p.Why, p.Flags = "that takes "+flag.Source+", which is a home or has one in it, and no flag is offered for all of that", nil
			break
		}
	}
	known := func(other Part) bool { return other.Path == p.Path }
	if len(f.parts) <= mostParts && !slices.ContainsFunc(f.parts, known) {
		f.parts = append(f.parts, p)
	}
}

// placeAt is a place as a file names it, from a directory of the host that is shown at another one: where it is on the host,
// and where whoever reads that file in the sandbox looks for it. Neither leaves the root.
func placeAt(name, host, inside string) (path, looked string) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), filepath.Clean(name)
	}
	return filepath.Join(host, name), filepath.Join(inside, name)
}

// isShown tells whether a place of the host is where it is looked for in the sandbox.
func (f *finder) isShown(path, looked string) bool {
	_, is := f.shownBy(path, looked)
	return is
}

// isWritable tells whether a place is shown, and may be written there.
func (f *finder) isWritable(w Flag) bool {
	s, is := f.shownBy(w.Source, w.Destination)
	return is && s.ReadWrite
}

// shownBy is what shows something in the sandbox at a place, the innermost; is tells whether that is what lies at a path.
func (f *finder) shownBy(path, looked string) (by Shown, is bool) {
	for _, s := range append([]Shown{f.of}, f.all...) { // its own directory first, whose name here has no links
		rest, under := restBelow(looked, s.Destination)
		if under && len(s.Destination) > len(by.Destination) {
			by, is = s, filepath.Join(s.Source, rest) == path
		}
	}
	return by, is
}

// restBelow is the rest of a path under a directory, "" for itself.
func restBelow(path, dir string) (rest string, is bool) {
	if path == dir {
		return "", true
	}
	rest, is = strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	return rest, is
}

// mostNaming bounds what is read of a file that says where something is.
const mostNaming = 64 << 10

// textOf is a file's text that says where something is; "" where there is none, or none that can be read: what is no file
// of its own, a link or a pipe, is not opened.
func textOf(dir *hostpath.Path, name string) string {
	file, err := dir.Below(name, hostpath.Identity{Type: hostpath.File})
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := file.ReadFile(mostNaming)
	if err != nil || strings.ContainsRune(string(text), 0) {
		return ""
	}
	return string(text)
}

// openDir opens a directory by a name that a file gave; nil: it is none that may be looked at.
func openDir(path string) *hostpath.Path {
	dir, err := hostpath.Resolve(path, nil)
	if err != nil {
		return nil
	}
	if dir.ID.Type != hostpath.Dir {
		dir.Close()
		return nil
	}
	return dir
}

// hasEntry tells whether a directory has something of a name and a type.
func hasEntry(dir *hostpath.Path, name string, of hostpath.Type) bool {
	p, err := dir.Below(name, hostpath.Identity{Type: of})
	if err != nil {
		return false
	}
	p.Close()
	return true
}

// isHome tells of a directory in which somebody keeps everything, keys too, or which has this user's home in it, by
// whatever name it is reached.
func isHome(path string) bool {
	dir := openDir(path)
	if dir == nil {
		return false
	}
	defer dir.Close()
	return holdsHome(dir) || hasAny(dir, ".ssh")
}

// holdsHome tells whether a directory is this user's home, or above it.
func holdsHome(dir *hostpath.Path) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	at := openDir(home)
	if at == nil {
		return false
	}
	name := at.Name // without links
	at.Close()
	for ; ; name = filepath.Dir(name) {
		if isAtPath(name, dir) {
			return true
		}
		if name == filepath.Dir(name) {
			return false
		}
	}
}

// hasAny tells whether a directory has a name, of whatever type, or can't be looked into.
func hasAny(dir *hostpath.Path, name string) bool {
	root, err := dir.Root()
	if err != nil {
		return true
	}
	defer func() { _ = root.Close() }()
	_, err = root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
