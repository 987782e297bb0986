package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// VerifyOptions say what to trust.
type VerifyOptions struct {
	// Keys are the public keys that the auditor trusts; the zero value trusts those
	// that lie with the log, and the verdict says so.
	Keys *checkpoint.Keyring
	// Kept is a file of checkpoints that the auditor kept; nil if there is none.
	Kept []byte
	// Progress, if not nil, is told how many bytes of all are read.
	Progress func(read, all int64)
}

// Verify reads a log's files and compares them with its checkpoints. It needs no
// daemon and changes nothing; with a daemon at work it judges what is whole. An
// error means that it could not be done at all; what it finds wrong is in the
// Verdict.
func Verify(ctx context.Context, dir string, options VerifyOptions) (Verdict, error) {
	v := &verifier{dir: dir, options: options, begun: time.Now()}
	return v.verify(ctx)
}

func (v *verifier) verify(ctx context.Context) (Verdict, error) {
	// The checkpoints first: what they cover is in the segments that are read then.
	if err := v.readCheckpoints(); err != nil {
		return v.verdict, err
	}
	segments, err := listSegments(v.dir)
	if errors.Is(err, fault.ErrInvalid) {
		v.problem(nil, "", 0, "%s", err)
		return v.conclude(), nil
	}
	if err != nil {
		return v.verdict, err
	}
	v.segments = segments
	if len(segments) == 0 && len(v.marks) == 0 {
		return v.verdict, fault.New(fault.ErrNotFound, "there is no audit log in %s", v.dir)
	}
	if err := v.trustTree(); err != nil {
		return v.verdict, err
	}
	if err := v.readSegments(ctx); err != nil {
		return v.verdict, err
	}
	v.judgeErasures()
	if len(v.marks) == 0 && v.tree.size > 0 {
		v.problem(nil, checkpointsName, 0, "no log checkpoint that your key signed covers any of the %d records: nothing is proved", v.tree.size)
	}
	return v.conclude(), nil
}

// verifier is one verification.
type verifier struct {
	dir      string
	options  VerifyOptions
	begun    time.Time
	verdict  Verdict
	segments []segment
	ring     checkpoint.Keyring
	// signer is the key that the last rotation handed over to; nil before the first.
	// replaced is how many records there were then.
	signer   *checkpoint.Keyring
	replaced int64

	// marks are the sizes at which the root is known, ascending: the log's own
	// checkpoints and the auditor's.
	marks []mark
	met   int // of marks, how many have been compared
	// proven is the number of leaves in the tree's file that are as a checkpoint
	// has them; leaves reads them along with the records.
	proven int64
	leaves *leafReader

	tree    frontier
	read    int64
	all     int64
	scratch []byte

	kept *bufio.Writer // takes each record's hash, in order; nil: nobody wants them

	tombstones []tombstone
	shared     map[string]*sharedFact // of the segment that is read, by commitment
	erasures   []seqRange
	away       uint64 // the record after the last one that is elsewhere
	stopped    bool   // at a bad record; nothing behind it can be judged
}

// mark is a root that must come out.
type mark struct {
	checkpoint.Checkpoint
	kept bool   // the auditor's
	at   int64  // offset in its file
	file string // "" of the auditor's
}

// tombstone is where personal data were.
type tombstone struct {
	personalEntry

	file    string
	records int // that it was of
}

// sharedFact is what is known of an entry that records of a segment share.
type sharedFact struct {
	tombstone int // its place among the tombstones; -1: it is none
}

func (v *verifier) problem(record *uint64, file string, offset int64, format string, args ...any) {
	v.verdict.Problems = append(v.verdict.Problems, Problem{Record: record, File: file, Offset: offset, What: fmt.Sprintf(format, args...)})
}

// reportBad names a bad record, and ends the reading.
func (v *verifier) reportBad(record uint64, file string, offset int64, format string, args ...any) {
	v.stopped = true
	v.problem(&record, file, offset, format, args...)
}

// readCheckpoints reads the log's checkpoints and the auditor's, and checks
// their signatures.
func (v *verifier) readCheckpoints() error {
	text, err := os.ReadFile(filepath.Join(v.dir, checkpointsName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "the log's checkpoints can't be read")
	}
	notes, rest := checkpoint.Split(text)
	if err := v.chooseKeys(notes); err != nil {
		return err
	}
	at := int64(0)
	for _, n := range notes {
		v.takeNote(n, at)
		at += int64(len(n)) + 1
	}
	if len(rest) > 0 {
		v.verdict.Notes = append(v.verdict.Notes, fmt.Sprintf("the last %d bytes of %s are no whole checkpoint: a crash, or a daemon that is writing one", len(rest), checkpointsName))
	}
	v.verdict.Checkpoints = len(v.marks)
	if len(v.marks) > 0 {
		last := v.marks[len(v.marks)-1]
		v.verdict.Origin, v.verdict.Last = last.Origin, last.milestone()
	}
	return v.takeKept()
}

