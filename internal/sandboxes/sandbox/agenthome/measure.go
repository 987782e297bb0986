package agenthome

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// maxEntries is how many files and directories of a home are looked at.
const maxEntries = 200_000

// mostDepth is how many directories may lie in each other: each of them is open while what is below it is looked at.
const mostDepth = 500

// measure adds up what a home has on the disk. Links are not followed. It ends early at a
// bound of the walk, which Kept.Past tells then. With an error, which is the first one, it has all that could be looked at.
func measure(ctx context.Context, dir string) (k Kept, first error) {
	home, err := hostpath.Follow(dir) // no sandbox may write above it
	if err != nil {
		return k, goneMeanwhile(err)
	}
	defer home.Close()
	bounds := treewalk.Usual()
	bounds.Entries, bounds.Depth = maxEntries, mostDepth
	err = treewalk.Walk(ctx, home, ".", bounds, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				k.Entries, k.Bytes = k.Entries+1, k.Bytes+onDisk(info)
			}
		}
		if first == nil {
			first = goneMeanwhile(err)
		}
		return nil
	})
	if bound, past := errors.AsType[*treewalk.BoundError](err); past {
		k.Past, err = bound.Has, nil
	}
	if first == nil {
		first = err
	}
	return k, first
}

// goneMeanwhile forgives what a sandbox removes while it is looked at, or puts something else in the place of.
func goneMeanwhile(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
