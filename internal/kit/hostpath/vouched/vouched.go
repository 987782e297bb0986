// Package vouched keeps which files a person vouches for that decide what runs may do, by the digests of what was in
// them: policies, lockfiles, keys, and the like, which people name from where they work. That is where agents work,
// too. A file that no sandbox could have written is its owner's, and what is in it is noted when it is used.
// Afterwards the same content may decide wherever agents could write, and another one only once a person has
// said so.
package vouched

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// mostFiles is how many files are known; the one that was used least lately is forgotten.
const mostFiles = 4096

// lockPoll is how often the lock of the file is asked for.
const lockPoll = 20 * time.Millisecond

// Book is kept in a file of the state directory, which several processes use. Safe for concurrent use.
type Book struct{ path string }

// Open is the book at a path, which may not be there yet.
func Open(path string) *Book { return &Book{path: path} }

// vouchedEntry is what was in a file, and when it was noted, or used later, to a day.
type vouchedEntry struct {
	Digest string    `json:"digest"`
	Noted  time.Time `json:"noted"`
}

// Digest is "sha256:" and what is in a file, in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// UnseenError is the refusal of a file that an agent could have written as it is.
type UnseenError struct {
	What, Path string
	Tree       string // in which the file lies, or a link that leads to it; "/": nobody knows where agents could write
	// Stranger is where somebody else decides what the file is, of whose agents nothing is known; nil: nowhere.
	Stranger *hostpath.Stranger
	Digest   string
}

func (e *UnseenError) Error() string {
	where := fmt.Sprintf("is reached under %s, where an agent may write, or could", e.Tree)
	switch {
	case e.Stranger != nil:
		where = fmt.Sprintf("may be an agent's, because %s, whose agents are not known here", e.Stranger)
	case e.Tree == "/":
		where = "may be an agent's, because the record of where agents could write can't be read"
	}
	return fmt.Sprintf("the %s %s %s, and nobody has seen what is in it now: read it, and say so: cofferdam project allow %s (its digest is %s); or keep it where no run may write", e.What, e.Path, where, e.Path, e.Digest)
}

// Unwrap tells the category.
func (e *UnseenError) Unwrap() error { return fault.ErrInvalid }

// Check tells whether what was read from an absolute path may decide: nobody inside could have written it in these
// trees, nor somebody else on this host, whose agents are on another record, and then it is noted, or it is what was
// noted last. Otherwise it is an *UnseenError. Noted is only what the file has: who tries what it could have has not put
// that there.
func (b *Book) Check(ctx context.Context, what, path string, data []byte, trees []hostpath.Tree) error {
	read := path // with its "..", which lead on from where a link before them leads
	path = filepath.Clean(path)
	digest := Digest(data)
	known, err := b.readEntries()
	if err == nil && known[path].Digest == digest {
		return b.renewEntry(ctx, path, known[path])
	}
	tree, theirs, looked := hostpath.Within(read, trees)
	var stranger *hostpath.Stranger
	if !theirs && looked == nil {
		stranger, looked = hostpath.StrangerOf(read)
	}
	switch {
	case looked != nil:
		return fault.Wrap(fault.ErrUnavailable, looked, "where the %s %s lies can't be looked at", what, path)
	case !theirs && stranger == nil:
		if !fileHas(read, data) {
			return nil
		}
		return b.Vouch(ctx, path, data)
	case err != nil:
		return err
	}
	return &UnseenError{What: what, Path: path, Tree: tree.Path, Stranger: stranger, Digest: digest}
}

// fileHas tells whether what was read is what a file has now. An ignore file that is gone says as much as an empty one.
func fileHas(path string, data []byte) bool {
	file, err := hostpath.Resolve(path, nil)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && len(data) == 0
	}
	defer file.Close()
	if file.ID.Type != hostpath.File {
		return false
	}
	now, err := file.ReadFile(int64(len(data)))
	return err == nil && bytes.Equal(now, data)
}

// renewAfter is how long an entry counts as used: a use after that is noted.
const renewAfter = 24 * time.Hour

// renewEntry notes that an entry is used, so that it is not the one that is forgotten.
func (b *Book) renewEntry(ctx context.Context, path string, e vouchedEntry) error {
	if time.Since(e.Noted) < renewAfter {
		return nil
	}
	return b.change(ctx, func(all map[string]vouchedEntry) {
		if all[path] == e { // otherwise it was noted, or taken back, just now
			all[path] = vouchedEntry{Digest: e.Digest, Noted: time.Now().UTC()}
		}
	})
}

// Vouch notes that a person has seen what is in a file, as it was read.
func (b *Book) Vouch(ctx context.Context, path string, data []byte) error {
	if known, err := b.readEntries(); err == nil && known[filepath.Clean(path)].Digest == Digest(data) {
		return nil
	}
	return b.change(ctx, func(all map[string]vouchedEntry) {
		all[filepath.Clean(path)] = vouchedEntry{Digest: Digest(data), Noted: time.Now().UTC()}
		for len(all) > mostFiles {
			oldest := ""
			for name, e := range all {
				if oldest == "" || cmp.Compare(e.Noted.UnixNano(), all[oldest].Noted.UnixNano()) < 0 {
					oldest = name
				}
			}
			delete(all, oldest)
		}
	})
}

// Forget takes that back. known is false for a file of which nothing was noted.
func (b *Book) Forget(ctx context.Context, path string) (known bool, err error) {
	err = b.change(ctx, func(all map[string]vouchedEntry) {
		_, known = all[filepath.Clean(path)]
		delete(all, filepath.Clean(path))
	})
	return known, err
}

// readEntries reads the entries, and returns nil where there is no book yet.
func (b *Book) readEntries() (map[string]vouchedEntry, error) {
	text, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nobody has vouched for anything
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "what people have vouched for can't be read")
	}
	all := map[string]vouchedEntry{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s, which has the files that you have vouched for, can't be read; remove it, and allow them again", b.path)
	}
	return all, nil
}

// change changes the file while nobody else does.
func (b *Book) change(ctx context.Context, do func(map[string]vouchedEntry)) error {
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return err
	}
	lock, err := filelock.Await(ctx, b.path+".lock", lockPoll, nil)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // it goes with this process
	all, err := b.readEntries()
	if err != nil {
		return err
	}
	if all == nil {
		all = map[string]vouchedEntry{}
	}
	do(all)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Replace(b.path, text, 0o600)
}
