package guest

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// stocktaker walks directories and collects what is installed there.
type stocktaker struct {
	ctx       context.Context //nolint:containedctx // lives for one call, and every step of the walk needs it
	root      string
	memory    *stockMemory
	skip      map[string]bool // directories not to look into
	depth     int             // not deeper than this; 0: stockDepth
	seen      map[string]bool // directories visited
	listed    map[string]bool // releases of module caches, each of which has them in two forms
	size      int             // bytes of JSON so far
	sources   int
	found     []channel.InstalledPackage
	closed    []string // places in which nobody but root could change anything
	truncated bool
}

// place takes stock of a directory that nothing is known about.
func (t *stocktaker) place(dir string) {
	if _, there := lookAt(t.root + dir); !there {
		return // it may be made
	}
	t.memory.open = false
	before := len(t.seen)
	if filepath.Base(dir) == "node_modules" {
		t.nodeModules(dir, 0)
	} else {
		t.walk(dir, 0)
	}
	if len(t.seen) > before && !t.memory.open && !t.truncated {
		t.closed = append(t.closed, dir)
	}
}

// walk visits a directory and those below it. A dist-info directory is a
// package wherever it lies; a directory of installed packages is not searched
// deeper, for what is in it are the packages' own files.
func (t *stocktaker) walk(dir string, depth int) {
	children, files := t.visit(dir)
	base := filepath.Base(dir)
	leaf := base == "site-packages" || base == "dist-packages"
	if !leaf {
		t.addSources(dir, files)
	}
	for _, file := range files {
		if leaf && strings.HasSuffix(file, ".egg-info") {
			t.addDistribution(filepath.Join(dir, file), "")
		}
	}
	for _, child := range children {
		path := filepath.Join(dir, child)
		switch {
		case strings.HasSuffix(child, ".dist-info"):
			t.addDistribution(path, "METADATA")
		case leaf && strings.HasSuffix(child, ".egg-info"):
			t.addDistribution(path, "PKG-INFO")
		case child == "node_modules":
			t.nodeModules(path, depth+1)
		case child == "@v":
			t.goVersions(path)
		case isGoModule(path):
			t.addGoModule(path)
		case leaf, child == ".git", child == "__pycache__", child == "_cacache":
		case child == "_vendor": // a package's own copies of others, which came with it
		case t.depth > 0 && depth >= t.depth:
		case depth >= stockDepth:
			t.truncated = true
		default:
			t.walk(path, depth+1)
		}
	}
}

// visit returns the directories and the other entries in dir, in order, the
// first time that it is called for it and within the bounds.
func (t *stocktaker) visit(dir string) (dirs, others []string) {
	if t.seen[dir] || t.skip[dir] || isSystem(dir) {
		t.memory.open = true // what is below is not known here
		return nil, nil
	}
	if t.ctx.Err() != nil || len(t.seen) >= stockDirs || t.full() {
		t.truncated = true
		return nil, nil
	}
	t.seen[dir] = true
	return t.entries(dir)
}

// entries are the directories in dir and the other entries that tell of packages,
// in order; none if it is no directory. Links are not followed, so that the walk
// ends.
func (t *stocktaker) entries(dir string) (dirs, others []string) {
	dirs, others, err := t.memory.dir(t.root + dir)
	if err != nil {
		return nil, nil // not there, or no directory
	}
	return dirs, others
}

// full tells that no package more is taken.
func (t *stocktaker) full() bool {
	return len(t.found)-t.sources >= stockPackages || t.size >= stockBytes
}

// add takes a package into the result as far as it fits.
func (t *stocktaker) add(p channel.InstalledPackage) {
	if t.full() {
		t.truncated = true
		return
	}
	if len(p.Name) > fieldBytes || len(p.Version) > fieldBytes || len(p.Path) > pathBytes || len(p.From) > pathBytes {
		t.truncated = true
		p.Name, p.Version = p.Name[:min(len(p.Name), fieldBytes)], p.Version[:min(len(p.Version), fieldBytes)]
		p.Path, p.From = p.Path[:min(len(p.Path), pathBytes)], p.From[:min(len(p.From), pathBytes)]
	}
	t.size += jsonSize(p)
	t.found = append(t.found, p)
}

// addSource takes a directory in which somebody writes a package. One too many
// is no package that is missed.
func (t *stocktaker) addSource(p channel.InstalledPackage) {
	if len(p.Name) > fieldBytes || len(p.Version) > fieldBytes || len(p.Path) > pathBytes || t.sources >= stockSources || t.full() {
		return
	}
	p.Source = true
	t.sources++
	t.add(p)
}
