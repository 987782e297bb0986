package mounts

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxLinks is how many symlinks a path may lead through; the kernel's own limit.
const maxLinks = 40

// guarded are the files that decide what a later run may do: those that the caller
// knows, and the ignore files of the mounts.
func guarded(mounts []Mount, deciding []string) []string {
	files := slices.Clone(deciding)
	for _, m := range mounts {
		ignore := filepath.Join(m.Source, IgnoreFile)
		if _, err := os.Lstat(ignore); err == nil {
			files = append(files, ignore)
		}
	}
	return files
}

// guard returns the read-only mounts that keep the agent from rewriting files
// which lie under a read-write mount. A file directly in a mount's root is
// covered by a read-only mount of itself. One that lies deeper can't be
// protected, because the directory above it could be renamed, and is refused;
// so is one that is reached through a link in such a mount, because the link
// could be replaced.
func guard(mounts []Mount, files []string) ([]engine.Mount, error) {
	var over []engine.Mount
	if !slices.ContainsFunc(mounts, func(m Mount) bool { return m.ReadWrite }) {
		return nil, nil // and who may name files of the host and mount none learns nothing of them
	}
	for _, file := range files {
		resolved, links, err := follow(file)
		if err != nil {
			return nil, fault.Invalid("%s can't be read any more", file)
		}
		for _, m := range mounts {
			if !m.ReadWrite {
				continue
			}
			for _, link := range links {
				if within(link, m.Source) {
					return nil, fault.Invalid("%s is reached through %s, a link under the read-write mount %s, which the agent could replace; name the file itself, or mount that directory read-only", file, link, m.Source)
				}
			}
			if !within(resolved, m.Source) {
				continue
			}
			if filepath.Dir(resolved) != m.Source {
				return nil, fault.Invalid("%s lies under the read-write mount %s, where the agent could rewrite it; move it out, or mount that directory read-only", file, m.Source)
			}
			cover := engine.Mount{
				Source: resolved, Destination: filepath.Join(m.Destination, filepath.Base(resolved)), ReadOnly: true,
			}
			if !slices.Contains(over, cover) { // two links may lead to one file
				over = append(over, cover)
			}
		}
	}
	return over, nil
}

// follow resolves an absolute path and tells where the symlinks lie that it
// leads through.
func follow(path string) (resolved string, links []string, err error) {
	resolved, rest := "/", strings.Split(filepath.Clean(path), "/")
	for len(rest) > 0 {
		next := filepath.Join(resolved, rest[0]) // "" stays, ".." goes up
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			resolved = next
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return "", nil, fault.Invalid("%s leads through too many links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			resolved = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return resolved, links, nil
}
