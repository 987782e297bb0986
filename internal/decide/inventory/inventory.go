// Package inventory finds out which packages lie on a disk, whoever put them there. It
// runs at the far end of the channel, looks at files and never runs one, and knows no
// policy.
//
// Each Layout is one child folder, and package all is the list. A search begins in a place. It does
// not go into the packages of a directory of installed ones (a holder). In a source directory
// somebody writes a package. A place is closed when nobody but root could have changed anything in
// it. A memory spares an inventory what it has read before.
package inventory

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Layout is how one ecosystem's packages lie on a disk. Implementations have no state.
type Layout interface {
	// Usual are patterns of directories, outside of homes and the like, where systems keep
	// such packages.
	Usual() []string

	// Tells reports whether an entry that is no directory may tell of a package; others are
	// not shown to the layout.
	Tells(entry fs.DirEntry) bool

	// Holds reports by its last element whether a directory is a holder, and Skips whether
	// there is nothing of interest below one of that name.
	Holds(base string) bool
	Skips(base string) bool

	// Sources takes the packages that are written in a directory with these files.
	Sources(w *Walk, dir string, files []string)

	// File takes the package that a file of a holder tells of.
	File(w *Walk, dir, name string)

	// Directory takes the packages of a directory below another. True: it is this layout's,
	// and nobody searches it further.
	Directory(w *Walk, d Directory) bool
}

// Leaver is the optional ability of a layout whose clients also keep packages where no
// program looks for them: what they built of a project, and what a build leaves in one.
type Leaver interface {
	// Leaves reports whether a package of an ecosystem is at such a path.
	Leaves(ecosystem pkgref.Ecosystem, path string) bool
}

// Directory is one below another.
type Directory struct {
	Path   string
	Base   string // its last element
	Holder bool   // what it lies in is a holder
}

// Request says where to look.
type Request struct {
	Root    string // in front of all paths, for tests; ""
	Places  []string
	Skip    []string // directories not to look into
	Depth   int      // not deeper than this below a place; 0: as far as there is something
	Layouts []Layout
	Memory  *Memory // of the same layouts
}

// Result is what was found.
type Result struct {
	Packages []channel.InstalledPackage
	Closed   []string                 // places
	Bounds   []channel.InventoryBound // for which there is more than this; none: this is all
}

// Take looks into all places. A ctx that ends is channel.BoundTime.
func Take(ctx context.Context, r Request) Result { return takeInventory(ctx, r, usualBounds()) }

func takeInventory(ctx context.Context, r Request, most bounds) Result {
	w := &Walk{ctx: ctx, most: most, layouts: r.Layouts, root: r.Root, memory: r.Memory, seen: map[pathSum]bool{}, listed: map[string]bool{}, skip: map[string]bool{}, depth: r.Depth}
	for _, dir := range r.Skip {
		w.skip[filepath.Clean(dir)] = true
	}
	for _, place := range r.Places {
		w.lookInto(place)
	}
	return Result{Packages: w.found, Closed: w.closed, Bounds: w.met}
}

// Below reports whether path is root or below it.
func Below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// SharedMemory is a directory that everybody may write to.
const SharedMemory = "/dev/shm"

// IsSystem tells whether a path belongs to the kernel or to the agent.
func IsSystem(path string) bool {
	if Below(path, SharedMemory) {
		return false
	}
	for _, system := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/.cofferdam"} {
		if Below(path, system) {
			return true
		}
	}
	return false
}