func (m mark) milestone() Milestone {
	return Milestone{Size: uint64(m.Size), Root: base64.StdEncoding.EncodeToString(m.Root[:]), Time: m.Time}
}

// chooseKeys takes the keys that were given, or those of the log, and learns of
// the ones that they vouch for.
func (v *verifier) chooseKeys(notes [][]byte) error {
	v.verdict.KeyFrom = "given"
	if v.options.Keys != nil {
		v.ring = *v.options.Keys
	} else {
		v.verdict.KeyFrom = "log"
		keys, err := readPublicKeys(v.dir)
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if v.ring, err = checkpoint.NewKeyring(strings.Join(keys, "\n")); err != nil {
				return err
			}
		}
	}
	var rotations [][]byte
	for _, n := range notes {
		if bytes.Contains(n, []byte("\nkey-rotation ")) {
			rotations = append(rotations, n)
		}
	}
	for learnt := true; learnt; {
		learnt = false
		for _, n := range rotations {
			learnt = v.ring.Learn(n) || learnt
		}
	}
	v.verdict.Keys = v.ring.Keys()
	return nil
}

func (v *verifier) takeNote(n []byte, at int64) {
	c, err := v.ring.Open(n)
	if err != nil {
		v.problem(nil, checkpointsName, at, "%s", err)
		return
	}
	if i := len(v.marks) - 1; i >= 0 {
		switch before := v.marks[i]; {
		case c.Origin != before.Origin:
			v.problem(nil, checkpointsName, at, "a checkpoint is of the log %.80q, and the ones before it are of %.80q", c.Origin, before.Origin)
			return
		case c.Size < before.Size:
			v.problem(nil, checkpointsName, at, "a checkpoint covers %d records, and the one before it %d: they are out of order", c.Size, before.Size)
			return
		}
	}
	if v.outdated(n) {
		v.problem(nil, checkpointsName, at, "a checkpoint of %d records is signed by a key that had been replaced when there were %d", c.Size, v.replaced)
		return
	}
	v.marks = append(v.marks, mark{Checkpoint: c, at: at, file: checkpointsName})
	if c.NewKey != "" {
		if ring, err := checkpoint.NewKeyring(c.NewKey); err == nil {
			v.signer, v.replaced = &ring, c.Size
		}
	}
}

// outdated tells whether a note lacks the signature of the key in force.
func (v *verifier) outdated(n []byte) bool {
	if v.signer == nil {
		return false
	}
	_, err := v.signer.Open(n)
	return err != nil
}

// takeKept adds the auditor's own checkpoints.
func (v *verifier) takeKept() error {
	if v.options.Kept == nil {
		return nil
	}
	// The empty line after the last may be missing.
	notes, rest := checkpoint.Split(append(slices.Clone(v.options.Kept), '\n'))
	if len(notes) == 0 {
		return fault.Invalid("the file of kept checkpoints has none in it")
	}
	if rest = bytes.TrimSpace(rest); len(rest) > 0 {
		return fault.Invalid("the end of the file of kept checkpoints is no whole checkpoint, and can't be compared: %.80q", rest)
	}
	for _, n := range notes {
		c, err := v.ring.Open(n)
		switch {
		case errors.Is(err, fault.ErrInvalid):
			return err
		case err != nil:
			v.problem(nil, "", 0, "the checkpoint that you kept can't be compared: %s", err)
			continue
		case v.verdict.Origin != "" && c.Origin != v.verdict.Origin:
			v.problem(nil, "", 0, "the checkpoint that you kept is of the log %.80q, and this log is %.80q", c.Origin, v.verdict.Origin)
			continue
		case c.Size > v.replaced && v.outdated(n):
			v.problem(nil, "", 0, "the checkpoint of %d records that you kept is signed by a key that had been replaced when there were %d", c.Size, v.replaced)
			continue
		}
		v.marks = append(v.marks, mark{Checkpoint: c, kept: true})
	}
	slices.SortStableFunc(v.marks, func(a, b mark) int { return int(a.Size - b.Size) })
	return nil
}

