package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// form is how a segment is kept.
type form int

const (
	plain     form = iota // JSON lines
	sealed                // JSON lines, compressed, and the hashes of its leaves
	elsewhere             // only the hashes of its leaves: the lines were moved away
)

// segment is a part of the log: its first record's number, and how it is kept.
type segment struct {
	first uint64
	form  form
	size  int64 // of a plain one: the bytes that are durable
	count int64 // of others: records
}

// The files of the segment whose first record has this number.
func segmentName(first uint64) string  { return fmt.Sprintf("%012d%s", first, plainSuffix) }
func sealedName(first uint64) string   { return fmt.Sprintf("%012d%s", first, sealedSuffix) }
func leavesName(first uint64) string   { return fmt.Sprintf("%012d%s", first, leavesSuffix) }
func personalName(first uint64) string { return fmt.Sprintf("%012d%s", first, personalSuffix) }

const (
	plainSuffix    = ".jsonl"
	sealedSuffix   = ".jsonl.gz"
	leavesSuffix   = ".leaves"
	personalSuffix = ".personal"
)

// fileName is the file that has the segment's lines.
func (s segment) fileName() string {
	switch s.form {
	case plain:
		return segmentName(s.first)
	case sealed:
		return sealedName(s.first)
	default:
		return leavesName(s.first)
	}
}

// listSegments finds the segments of a directory, in order, and checks that they
// begin at record 0 and that sealed ones reach to the next. The size of plain
// ones is that of their files.
func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's directory %s can't be read", dir)
	}
	found := map[uint64]segment{}
	for _, suffix := range []string{leavesSuffix, sealedSuffix, plainSuffix} { // a later one wins
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), suffix) {
				continue
			}
			s, err := segmentOf(dir, e, suffix, found)
			if err != nil {
				return nil, err
			}
			found[s.first] = s
		}
	}
	segments := make([]segment, 0, len(found))
	for _, s := range found {
		segments = append(segments, s)
	}
	slices.SortFunc(segments, func(a, b segment) int { return int(int64(a.first) - int64(b.first)) })
	if len(segments) > 0 && segments[0].first != 0 {
		return nil, fault.Invalid("the audit log in %s has lost its beginning: its first segment is %s", dir, segments[0].fileName())
	}
	for i, s := range segments[:max(0, len(segments)-1)] {
		if next := segments[i+1]; s.form != plain && s.first+uint64(s.count) != next.first {
			return nil, fault.Invalid("the audit log is damaged: %s has the hashes of %d records, and the next segment is %s", leavesName(s.first), s.count, next.fileName())
		}
	}
	return segments, nil
}

func segmentOf(dir string, e os.DirEntry, suffix string, found map[uint64]segment) (segment, error) {
	foreign := fault.Invalid("the audit log's directory %s has a file %q that is no segment; move it away", dir, e.Name())
	first, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), suffix), 10, 64)
	if err != nil || fmt.Sprintf("%012d%s", first, suffix) != e.Name() || !e.Type().IsRegular() {
		return segment{}, foreign
	}
	info, err := e.Info()
	if err != nil {
		return segment{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log's directory %s can't be read", dir)
	}
	switch suffix {
	case plainSuffix:
		return segment{first: first, form: plain, size: info.Size()}, nil
	case sealedSuffix:
		known, ok := found[first]
		if _, err := os.Lstat(filepath.Join(dir, segmentName(first))); !ok && err == nil {
			return segment{first: first, form: plain}, nil // a crash before the hashes were kept: the lines are there
		}
		if !ok {
			return segment{}, fault.Invalid("the audit log is damaged: %s has lost its hashes, %s; put them back from a copy", e.Name(), leavesName(first))
		}
		known.form = sealed
		return known, nil
	}
	if info.Size() == 0 || info.Size()%tlog.HashSize != 0 {
		return segment{}, fault.Invalid("the audit log is damaged: %s is %d bytes long, which is not a whole number of hashes", e.Name(), info.Size())
	}
	return segment{first: first, form: elsewhere, count: info.Size() / tlog.HashSize}, nil
}

// openLines opens the lines of a segment that has some here.
func openLines(dir string, s segment) (*lineFile, error) {
	f, err := os.Open(filepath.Join(dir, s.fileName()))
	if err != nil {
		return nil, err
	}
	if s.form == plain {
		return &lineFile{Reader: io.NewSectionReader(f, 0, s.size), file: f}, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 256<<10))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lineFile{Reader: z, file: f}, nil
}

// lineFile is a segment's lines, open for reading.
type lineFile struct {
	io.Reader

	file *os.File
}

// close gives the file free; nothing was written to it.
func (l *lineFile) close() { l.file.Close() }

// skipBytes passes over n bytes of the lines that are read through a buffer.
func (l *lineFile) skipBytes(through *bufio.Reader, n int64) error {
	ahead := n - int64(through.Buffered())
	seeker, ok := l.Reader.(io.Seeker)
	if !ok || ahead <= 0 {
		_, err := io.CopyN(io.Discard, through, n)
		return err
	}
	if _, err := seeker.Seek(ahead, io.SeekCurrent); err != nil {
		return err
	}
	through.Reset(l.Reader)
	return nil
}

// leafOf is the leaf that a line is in the tree: its bytes without the newline.
func leafOf(line []byte) tlog.Hash { return tlog.RecordHash(bytes.TrimSuffix(line, []byte("\n"))) }
