package inventory

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// bounds of one inventory. Anything past them is left out, and the result says which were met.
type bounds struct {
	directories, packages, bytes, path int
}

// usualBounds are the bounds of every inventory but of those of tests.
func usualBounds() bounds {
	return bounds{
		directories: channel.MaxInventoryDirectories, packages: channel.MaxInventoryPackages,
		bytes: channel.MaxInventoryBytes, path: channel.MaxInventoryPath,
	}
}

const maxSources = 5_000 // one too many is no package that is missed

// Walk walks directories and collects what is installed there. One goroutine has it.
type Walk struct {
	ctx     context.Context //nolint:containedctx // lives for one call, and every step of the walk needs it
	layouts []Layout
	root    string
	memory  *Memory
	skip    map[string]bool // directories not to look into
	depth   int             // not deeper than this; 0: as far as there is something
	most    bounds
	seen    map[pathSum]bool // directories visited
	listed  map[string]bool  // what Once was asked about
	size    int              // bytes of JSON so far
	sources int
	found   []channel.InstalledPackage
	closed  []string                 // places in which nobody but root could change anything
	met     []channel.InventoryBound // each once
}

// pathSum stands for a path: many paths that are as long as they may be are more than a sandbox's memory.
type pathSum [sha256.Size]byte

func placeOfPath(path string) pathSum { return sha256.Sum256([]byte(path)) }

// lookInto looks into a directory that nothing is known about.
func (w *Walk) lookInto(dir string) {
	if _, there := lookAt(w.root + dir); !there {
		return // it may be made
	}
	w.memory.open = false
	before := len(w.seen)
	if !w.offerToLayouts(Directory{Path: dir, Base: filepath.Base(dir)}) {
		w.walkDir(dir, 0)
	}
	if len(w.seen) > before && !w.memory.open && len(w.met) == 0 {
		w.closed = append(w.closed, dir)
	}
}

// walkDir visits a directory and those below it; a holder is not searched deeper, for what is
// in it are the packages' own files.
func (w *Walk) walkDir(dir string, depth int) {
	children, files := w.Visit(dir)
	base := filepath.Base(dir)
	holder := slices.ContainsFunc(w.layouts, func(l Layout) bool { return l.Holds(base) })
	for _, l := range w.layouts {
		if !holder {
			l.Sources(w, dir, files)
			continue
		}
		for _, file := range files {
			l.File(w, dir, file)
		}
	}
	for _, child := range children {
		d := Directory{Path: filepath.Join(dir, child), Base: child, Holder: holder}
		switch {
		case w.offerToLayouts(d), holder, child == ".git", w.skipsName(child):
		case w.depth > 0 && depth >= w.depth:
		default:
			w.walkDir(d.Path, depth+1)
		}
	}
}

// offerToLayouts has the layout whose directory it is take its packages.
func (w *Walk) offerToLayouts(d Directory) bool {
	return slices.ContainsFunc(w.layouts, func(l Layout) bool { return l.Directory(w, d) })
}

func (w *Walk) skipsName(base string) bool {
	return slices.ContainsFunc(w.layouts, func(l Layout) bool { return l.Skips(base) })
}

// meetBound notes that something was left out, and why.
func (w *Walk) meetBound(bound channel.InventoryBound) {
	if !slices.Contains(w.met, bound) {
		w.met = append(w.met, bound)
	}
}

// Once is true the first time that it is asked about a key.
func (w *Walk) Once(key string) bool {
	if w.listed[key] {
		return false
	}
	w.listed[key] = true
	return true
}

// Visit returns the directories and the other entries in dir, in order, the
// first time that it is called for it and within the bounds.
func (w *Walk) Visit(dir string) (dirs, others []string) {
	at := placeOfPath(dir)
	if w.seen[at] || w.skip[dir] || IsSystem(dir) {
		w.memory.open = true // what is below is not known here
		return nil, nil
	}
	if bound := w.boundOf(dir); bound != "" {
		w.meetBound(bound)
		return nil, nil
	}
	w.seen[at] = true
	return w.Entries(dir)
}

// boundOf is the one that keeps a directory from being looked into; "" if none does.
func (w *Walk) boundOf(dir string) channel.InventoryBound {
	switch {
	case w.ctx.Err() != nil:
		return channel.BoundTime
	case len(w.seen) >= w.most.directories:
		return channel.BoundDirectories
	case len(dir) > w.most.path:
		return channel.BoundPath
	}
	return w.fullBound()
}

// Entries are the directories in dir and the other entries that tell of packages,
// in order; none if it is no directory. Links are not followed, so that the walk
// ends.
func (w *Walk) Entries(dir string) (dirs, others []string) {
	dirs, others, err := w.memory.readDir(w.root + dir)
	if err != nil {
		if !isNothing(err) {
			w.meetBound(channel.BoundUnread)
		}
		return nil, nil
	}
	return dirs, others
}

// Bounds of what is looked at to see that a directory is hollow.
const (
	hollowDepth = 8
	hollowWidth = 64
)

// Hollow reports whether there is nothing in a directory but directories in which there is
// nothing. One that can't be read, or is too deep or too wide to be looked at whole, is not.
func (w *Walk) Hollow(dir string) bool { return hollow(w.root+dir, hollowDepth) }

func hollow(dir string, depth int) bool {
	d, err := openLong(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer d.Close()
	entries, err := d.ReadDir(hollowWidth)
	if errors.Is(err, io.EOF) {
		return true
	}
	return err == nil && depth > 0 && len(entries) < hollowWidth && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() || !hollow(filepath.Join(dir, e.Name()), depth-1)
	})
}

// fullBound is the bound for which no package more is taken; "" if there is room.
func (w *Walk) fullBound() channel.InventoryBound {
	switch {
	case len(w.found)-w.sources >= w.most.packages:
		return channel.BoundPackages
	case w.size >= w.most.bytes:
		return channel.BoundBytes
	}
	return ""
}

// Add takes a package into the result as far as it fits.
func (w *Walk) Add(p channel.InstalledPackage) {
	if bound := w.fullBound(); bound != "" {
		w.meetBound(bound)
		return
	}
	if isLong(p) || len(p.From) > channel.MaxInventoryPlace {
		w.meetBound(channel.BoundName)
		p.Name, p.Version = cutText(p.Name, channel.MaxInventoryName), cutText(p.Version, channel.MaxInventoryName)
		p.Path, p.From = cutText(p.Path, channel.MaxInventoryPlace), cutText(p.From, channel.MaxInventoryPlace)
	}
	w.size += Size(p)
	w.found = append(w.found, p)
}

// AddSource takes a directory in which somebody writes a package. One too many
// is no package that is missed.
func (w *Walk) AddSource(p channel.InstalledPackage) {
	if isLong(p) || w.sources >= maxSources || w.fullBound() != "" {
		return
	}
	p.Source = true
	w.sources++
	w.Add(p)
}

func isLong(p channel.InstalledPackage) bool {
	return len(p.Name) > channel.MaxInventoryName || len(p.Version) > channel.MaxInventoryName || len(p.Path) > channel.MaxInventoryPlace
}

func cutText(text string, most int) string { return text[:min(len(text), most)] }

// Size is how many bytes a package has as JSON in a list.
func Size(p channel.InstalledPackage) int {
	data, err := json.Marshal(p)
	if err != nil {
		return channel.MaxInventoryBytes // text always marshals
	}
	return len(data) + 1
}
