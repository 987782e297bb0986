package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// SealBefore says what to seal: the segments of which all records are older. The
// segment that is being written is never sealed. Exactly one is set.
type SealBefore struct {
	Time   time.Time
	Record uint64
}

// SealReport is what was sealed.
type SealReport struct {
	Segments []SealedSegment `json:"segments"`
}

// SealedSegment is one that was sealed: it may be moved away, its leaves may not.
type SealedSegment struct {
	File        string `json:"file"` // in the log's directory
	First       uint64 `json:"first"`
	Records     uint64 `json:"records"`
	BytesBefore int64  `json:"bytes_before"`
	BytesAfter  int64  `json:"bytes_after"`
}

// Seal compresses segments whose records are all older and keeps their leaves'
// hashes beside them; nothing is deleted that cannot be read again. It works while
// records are appended and read. A crash on the way leaves a segment as it was,
// or sealed.
func (l *FileLog) Seal(ctx context.Context, before SealBefore, by string) (SealReport, error) {
	var report SealReport
	l.mu.Lock()
	segments := slices.Clone(l.bounds)
	l.mu.Unlock()
	for i, s := range segments[:max(0, len(segments)-1)] {
		if s.form != plain {
			continue
		}
		older, err := l.olderThan(s, segments[i+1].first, before)
		if err != nil {
			return report, err
		}
		if !older || ctx.Err() != nil {
			return report, ctx.Err()
		}
		done, err := l.sealSegment(ctx, s, segments[i+1].first, by)
		if err != nil {
			return report, fault.Wrap(fault.ErrUnavailable, err, "the segment %s can't be sealed; it is as it was", s.fileName())
		}
		report.Segments = append(report.Segments, done)
	}
	return report, nil
}

func (l *FileLog) olderThan(s segment, next uint64, before SealBefore) (bool, error) {
	if before.Time.IsZero() {
		return next <= before.Record, nil
	}
	text, err := lastLine(filepath.Join(l.dir, s.fileName()), s.size)
	if err != nil {
		return false, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	last, err := decodeLine(text, next-1)
	if err != nil {
		return false, err
	}
	return last.Time.Before(before.Time), nil
}

// lastLine is the last whole line of a file that is size bytes long.
func lastLine(path string, size int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tail := make([]byte, min(size, MaxRecord+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text, whole := bytes.CutSuffix(tail, []byte("\n"))
	if !whole {
		return nil, io.ErrUnexpectedEOF
	}
	return text[bytes.LastIndexByte(text, '\n')+1:], nil
}

// sealSegment writes the leaves and the compressed lines, reads both again and
// compares them with the tree, records it, and only then gives the plain lines up.
func (l *FileLog) sealSegment(ctx context.Context, s segment, next uint64, by string) (SealedSegment, error) {
	if err := l.advance(); err != nil {
		return SealedSegment{}, err
	}
	done := SealedSegment{File: sealedName(s.first), First: s.first, Records: next - s.first, BytesBefore: s.size}
	leaves, err := l.writeSealed(s)
	if err != nil {
		return done, err
	}
	sealedAs := segment{first: s.first, form: sealed, count: int64(next - s.first)}
	sum, size, err := l.checkSealed(sealedAs, leaves)
	if err != nil {
		return done, err
	}
	done.BytesAfter = size
	_, err = l.Append(ctx, Record{
		Kind: KindLog, Outcome: Sealed, User: by,
		Reason: "A segment of the log was sealed: compressed, with the hashes of its leaves kept.",
		Detail: map[string]string{
			"event": "sealed", "file": done.File, "first": strconv.FormatUint(s.first, 10), "last": strconv.FormatUint(next-1, 10), "sha256": sum,
		},
	})
	if err != nil {
		return done, err
	}
	l.mu.Lock()
	i := slices.IndexFunc(l.bounds, func(b segment) bool { return b.first == s.first })
	l.bounds[i] = sealedAs
	l.mu.Unlock()
	err = uninterrupted(func() error { return l.options.disk.removeFile(filepath.Join(l.dir, s.fileName())) })
	if err == nil {
		err = uninterrupted(func() error { return l.options.disk.syncDir(l.dir) })
	}
	return done, err
}

// writeSealed writes the two files of a sealed segment and returns its leaves.
func (l *FileLog) writeSealed(s segment) (leaves []byte, err error) {
	lines, err := openLines(l.dir, s)
	if err != nil {
		return nil, err
	}
	defer lines.close()
	err = replace(l.options.disk, filepath.Join(l.dir, sealedName(s.first)), func(w io.Writer) error {
		buffered := bufio.NewWriterSize(w, 256<<10)
		z := gzip.NewWriter(buffered)
		for text, err := range eachLine(lines) {
			if err != nil {
				return err
			}
			leaf := leafOf(text)
			leaves = append(leaves, leaf[:]...)
			if _, err := z.Write(text); err != nil {
				return err
			}
		}
		if err := z.Close(); err != nil {
			return err
		}
		return buffered.Flush()
	})
	if err != nil {
		return nil, err
	}
	return leaves, replace(l.options.disk, filepath.Join(l.dir, leavesName(s.first)), func(w io.Writer) error {
		_, err := w.Write(leaves)
		return err
	})
}

// checkSealed reads what was written as a reader will, and compares it with the
// leaves, and those with the tree. It returns the compressed file's hash and size.
func (l *FileLog) checkSealed(s segment, leaves []byte) (sum string, size int64, err error) {
	if int64(len(leaves)) != s.count*tlog.HashSize {
		return "", 0, fmt.Errorf("it has %d records, and should have %d", len(leaves)/tlog.HashSize, s.count)
	}
	flat, _, err := openFlat(filepath.Join(l.dir, treeName))
	if err != nil || flat == nil {
		return "", 0, errors.Join(err, errors.New("the tree is missing"))
	}
	defer flat.Close()
	lines, err := openLines(l.dir, s)
	if err != nil {
		return "", 0, err
	}
	defer lines.close()
	n := int64(0)
	for text, err := range eachLine(lines) {
		if err != nil {
			return "", 0, err
		}
		leaf := leafOf(text)
		inTree, err := storedHash(flat, tlog.StoredHashIndex(0, int64(s.first)+n))
		if err != nil {
			return "", 0, err
		}
		if n >= s.count || leaf != inTree || !bytes.Equal(leaf[:], leaves[n*tlog.HashSize:][:tlog.HashSize]) {
			return "", 0, fmt.Errorf("record %d reads as something else after compression", int64(s.first)+n)
		}
		n++
	}
	if n != s.count {
		return "", 0, fmt.Errorf("%d of %d records can be read after compression", n, s.count)
	}
	return hashFile(filepath.Join(l.dir, s.fileName()))
}

func hashFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