// trustTree finds how much of the tree's file a checkpoint covers as it is: its
// leaves say then which record is a bad one. It also compares its inner hashes.
func (v *verifier) trustTree() error {
	flat, size, err := openFlat(filepath.Join(v.dir, treeName))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the log's tree can't be read")
	}
	if flat == nil {
		v.verdict.Notes = append(v.verdict.Notes, "the file of the tree is not here; it was not needed")
		return nil
	}
	defer flat.Close()
	var f frontier
	stored := bufio.NewReaderSize(flat, 1<<20)
	for _, m := range v.marks {
		if m.kept || treeBytes(m.Size) > size {
			continue
		}
		for f.size < m.Size {
			ok, err := f.matchesStored(stored, &v.scratch)
			if err != nil {
				return fault.Wrap(fault.ErrUnavailable, err, "the log's tree can't be read")
			}
			if !ok {
				v.problem(nil, treeName, treeBytes(f.size-1), "the tree's hashes for record %d do not belong together; move the file away, and the daemon makes it again", f.size-1)
				return nil
			}
		}
		if f.rootHash() != m.Root {
			v.problem(nil, treeName, 0, "the tree's file is not what the checkpoint of %d records covers; if the records are sound, move it away and the daemon makes it again", m.Size)
			return nil
		}
		v.proven = m.Size
	}
	return nil
}

// matchesStored adds the next leaf that is stored, and reports whether what follows it
// are the hashes that it completes.
func (f *frontier) matchesStored(stored io.Reader, scratch *[]byte) (bool, error) {
	var leaf tlog.Hash
	if _, err := io.ReadFull(stored, leaf[:]); err != nil {
		return false, err
	}
	*scratch = f.addLeaf((*scratch)[:0], leaf)
	parents := (*scratch)[tlog.HashSize:]
	have := make([]byte, len(parents))
	if _, err := io.ReadFull(stored, have); err != nil {
		return false, err
	}
	return bytes.Equal(have, parents), nil
}

// leafReader reads the leaves of a tree's file in order.
type leafReader struct {
	file   *os.File
	stored *bufio.Reader
	next   int64
}

func (r *leafReader) readLeaf() (leaf tlog.Hash, err error) {
	if _, err := io.ReadFull(r.stored, leaf[:]); err != nil {
		return leaf, err
	}
	r.next++
	_, err = r.stored.Discard(int(tlog.StoredHashIndex(0, r.next)-tlog.StoredHashIndex(0, r.next-1)-1) * tlog.HashSize)
	if errors.Is(err, io.EOF) {
		err = nil // the last leaf's parents are not all there
	}
	return leaf, err
}

// conclude sums up.
func (v *verifier) conclude() Verdict {
	d := &v.verdict
	if p, err := ReadPublished(v.dir); err == nil {
		d.Published = &p
	}
	d.Sound = len(d.Problems) == 0
	d.CannotExclude = v.proofLimits()
	return *d
}

// proofLimits states what the proof does not reach.
func (v *verifier) proofLimits() []string {
	d := &v.verdict
	var limits []string
	say := func(format string, args ...any) { limits = append(limits, fmt.Sprintf(format, args...)) }
	if tail := d.Records - min(d.Records, d.Covered); tail > 0 {
		say("The last %d records are not covered by a checkpoint yet: they could have been changed or cut off.", tail)
	}
	switch {
	case len(d.Kept) == 0:
		say("Whoever can write the log's files could have cut off its end with the checkpoints of it, and put other records there for a daemon to sign; whoever holds the private key could have written the whole log anew. Only a checkpoint that was kept elsewhere (--checkpoint) excludes that.")
	default:
		last := d.Kept[len(d.Kept)-1]
		say("Whoever can write the log's files, or holds the private key, could have cut off or rewritten what came after the %d records that your checkpoint covers.", last.Size)
	}
	if d.KeyFrom == "log" {
		say("The public key came with the log itself: whoever replaced the log could have replaced it, too. Give the key that you kept (--key).")
	}
	say("Nobody can miss a record that was never made: the log proves what was written, not that everything was.")
	if d.Published != nil && len(d.Published.Targets) > 0 {
		say("A file that lies with the log (%s) says what was published of it, and nobody signs that file: whoever can write the log's files can have written it. Ask the one to whom it was published.", PublishedName)
	}
	if d.Elsewhere > 0 {
		say("%d records are sealed and elsewhere: their hashes belong to this log; what they say was not read.", d.Elsewhere)
	}
	if d.Erased > 0 {
		say("The personal data of %d records were erased, as the log records; what they were can't be told.", d.Erased)
	}
	if d.ErasedUnproved > 0 {
		say("The personal data of %d records were erased, and it can't be told whether a record says so: it would be where was not read.", d.ErasedUnproved)
	}
	return limits
}
