package export

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// cursor is a small file's content, which says how far an output file is good and which record comes
// next.
type cursor struct {
	Version int    `json:"version"`
	Format  Format `json:"format"`
	Next    uint64 `json:"next"`           // the next record's number
	Offset  int64  `json:"offset"`         // the output's good bytes
	Last    string `json:"last,omitempty"` // the last record's fingerprint; "": none was written
}

const cursorVersion = 1

// Output is a file that records are written to. With a cursor it is gone on with
// after any end: Write keeps records back, Commit makes them durable and then
// moves the cursor, and the next Open cuts the file back to what the cursor
// says. So no record is lost and none is there twice. It is for one goroutine,
// and one process at a time has the file.
type Output struct {
	disk   exportDisk
	format Format
	path   string
	cursor string // "": there is none
	file   file
	at     cursor // as the cursor file has it
	ahead  cursor // with what is kept back
	buffer bytes.Buffer
}

// Open opens an output. Without a cursor ("") the file must not be there yet. The paths are
// absolute; links in the trees are not followed, which is a *hostpath.LinkError.
func Open(path, cursor string, format Format, trees []hostpath.Tree) (*Output, error) {
	return openOutput(osDisk{trees}, path, cursor, format)
}

func openOutput(d exportDisk, path, cursorPath string, format Format) (*Output, error) {
	o := &Output{disk: d, format: format, path: path, cursor: cursorPath}
	known, err := o.readCursor()
	if err != nil {
		return nil, err
	}
	if cursorPath == "" || !known {
		return o, o.beginFile()
	}
	return o, o.resume()
}

// readCursor reports whether there is a cursor, and reads it.
func (o *Output) readCursor() (bool, error) {
	if o.cursor == "" {
		return false, nil
	}
	data, err := o.disk.readFile(o.cursor)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(fault.ErrUnavailable, err, "the cursor can't be read")
	}
	if err := json.Unmarshal(data, &o.at); err != nil || o.at.Version != cursorVersion || o.at.Offset < 0 {
		return false, fault.Invalid("%s is not the cursor of an export; remove it and the output to begin anew", o.cursor)
	}
	if o.at.Format != o.format {
		return false, fault.Invalid("%s is the cursor of an export as %s, not %s", o.cursor, o.at.Format, o.format)
	}
	return true, nil
}

// beginFile makes a new file. With a cursor, one that is there may only have what
// came before the first commit.
func (o *Output) beginFile() error {
	f, err := o.disk.openFile(o.path, o.cursor == "")
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.ErrConflict, "%s is there already; remove it, or go on with it by a cursor", o.path)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the output can't be made")
	}
	o.file = f
	if err := o.lockFile(); err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size > 0 {
		return errors.Join(fault.New(fault.ErrConflict, "%s has something in it, and no cursor says what; remove it, or give its cursor", o.path), f.Close())
	}
	if err != nil {
		return errors.Join(fault.Wrap(fault.ErrUnavailable, err, "the output can't be read"), f.Close())
	}
	o.at = cursor{Version: cursorVersion, Format: o.format}
	o.ahead = o.at
	if o.cursor != "" { // from now on what is in the file is known
		if err := o.saveCursor(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	o.buffer.Write(Head(o.format))
	return nil
}

// resume goes on where the cursor stands.
func (o *Output) resume() error {
	f, err := o.disk.openFile(o.path, false)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the output can't be opened")
	}
	o.file, o.ahead = f, o.at
	if err := o.lockFile(); err != nil {
		return err
	}
	size, err := f.Size()
	switch {
	case err != nil:
		err = fault.Wrap(fault.ErrUnavailable, err, "the output can't be read")
	case size < o.at.Offset:
		err = fault.New(fault.ErrConflict, "%s has %d bytes, but its cursor %s says %d: a part of it is lost; remove both to begin anew", o.path, size, o.cursor, o.at.Offset)
	case size > o.at.Offset:
		if err = f.Truncate(o.at.Offset); err != nil {
			err = fault.Wrap(fault.ErrUnavailable, err, "the output can't be cut back to its last good record")
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if o.at.Offset == 0 {
		o.buffer.Write(Head(o.format))
	}
	return nil
}

func (o *Output) lockFile() error {
	if err := o.file.Lock(); err != nil {
		return errors.Join(fault.Wrap(fault.ErrConflict, err, "another export writes to %s", o.path), o.file.Close())
	}
	return nil
}

// Next is the record that comes next. A caller that goes on with a log asks for the record
// before, too, and gives it to Continues.
func (o *Output) Next() uint64 { return o.ahead.Next }

// Continues tells whether the output goes on with the log that has this record,
// the one before Next.
func (o *Output) Continues(before audit.Record) error {
	if o.ahead.Last == "" || before.Seq+1 != o.ahead.Next {
		return nil
	}
	if got := audit.Fingerprint(before); hex.EncodeToString(got[:]) != o.ahead.Last {
		return fault.New(fault.ErrConflict, "%s goes on with another log: its record %d is not this log's; remove the output and the cursor to begin anew", o.path, before.Seq)
	}
	return nil
}

// mostKept is how much is kept back before it is written, in bytes.
const mostKept = 1 << 20

// Write adds a record. It is durable after Commit.
func (o *Output) Write(r audit.Record) error {
	line, err := Line(o.format, r)
	if err != nil {
		return err
	}
	o.buffer.Write(line)
	last := audit.Fingerprint(r)
	o.ahead.Next, o.ahead.Last = r.Seq+1, hex.EncodeToString(last[:])
	if o.buffer.Len() >= mostKept {
		return o.Commit()
	}
	return nil
}

// Commit writes what was kept back, makes it durable, and moves the cursor.
// After an error nothing more can be written; Open goes on.
func (o *Output) Commit() error {
	if o.buffer.Len() == 0 {
		return nil
	}
	n, err := writeAll(o.file, o.buffer.Bytes(), o.at.Offset)
	if err == nil {
		err = o.file.Sync()
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the export to %s can't go on", o.path)
	}
	o.ahead.Offset = o.at.Offset + n
	o.at = o.ahead
	o.buffer.Reset()
	if o.cursor == "" {
		return nil
	}
	return o.saveCursor()
}

func writeAll(f file, data []byte, off int64) (written int64, err error) {
	for len(data) > 0 {
		n, err := f.WriteAt(data, off+written)
		written, data = written+int64(n), data[n:]
		if err != nil {
			return written, err
		}
		if n == 0 {
			return written, io.ErrShortWrite
		}
	}
	return written, nil
}

// saveCursor replaces the cursor file, whole and durably.
func (o *Output) saveCursor() error {
	data, err := json.Marshal(o.at)
	if err == nil {
		err = o.disk.replace(o.cursor, append(data, '\n'))
	}
	if err == nil {
		err = o.disk.syncDir(filepath.Dir(o.cursor))
	}
	if err == nil {
		err = o.disk.syncDir(filepath.Dir(o.path))
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the export's cursor %s can't be written", o.cursor)
	}
	return nil
}

// Close commits and closes.
func (o *Output) Close() error { return errors.Join(o.Commit(), o.file.Close()) }

// Abandon closes without a commit.
func (o *Output) Abandon() error { return o.file.Close() }
