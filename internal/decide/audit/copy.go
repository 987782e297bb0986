package audit

import (
	"bytes"
	"io"
	"strings"
)

// Of a copy of the log's directory that is made while it is written. All of its files are opened first, then
// their lengths are read in the order of CopyRank, and plain ones are cut by WholeLines. If no file
// came, went or was replaced meanwhile, the copy is a log: no checkpoint in it covers a record that it lacks,
// and every record has its personal data.

// IsWork tells of a file in the log's directory that is no part of the log: a lock, or what is being written.
func IsWork(base string) bool {
	return base == "lock" || strings.HasSuffix(base, ".tmp") || strings.HasPrefix(base, ".")
}

// CopyRank orders the files of the log's directory: the length of one with a lower rank is read first. Records
// are durable before the tree has them, and that before a checkpoint covers it; personal data are durable before the
// record that commits to them, which is read by then.
func CopyRank(base string) int {
	switch {
	case base == treeName:
		return 1
	case strings.HasSuffix(base, plainSuffix):
		return 2
	case strings.HasSuffix(base, personalSuffix):
		return 3
	}
	return 0
}

// WholeLines is how much of a file's first size bytes is whole lines, if it is one of lines that are
// appended, and else all of it.
func WholeLines(base string, file io.ReaderAt, size int64) (int64, error) {
	if !strings.HasSuffix(base, plainSuffix) && !strings.HasSuffix(base, personalSuffix) {
		return size, nil
	}
	const step = 64 << 10
	for size > 0 {
		chunk := make([]byte, min(size, step))
		if _, err := file.ReadAt(chunk, size-int64(len(chunk))); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(chunk, '\n'); at >= 0 {
			return size - int64(len(chunk)) + int64(at) + 1, nil
		}
		size -= int64(len(chunk))
	}
	return 0, nil
}
