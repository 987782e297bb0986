package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Begins compares a log's files with the note of a checkpoint of it that somebody has
// kept apart from them. It returns "" if the log begins with the records that the
// checkpoint covers, else what is wrong: the log was rolled back, rewritten, or is
// another one. Where the tree's file is lost only the numbers are compared: Open makes
// the tree again, and compares it with the log's own last checkpoint.
func Begins(dir string, note []byte) (wrong string, err error) {
	tail, err := readTail(filepath.Join(dir, checkpointsName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the audit log's checkpoints can't be read")
	}
	if len(tail.notes) == 0 {
		return "it has no checkpoint", nil
	}
	ring, err := logKeys(dir)
	if err != nil {
		return "", err
	}
	var last checkpoint.Checkpoint
	for _, n := range slices.Backward(tail.notes) { // a crash may have torn the last one
		if last, err = ring.Open(n); err == nil {
			break
		}
	}
	kept, err := ring.Open(note)
	if err != nil {
		return "none of its keys signed that checkpoint", nil // that is the answer
	}
	if kept.Size > last.Size {
		return counted(last, kept), nil
	}
	root, err := rootAt(dir, kept.Size)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be read")
	}
	if root != nil && *root != kept.Root {
		return "its records are others than that checkpoint covers", nil
	}
	return "", nil
}

func counted(last, kept checkpoint.Checkpoint) string {
	return fmt.Sprintf("it has %d records under its last checkpoint, and that one covers %d", last.Size, kept.Size)
}

// rootAt is the root of the tree of the first records; nil: the tree's file does not
// have them.
func rootAt(dir string, size int64) (*tlog.Hash, error) {
	flat, bytes, err := openFlat(filepath.Join(dir, treeName))
	if err != nil || flat == nil {
		return nil, err
	}
	defer flat.Close()
	if bytes < treeBytes(size) {
		return nil, nil //nolint:nilnil // as said above
	}
	root, err := tlog.TreeHash(size, treeReader(flat))
	return &root, err
}

// LastNote is the last whole checkpoint of a file to which checkpoints are appended,
// such as audit.publish.file; nil: there is none.
func LastNote(path string) ([]byte, error) {
	tail, err := readTail(path)
	if err != nil || len(tail.notes) == 0 {
		return nil, err
	}
	return tail.notes[len(tail.notes)-1], nil
}
