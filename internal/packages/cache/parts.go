package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Part is what a cache's directory has of one kind.
type Part struct {
	Name   string
	Files  int
	Bytes  int64
	Oldest time.Time // when the oldest was written; zero: there is none
	// Kept tells that it is no cache in the narrow sense: what is lost of it can't be
	// had again, and Sweep leaves it alone.
	Kept bool
}

// The names of the parts that Sweep takes.
const (
	PartArtifacts   = "artifacts"
	PartPages       = "index pages"
	PartQuarantined = "quarantined"
)

// cacheParts are the parts with their directories.
func cacheParts() []struct {
	Part

	dir string
} {
	return []struct {
		Part

		dir string
	}{
		{Part{Name: PartArtifacts}, dirBlobs},
		{Part{Name: PartPages}, dirPages},
		{Part{Name: PartQuarantined}, dirQuarantine},
		{Part{Name: "first digests", Kept: true}, dirSeen}, // a file's first digest is its digest for ever
		{Part{Name: "what was learnt", Kept: true}, dirShelves},
	}
}

// Parts looks at a cache's directory, which need not be there.
func Parts(dir string) ([]Part, error) {
	var parts []Part
	for _, k := range cacheParts() {
		p := k.Part
		err := eachFile(filepath.Join(dir, k.dir), func(_ string, info fs.FileInfo) error {
			p.Files++
			p.Bytes += info.Size()
			if p.Oldest.IsZero() || info.ModTime().Before(p.Oldest) {
				p.Oldest = info.ModTime()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Sweep removes what parts have that was written before a time, and tells what it
// removed. A gateway may be at work on the directory: what it has open it reads to the
// end, and what it does not find it fetches again.
func Sweep(dir string, names []string, before time.Time) ([]Part, error) {
	var swept []Part
	for _, k := range cacheParts() {
		for _, name := range names {
			if name != k.Name || k.Kept {
				continue
			}
			p := Part{Name: k.Name}
			err := eachFile(filepath.Join(dir, k.dir), func(path string, info fs.FileInfo) error {
				if !info.ModTime().Before(before) {
					return nil
				}
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				p.Files++
				p.Bytes += info.Size()
				return nil
			})
			swept = append(swept, p)
			if err != nil {
				return swept, err
			}
		}
	}
	return swept, nil
}

// eachFile visits the regular files below a directory. A file that goes meanwhile is passed over.
func eachFile(dir string, visit func(path string, info fs.FileInfo) error) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(path, info)
	})
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache in %s can't be looked through", dir)
	}
	return nil
}
