package homes

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
)

// maxEntries is how many files and directories of a home are looked at.
const maxEntries = 200_000

// readAtOnce is how many names of a directory are read at a time: a sandbox may have made any
// number of them.
const readAtOnce = 1024

// mostDepth is how many directories may lie in each other, each of which is open while what
// is below it is looked at. Anything deeper counts as more entries than may be.
const mostDepth = 500

// measure adds up what a home has on the disk. Links are not followed. It ends early past the
// bound of entries. With an error, which is the first one, it has all that could be looked at.
func measure(dir string) (Kept, error) {
	var k Kept
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	k.Entries, k.Bytes = 1, onDisk(info)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return k, goneMeanwhile(err)
	}
	defer root.Close() //nolint:errcheck // a directory handle
	return k, goneMeanwhile(k.add(root, 0))
}

// add adds what is below a directory.
func (k *Kept) add(root *os.Root, depth int) error {
	if depth > mostDepth {
		k.Entries = maxEntries + 1
		return nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	var first error
	for k.Entries <= maxEntries {
		part, err := dir.ReadDir(readAtOnce)
		for _, entry := range part {
			if err := k.addEntry(root, entry, depth); goneMeanwhile(err) != nil && first == nil {
				first = err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return cmp.Or(first, err)
		}
	}
	return first
}

func (k *Kept) addEntry(root *os.Root, entry fs.DirEntry, depth int) error {
	if k.Entries++; k.Entries > maxEntries {
		return nil
	}
	info, err := root.Lstat(entry.Name())
	if err != nil {
		return err
	}
	if k.Bytes += onDisk(info); !info.IsDir() {
		return nil
	}
	below, err := root.OpenRoot(entry.Name())
	if err != nil {
		if now, gone := root.Lstat(entry.Name()); gone == nil && !now.IsDir() {
			return nil // the sandbox put something else there meanwhile
		}
		return err
	}
	defer below.Close() //nolint:errcheck // a directory handle
	return k.add(below, depth+1)
}

// goneMeanwhile forgives what a sandbox removes while it is looked at.
func goneMeanwhile(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
