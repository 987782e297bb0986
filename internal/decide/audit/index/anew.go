package index

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// anewPrefix begins the names of folders for indexes that one question has.
const anewPrefix = ".anew-"

// Anew runs ask over an index that is made of the log alone for that, and gone afterwards: what
// it tells does not depend on this index's files, to which others may have written. It
// takes as long as reading the whole log, and as much room on the disk as the index has.
func (x *Index) Anew(ctx context.Context, ask func(*View) error) (err error) {
	home := filepath.Dir(x.path)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the directory of the audit log's index can't be made")
	}
	removeStale(home)
	dir, err := os.MkdirTemp(home, anewPrefix)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "there is no place for an index that is made for one question")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own := New(filepath.Join(dir, filepath.Base(x.path)), x.log, x.options)
	defer func() { err = errors.Join(err, own.Close()) }()
	return own.View(ctx, ask)
}

// removeStale removes what processes have left behind that were killed meanwhile.
func removeStale(home string) {
	left, err := filepath.Glob(filepath.Join(home, anewPrefix+"*"))
	if err != nil {
		return // not reached: the pattern is a constant
	}
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(dir) // it only takes room
		}
	}
}
