package image

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// fresh is how young a change may be for the file system's clock not to tell it
// from the next: what was changed so shortly ago is not remembered as known.
const fresh = 20 * time.Millisecond

// maxKnown bounds what a Checker remembers.
const maxKnown = 256

// Checker verifies images and reads digests of files, and does not read again
// what it has read and what has not changed since: neither a file's identity nor
// its size, nor one of the two times that tell of a change, of which nobody can
// set the second. A path is none of that: a snapshot is sealed as a draft, and
// used at its place. The zero value is ready. Safe for concurrent use.
type Checker struct {
	mu    sync.Mutex // guards known
	known map[inode]checked
}

type checked struct {
	stamps  map[string]stamp // of the directory (".") and each file in it, or of a single file ("")
	sandbox string
	digest  string // of a single file
}

// inode is which file or directory of this machine it is.
type inode struct{ dev, ino uint64 }

// stamp changes whenever a file does.
type stamp struct {
	inode
	size             int64
	modified, change unix.Timespec
}

// Seal is image.Seal; the image is known from then on.
func (c *Checker) Seal(dir, sandbox string) error {
	before, err := stamps(dir)
	if err != nil {
		return err
	}
	if err := Seal(dir, sandbox); err != nil {
		return err
	}
	after, err := stamps(dir)
	if err != nil {
		return err
	}
	for name, s := range before {
		if name != "." && after[name] != s {
			return fault.New(fault.ErrConflict, "%s was changed while the image of sandbox %s was being sealed", filepath.Join(dir, name), sandbox)
		}
	}
	delete(before, ".")
	if areOld(before) {
		c.rememberChecked(after["."], checked{stamps: after, sandbox: sandbox})
	}
	return nil
}

// Verify is image.Verify of an image of whatever sandbox, which it returns.
func (c *Checker) Verify(dir string) (sandbox string, err error) {
	before, err := stamps(dir)
	if err != nil {
		return "", fault.Wrap(fault.ErrConflict, err, "the image at %s can't be read", dir)
	}
	if k, ok := c.remembered(before["."], before); ok {
		return k.sandbox, nil
	}
	s, err := readSeal(dir)
	if err != nil {
		return "", fault.Wrap(fault.ErrConflict, err, "the image at %s has no seal, so it was not written whole", dir)
	}
	if err := Verify(dir, s.Sandbox); err != nil {
		return "", err
	}
	after, err := stamps(dir)
	if err != nil || !maps.Equal(before, after) {
		return "", fault.New(fault.ErrConflict, "the image at %s was changed while it was being verified", dir)
	}
	if areOld(before) {
		c.rememberChecked(before["."], checked{stamps: before, sandbox: s.Sandbox})
	}
	return s.Sandbox, nil
}

// File is the sha256 of a file, in hexadecimal.
func (c *Checker) File(path string) (string, error) {
	before, err := stampOf(path)
	if err != nil {
		return "", err
	}
	if k, ok := c.remembered(before[""], before); ok {
		return k.digest, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	after, err := stampOf(path)
	if err == nil && maps.Equal(before, after) && areOld(before) {
		c.rememberChecked(before[""], checked{stamps: before, digest: digest})
	}
	return digest, err
}

// areOld tells whether all changes are so old that another one would show.
func areOld(all map[string]stamp) bool {
	latest := time.Now().Add(-fresh)
	for _, s := range all {
		if time.Unix(s.change.Unix()).After(latest) {
			return false
		}
	}
	return true
}

func (c *Checker) remembered(which stamp, now map[string]stamp) (checked, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.known[which.inode]
	return k, ok && maps.Equal(k.stamps, now)
}

func (c *Checker) rememberChecked(which stamp, k checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxKnown {
		c.known = map[inode]checked{}
	}
	c.known[which.inode] = k
}

// stamps are those of a directory, as ".", and of the files in it.
func stamps(dir string) (map[string]stamp, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]stamp{}
	for _, name := range append([]string{"."}, entryNames(entries)...) {
		if all[name], err = lstat(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func entryNames(entries []fs.DirEntry) []string {
	all := make([]string, 0, len(entries))
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func stampOf(path string) (map[string]stamp, error) {
	s, err := lstat(path)
	return map[string]stamp{"": s}, err
}

func lstat(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stamp{inode: inode{st.Dev, st.Ino}, size: st.Size, modified: st.Mtim, change: st.Ctim}, nil
}
