package loglimit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Room is how large a log file may get before Trim sets it aside, in bytes.
const Room = 8 << 20

// Trim sets a log file aside that has grown past Room: what it has last, up to Room, is copied
// to path.1, in place of what was there, and the file is emptied. Processes that append to
// it go on; what they write while it is copied may be lost. A file that is not there, or is no
// plain file, is left alone.
func Trim(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() <= Room) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at a log: %w", err)
	}
	from, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open a log to set it aside: %w", err)
	}
	defer from.Close() // nothing was written to it
	aside := path + ".1"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set a log aside: %w", err)
	}
	to, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, info.Mode().Perm())
	if err != nil {
		return fmt.Errorf("set a log aside: %w", err)
	}
	_, err = io.Copy(to, io.NewSectionReader(from, max(0, info.Size()-Room), Room))
	// A full disk keeps no log from being emptied: that is when it has to be.
	if err := errors.Join(err, to.Close(), from.Truncate(0)); err != nil {
		return fmt.Errorf("set a log aside: %w", err)
	}
	return nil
}
