package audit

import (
	"context"
	"iter"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Reader reads a log's directory, or a copy of one, and changes nothing in it.
// It has the records that were whole when it was opened; a torn end is passed
// over. It proves nothing: see OpenVerified.
type Reader struct{ log FileLog }

// OpenReader opens a directory with a log for reading. fault.ErrNotFound if
// there is no log in it.
func OpenReader(dir string) (*Reader, error) {
	segments, err := listSegments(dir)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fault.New(fault.ErrNotFound, "there is no audit log in %s", dir)
	}
	r := &Reader{FileLog{dir: dir, bounds: segments}}
	for i, s := range segments[:len(segments)-1] {
		if s.form != plain {
			continue
		}
		if segments[i].size, err = r.log.checkClosed(s.first, segments[i+1].first); err != nil {
			return nil, err
		}
	}
	last := &segments[len(segments)-1]
	if last.form != plain {
		r.log.next = last.first + uint64(last.count)
		return r, nil
	}
	if last.size, _, err = r.log.wholeRecords(filepath.Join(dir, last.fileName()), last.first); err != nil {
		return nil, err
	}
	r.log.next = r.log.writer.next
	return r, nil
}

// Records are the selected records, in order, as Log has them.
func (r *Reader) Records(ctx context.Context, f Filter) iter.Seq2[Record, error] {
	return r.log.Records(ctx, f)
}

// End returns the number that the next record would have, and a channel that is
// never closed: nothing comes.
func (r *Reader) End() (next uint64, grown <-chan struct{}) { return r.log.next, nil }
