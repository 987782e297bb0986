package audit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// proof is what a log was when it was verified, so that what is read of it later is the same:
// whoever can write the files could put others in their place between the two.
type proof struct {
	leaves *os.File        // the hash of each record, in order; it has no name
	erased map[uint64]bool // the records whose personal data were erased
}

// OpenVerified verifies a log as Verify does and opens it for reading. The Reader is nil if
// the log is not sound. It yields what was verified: a record, or personal data, that
// has changed since ends the reading with fault.ErrConflict, and what has come since is not
// there. In the directory scratch, which nobody else may write, it needs room for 32 bytes a
// record; Close gives it free.
func OpenVerified(ctx context.Context, dir, scratch string, options VerifyOptions) (r *Reader, verdict Verdict, err error) {
	leaves, err := os.CreateTemp(scratch, "leaves-")
	if err != nil {
		return nil, verdict, fault.Wrap(fault.ErrUnavailable, err, "there is no room for the hashes of the log's records in %s", scratch)
	}
	defer func() {
		if r == nil {
			err = errors.Join(err, leaves.Close())
		}
	}()
	if err := os.Remove(leaves.Name()); err != nil {
		return nil, verdict, fault.Wrap(fault.ErrUnavailable, err, "the hashes of the log's records can't be kept")
	}
	v := &verifier{dir: dir, options: options, begun: time.Now(), kept: bufio.NewWriterSize(leaves, 1<<16)}
	if verdict, err = v.verify(ctx); err != nil || !verdict.Sound {
		return nil, verdict, err
	}
	if err := v.kept.Flush(); err != nil {
		return nil, verdict, fault.Wrap(fault.ErrUnavailable, err, "the hashes of the log's records can't be kept")
	}
	p := &proof{leaves: leaves, erased: map[uint64]bool{}}
	for _, t := range v.tombstones {
		p.erased[t.Seq] = true
	}
	opened, err := OpenReader(dir)
	if err != nil {
		return nil, verdict, err
	}
	if err := opened.holdToProof(p, verdict); err != nil {
		return nil, verdict, err
	}
	return opened, verdict, nil
}

// AwaitCovered waits until a checkpoint covers all records that the log has now: what none covers
// can't be verified. That takes a second at most while the log is well; after limit it gives up,
// and what is not covered is for whoever verifies to tell.
func AwaitCovered(ctx context.Context, log *FileLog, limit time.Duration) error {
	next, _ := log.End()
	over := time.NewTimer(limit)
	defer over.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if last, _ := log.Checkpoint(); last.Size >= 0 && uint64(last.Size) >= next {
			return nil
		}
		select {
		case <-look.C:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holdToProof binds a reader to what was verified.
func (r *Reader) holdToProof(p *proof, verdict Verdict) error {
	var away uint64
	for _, s := range r.log.bounds {
		if s.form == elsewhere {
			away += uint64(s.count)
		}
	}
	if r.log.next < verdict.Records || away != verdict.Elsewhere {
		return fault.New(fault.ErrConflict, "the log in %s has fewer records than when it was verified a moment ago: somebody changes it; copy it to where only you can write", r.log.dir)
	}
	r.log.next, r.log.proof = verdict.Records, p
	return nil
}

// Close gives free what OpenVerified keeps.
func (r *Reader) Close() error {
	if r.log.proof == nil {
		return nil
	}
	return r.log.proof.leaves.Close()
}

// checkLine refuses a record's line that is not the one that was verified.
func (p *proof) checkLine(seq uint64, text []byte) error {
	if p == nil {
		return nil
	}
	var leaf tlog.Hash
	switch _, err := p.leaves.ReadAt(leaf[:], int64(seq)*tlog.HashSize); { // #nosec G115 -- the number of a line that was read
	case errors.Is(err, io.EOF):
		return changedSince("record", seq)
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "the hashes of the log's records can't be read")
	case leaf != leafOf(text):
		return changedSince("record", seq)
	}
	return nil
}

// erasedAs refuses personal data that are not there, and were when they were verified.
func (p *proof) erasedAs(seq uint64) error {
	if p == nil || p.erased[seq] {
		return nil
	}
	return changedSince("the personal data of record", seq)
}

func changedSince(what string, seq uint64) error {
	return fault.New(fault.ErrConflict, "%s %d is not what was verified a moment ago: somebody changes the log; copy it to where only you can write", what, seq)
}
