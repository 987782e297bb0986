package audit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// PublicKeysName is the file of the log's directory that has its public keys, one
// a line, oldest first.
const PublicKeysName = "keys.pub"

// The names of the follower's other files.
const (
	treeName        = "tree"
	checkpointsName = "checkpoints"
	keyName         = "key"
)

// follower adds what the writer has made durable to the tree and signs
// checkpoints. It never holds an append up: it reads the lines again, from
// the segments.
type follower struct {
	grown chan struct{} // capacity 1: there are new records
	stop  chan struct{}
	done  chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex // guards what follows, and is held while its files are written
	key       checkpoint.Key
	next      *checkpoint.Key // a rotation has vouched for it, and it is not in its place yet
	keys      []string        // public ones, oldest first
	tree      hashTree
	at        position
	notes     writable
	notesSize int64 // of the file, as far as it is whole notes
	torn      bool  // the file may hold bytes past notesSize
	last      checkpoint.Checkpoint
	lastNote  []byte // nil if there is none
	failure   error  // of the last attempt, nil if all is well
}

// position is where the next line of a plain segment begins.
type position struct {
	first  uint64 // the segment
	offset int64
}

func newFollower() follower {
	return follower{grown: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

func (f *follower) wakeFollower() {
	select {
	case f.grown <- struct{}{}:
	default:
	}
}

func (f *follower) close() error {
	var first error
	for _, file := range []writable{f.tree.file, f.notes} {
		if file == nil {
			continue
		}
		if err := file.Close(); first == nil {
			first = err
		}
	}
	return first
}

// runFollower runs in the follower's goroutine.
func (l *FileLog) runFollower() {
	f := &l.follower
	defer close(f.done)
	for {
		select {
		case <-f.stop:
			return
		case <-f.grown:
		}
		if safego.Try(l.advance) != nil {
			f.wakeFollower() // again, after a pause
		}
		select {
		case <-f.stop:
			return
		case <-time.After(l.options.CheckpointEvery):
		}
	}
}

// stopFollowing ends the goroutine and covers what is not covered yet. The
// writer has ended.
func (l *FileLog) stopFollowing() error {
	close(l.follower.stop)
	<-l.follower.done
	return safego.Try(l.advance)
}

// advance brings the tree up to the last durable record and signs.
func (l *FileLog) advance() error {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure = safego.Try(l.catchUp); f.failure == nil {
		f.failure = l.installLate()
	}
	switch {
	case f.failure != nil:
	case f.tree.size > f.last.Size:
		f.failure = l.signCheckpoint(checkpoint.Checkpoint{}, f.key)
	case len(f.tree.buffer) > 0: // it was made again, and no record has come since
		f.failure = f.tree.flushLeaves()
	}
	if f.failure != nil {
		f.failure = fault.Wrap(fault.ErrUnavailable, f.failure, "the audit log's records are durable, but no checkpoint covers the last ones yet")
	}
	return f.failure
}

// catchUp adds all durable records to the tree. The caller holds the
// follower's lock.
func (l *FileLog) catchUp() error {
	l.mu.Lock()
	segments, next := slices.Clone(l.bounds), l.next
	l.mu.Unlock()
	f := &l.follower
	for i, s := range segments {
		end := next
		if i+1 < len(segments) {
			end = min(end, segments[i+1].first)
		}
		if end <= uint64(f.tree.size) {
			continue
		}
		if err := f.followSegment(l.dir, s, end); err != nil {
			return err
		}
	}
	return nil
}

// followSegment adds a segment's records from the tree's size up to end.
func (f *follower) followSegment(dir string, s segment, end uint64) error {
	if s.form != plain {
		return f.followLeaves(dir, s, end)
	}
	file, err := os.Open(filepath.Join(dir, s.fileName()))
	if err != nil {
		return err
	}
	defer file.Close()
	skip := uint64(f.tree.size) - s.first
	if f.at.first != s.first || f.at.offset == 0 {
		f.at = position{first: s.first}
	} else {
		skip = 0
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(file, f.at.offset, s.size-f.at.offset), MaxRecord)
	for uint64(f.tree.size) < end {
		text, err := lines.ReadSlice('\n')
		if err != nil {
			return readFault(err, uint64(f.tree.size))
		}
		if skip == 0 {
			if seq, ok := seqOf(text); !ok || seq != uint64(f.tree.size) {
				return readFault(io.EOF, uint64(f.tree.size))
			}
			if err := f.tree.pushLeaf(leafOf(text)); err != nil {
				return err
			}
		} else {
			skip--
		}
		f.at.offset += int64(len(text))
	}
	return nil
}

// followLeaves adds records of which only the leaves' hashes need to be here.
func (f *follower) followLeaves(dir string, s segment, end uint64) error {
	file, err := os.Open(filepath.Join(dir, leavesName(s.first)))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(int64(uint64(f.tree.size)-s.first)*tlog.HashSize, io.SeekStart); err != nil {
		return err
	}
	leaves := bufio.NewReader(file)
	for uint64(f.tree.size) < end {
		var leaf tlog.Hash
		if _, err := io.ReadFull(leaves, leaf[:]); err != nil {
			return err
		}
		if err := f.tree.pushLeaf(leaf); err != nil {
			return err
		}
	}
	return nil
}

// signCheckpoint writes a checkpoint over the whole tree, made durable first. c brings
// what is special about it. The caller holds the follower's lock.
func (l *FileLog) signCheckpoint(c checkpoint.Checkpoint, keys ...checkpoint.Key) error {
	f := &l.follower
	if err := f.tree.flushLeaves(); err != nil {
		return err
	}
	c.Origin, c.Size, c.Root = f.key.Name(), f.tree.size, f.tree.rootHash()
	c.Time = l.options.Clock.Read().Now.UTC().Round(0)
	if c.Time.Before(f.last.Time) {
		c.Time = f.last.Time
	}
	text, err := c.Sign(keys...)
	if err != nil {
		return fmt.Errorf("sign the checkpoint: %w", err)
	}
	if f.torn {
		if err := uninterrupted(func() error { return f.notes.Truncate(f.notesSize) }); err != nil {
			return fmt.Errorf("write the checkpoint: %w", err)
		}
	}
	f.torn = true
	framed := append(slices.Clone(text), '\n')
	err = writeAll(f.notes, framed, f.notesSize)
	if err == nil {
		err = uninterrupted(f.notes.Datasync)
	}
	if err != nil {
		return fmt.Errorf("write the checkpoint: %w", err)
	}
	f.torn = false
	f.notesSize += int64(len(framed))
	f.last, f.lastNote = c, text
	return nil
}

// Checkpoint is the newest checkpoint and its note; the note is nil if there is
// none yet.
func (l *FileLog) Checkpoint() (checkpoint.Checkpoint, []byte) {
	l.follower.mu.Lock()
	defer l.follower.mu.Unlock()
	return l.follower.last, slices.Clone(l.follower.lastNote)
}

// Lagging says why the last records are not covered by a checkpoint, nil if
// they are or will be within the time between two.
func (l *FileLog) Lagging() error {
	l.follower.mu.Lock()
	defer l.follower.mu.Unlock()
	return l.follower.failure
}
