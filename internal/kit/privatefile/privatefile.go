// Package privatefile looks at files that only one user may read or write: keys, and what says who
// may do what. A user who could put one there, or read it, has what it gives.
package privatefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Check refuses a file, by its path, that is a link or no regular file, that is another user's,
// or that others can get at. what is what it is, "the file of tokens"; a file that is not there
// is fs.ErrNotExist. The errors are fault.ErrForbidden.
func Check(what, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return unread(err, what, path)
	}
	return judgeFile(info, what, path)
}

// ReadKey reads so many random bytes from a file that Check takes. A key that can be guessed, or is
// of another length, is fault.ErrConflict.
func ReadKey(what, path string, size int) (key []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // #nosec G304 -- the callers' own files
	if errors.Is(err, syscall.ELOOP) {
		return nil, refuseFile(what, path, isLink)
	}
	if err != nil {
		return nil, unread(err, what, path)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, unread(err, what, path)
	}
	if err := judgeFile(info, what, path); err != nil {
		return nil, err
	}
	if key, err = io.ReadAll(io.LimitReader(file, int64(size)+1)); err != nil {
		return nil, unread(err, what, path)
	}
	if len(key) != size || guessable(key) {
		return nil, fault.New(fault.ErrConflict, "%s, %s, is refused: it is not %d random bytes; move it away for a new one", what, path, size)
	}
	return key, nil
}

const isLink = "it is a link, so whoever can write where it leads decides what it is; put the file itself there"

func judgeFile(info fs.FileInfo, what, path string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuseFile(what, path, isLink)
	case !info.Mode().IsRegular():
		return refuseFile(what, path, "it is no regular file")
	case !ok || int(stat.Uid) != os.Geteuid():
		return refuseFile(what, path, fmt.Sprintf("it belongs to another user; if you copied it here, chown it to user %d, else put your own back", os.Geteuid()))
	case info.Mode().Perm()&0o077 != 0:
		return fault.New(fault.ErrForbidden, "%s, %s, is refused: its mode is %#o, so others can get at it; move it away for a new one if they may have, else chmod 600 it", what, path, info.Mode().Perm())
	}
	return nil
}

func refuseFile(what, path, why string) error {
	return fault.New(fault.ErrForbidden, "%s, %s, is refused: %s", what, path, why)
}

func unread(err error, what, path string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s, %s, can't be read", what, path)
}

// guessable: 32 random bytes have fewer than 16 different values once in 10^12 times.
func guessable(key []byte) bool {
	seen := map[byte]bool{}
	for _, b := range key {
		seen[b] = true
	}
	return len(seen) < len(key)/2
}
