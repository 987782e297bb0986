package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// openTree loads the key, finds the last checkpoint, and brings the tree in
// step with the segments: kept where it proves itself, made again where it is lost
// or behind, an error where it disagrees.
func (l *FileLog) openTree() error {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	tail, err := readTail(filepath.Join(l.dir, checkpointsName))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's checkpoints can't be read")
	}
	if err := l.openKey(tail.size > 0); err != nil {
		return err
	}
	if err := f.takeLast(tail); err != nil {
		return err
	}
	if err := l.finishRotation(); err != nil {
		return err
	}
	if f.notes, err = l.options.disk.openFile(filepath.Join(l.dir, checkpointsName)); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's checkpoints can't be opened for writing")
	}
	if f.tree.file, err = l.options.disk.openFile(filepath.Join(l.dir, treeName)); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be opened for writing")
	}
	if err := uninterrupted(func() error { return l.options.disk.syncDir(l.dir) }); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's directory %s can't be synced", l.dir)
	}
	if err := l.reconcile(); err != nil {
		return err
	}
	if len(f.tree.buffer) > 0 || l.writer.owed != nil {
		f.wakeFollower()
	}
	return nil
}

// notesTail is the end of the checkpoints' file.
type notesTail struct {
	size  int64    // of the file
	notes [][]byte // the last whole ones
	start int64    // where the first of them begins
}

const tailBytes = 16 * checkpoint.MaxNote

func readTail(path string) (notesTail, error) {
	file, size, err := openFlat(path)
	if file == nil {
		return notesTail{}, err
	}
	defer file.Close()
	start := max(0, size-tailBytes)
	text := make([]byte, size-start)
	if _, err := file.ReadAt(text, start); err != nil && !errors.Is(err, io.EOF) {
		return notesTail{}, err
	}
	for start > 0 { // to the beginning of a note: after an empty line, and no signature
		_, after, ok := bytes.Cut(text, []byte("\n\n"))
		start += int64(len(text) - len(after))
		text = after
		if !ok || !bytes.HasPrefix(text, []byte("— ")) {
			break
		}
	}
	notes, _ := checkpoint.Split(text)
	return notesTail{size: size, notes: notes, start: start}, nil
}

// takeLast takes the last checkpoint that proves itself. The rest behind it must be no more than a
// crash can tear, and is cut off before the next is written.
func (f *follower) takeLast(tail notesTail) error {
	ring, err := checkpoint.NewKeyring(strings.Join(f.keys, "\n"))
	if err != nil {
		return err
	}
	ends := make([]int64, len(tail.notes))
	at := tail.start
	for i, n := range tail.notes {
		at += int64(len(n)) + 1
		ends[i] = at
	}
	f.torn = true
	for i, n := range slices.Backward(tail.notes) {
		c, err := ring.Open(n)
		if err == nil {
			f.last, f.lastNote, f.notesSize = c, bytes.Clone(n), ends[i]
			break
		}
		if tail.size-ends[i] > checkpoint.MaxNote {
			break
		}
	}
	if tail.size-f.notesSize > checkpoint.MaxNote {
		return fault.Invalid("the audit log is damaged: its keys did not sign the end of its file of checkpoints; restore the file from a copy")
	}
	if f.lastNote != nil && f.last.Origin != f.key.Name() {
		return fault.Invalid("the audit log's key is that of %s, and its checkpoints are those of %s; put the right key back", f.key.Name(), f.last.Origin)
	}
	return nil
}

// reconcile decides what of the tree's file stands, and catches up.
func (l *FileLog) reconcile() error {
	f := &l.follower
	if uint64(f.last.Size) > l.next {
		return fault.Invalid("the audit log in %s has lost records: a checkpoint covers %d, and there are %d; put it back from a copy, or move the directory away to begin a new log (cofferdam serve --accept-rollback)",
			l.dir, f.last.Size, l.next)
	}
	flat, size, err := openFlat(filepath.Join(l.dir, treeName))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be read")
	}
	if flat != nil {
		defer flat.Close()
	}
	if f.last.Size > 0 && size >= treeBytes(f.last.Size) {
		if f.tree.frontier, err = loadFrontier(flat, f.last.Size); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be read")
		}
		if f.tree.rootHash() != f.last.Root {
			return fault.Invalid("the audit log's file %q is not what its last checkpoint covers; move it away and it is made again from the records, if they are right", treeName)
		}
		if err := l.compareLast(flat); err != nil {
			return err
		}
	}
	f.tree.flat = treeBytes(f.tree.size)
	if err := uninterrupted(func() error { return f.tree.file.Truncate(f.tree.flat) }); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be repaired")
	}
	if f.tree.size == 0 && f.last.Size > 0 {
		return l.rebuild()
	}
	if err := l.catchUp(); err != nil {
		return treeFault(err)
	}
	return nil
}

// treeFault gives a category to an error that has none.
func treeFault(err error) error {
	if errors.Is(err, fault.ErrInvalid) || errors.Is(err, fault.ErrUnavailable) {
		return err
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be made")
}

// rebuild makes the tree from the segments alone and compares it with the last
// checkpoint.
func (l *FileLog) rebuild() error {
	f := &l.follower
	l.mu.Lock()
	next := l.next
	l.next = uint64(f.last.Size) // as far as the checkpoint, to begin with
	l.mu.Unlock()
	err := l.catchUp()
	l.mu.Lock()
	l.next = next
	l.mu.Unlock()
	if err != nil {
		return treeFault(err)
	}
	if f.tree.rootHash() != f.last.Root {
		return fault.Invalid("the audit log's records are not what its last checkpoint covers: they were changed; `cofferdam audit verify --dir %s` says which, put them back from a copy", l.dir)
	}
	if err := l.catchUp(); err != nil {
		return treeFault(err)
	}
	return nil
}

// compareLast compares the records of the last segment, which recovery has just
// read, with their leaves. All others are Verify's to compare.
func (l *FileLog) compareLast(flat io.ReaderAt) error {
	f := &l.follower
	s := l.bounds[len(l.bounds)-1]
	if s.form != plain {
		return nil
	}
	lines, err := openLines(l.dir, s)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	defer lines.close()
	for text, err := range eachLine(lines) {
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
		}
		seq, _ := seqOf(text) // recovery has looked at it
		if seq >= uint64(f.last.Size) {
			break
		}
		leaf, err := storedHash(flat, tlog.StoredHashIndex(0, int64(seq)))
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the audit log's tree can't be read")
		}
		if leaf != leafOf(text) {
			return fault.Invalid("the audit log is damaged: record %d in %s is not what its last checkpoint covers; put it back from a copy", seq, s.fileName())
		}
	}
	return nil
}

// writeKeys writes the public keys' file, if it says something else.
func (l *FileLog) writeKeys() error {
	text := strings.Join(l.follower.keys, "\n") + "\n"
	path := filepath.Join(l.dir, PublicKeysName)
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return nil
	}
	err := replace(l.options.disk, path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's public keys can't be written")
	}
	return nil
}
