package advisory

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// limits bound what an import reads.
type limits struct {
	record  int64 // bytes of one record
	records int
	total   int64 // bytes of all records, unpacked
	list    int64 // bytes of a popularity list
	table   int   // bytes of what is kept
}

func defaultLimits() limits {
	return limits{record: 4 << 20, records: 5_000_000, total: 32 << 30, list: 64 << 20, table: maxTable}
}

// recordFile is one file that may be a record, or the reason why it can't be read.
type recordFile struct {
	name      string // as in the directory or archive
	data      []byte // valid until the next one
	err       error
	withdrawn bool // it lies in a folder of that name
	percent   int  // of the whole, read so far; 0: not known
}

// recordReader walks over the *.json files of a directory or a zip, or takes one
// JSON file.
type recordReader struct {
	limits limits
	visit  func(recordFile) error // its error ends the reading
	buf    bytes.Buffer
	seen   int
	total  int64
	single bool // it took one JSON file
}

func (r *recordReader) readPath(ctx context.Context, path string, f *os.File, info fs.FileInfo) error {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fault.Wrap(fault.ErrInvalid, err, "%s can't be read", path)
	}
	if isZip(head[:n]) {
		return r.archive(ctx, path, f, info.Size())
	}
	r.single = true
	return r.readOne(recordFile{name: filepath.Base(path)}, info.Size(), func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(f, 0, info.Size())), nil
	})
}

func isZip(head []byte) bool { return string(head) == "PK\x03\x04" || string(head) == "PK\x05\x06" }

func isRecordName(name string) bool { return strings.HasSuffix(name, ".json") }

// inWithdrawn reports whether a slash-separated path has a folder "withdrawn".
func inWithdrawn(path string) bool { return strings.Contains("/"+path, "/withdrawn/") }

// directory takes the records below a directory, by its descriptor.
func (r *recordReader) directory(ctx context.Context, dir *hostpath.Path) error {
	root, err := dir.Root()
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the directory %s can't be read", dir.Name)
	}
	defer func() { _ = root.Close() }()
	err = treewalk.Walk(ctx, dir, ".", recordBounds(), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "the directory %s can't be read whole", dir.Name)
		}
		if d.IsDir() || !isRecordName(name) && !leadsToDirectory(root, name, d) {
			return nil
		}
		size := int64(0)
		if info, err := d.Info(); err == nil {
			size = info.Size()
		}
		file := recordFile{name: filepath.FromSlash(name), withdrawn: inWithdrawn(name)}
		return r.readOne(file, size, func() (io.ReadCloser, error) { return openBelow(root, name) })
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return fault.Invalid("the directory %s %s; name one that has the records alone", dir.Name, bound.Has)
	}
	return err
}

// recordBounds are of a directory of records, of which the largest databases have some 500,000.
func recordBounds() treewalk.Bounds {
	return treewalk.Bounds{Entries: 10_000_000, Depth: 200, Names: 2 << 30}
}

// leadsToDirectory reports a link to a directory, or out of this one, where there may be one: it is
// not followed, and what lies there must not be missed without a word.
func leadsToDirectory(root *os.Root, name string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := root.Stat(name)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir()
}

// openBelow opens a file of a directory that is no link, no pipe and no device.
func openBelow(root *os.Root, name string) (*os.File, error) {
	at, err := root.Lstat(name)
	if err == nil && !at.Mode().IsRegular() {
		err = errNoRegular
	}
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(at, info) { // a link took its place
		err = errNoRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var errNoRegular = errors.New("it is no regular file")

// openRegular opens a file of the database that is no link, no pipe and no device.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (r *recordReader) archive(ctx context.Context, path string, f io.ReaderAt, size int64) error {
	if n := zipMembers(f, size); n > uint64(r.limits.records) {
		return fault.Invalid("%s has %d members, more than %d", path, n, r.limits.records)
	}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "%s is no whole zip archive", path)
	}
	for i, m := range z.File {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if m.Mode().IsDir() || !isRecordName(m.Name) {
			continue
		}
		file := recordFile{name: m.Name, withdrawn: inWithdrawn(m.Name), percent: 100 * (i + 1) / len(z.File)}
		size := int64(min(m.UncompressedSize64, 1<<62))
		if err := r.readOne(file, size, m.Open); err != nil {
			return err
		}
	}
	return nil
}

// zipMembers is the number of members that the archive's end says it has: the
// directory is read into memory, so it is looked at first. 0 if there is no end,
// which the reader of archives then says.
func zipMembers(f io.ReaderAt, size int64) uint64 {
	const endSize, locatorSize, end64Size = 22, 20, 56
	tail := make([]byte, min(size, 1<<16+endSize+locatorSize))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || at+endSize > len(tail) {
		return 0
	}
	n := uint64(binary.LittleEndian.Uint16(tail[at+10:]))
	if at < locatorSize || string(tail[at-locatorSize:at-locatorSize+4]) != "PK\x06\x07" {
		return n
	}
	end64 := make([]byte, end64Size)
	where := binary.LittleEndian.Uint64(tail[at-locatorSize+8:])
	if where > uint64(size) {
		return n
	}
	if _, err := f.ReadAt(end64, int64(where)); err != nil {
		return n
	}
	return max(n, binary.LittleEndian.Uint64(end64[32:]))
}

// readOne reads one file within the limits and hands it on.
func (r *recordReader) readOne(file recordFile, size int64, open func() (io.ReadCloser, error)) error {
	r.seen++
	if r.seen > r.limits.records {
		return fault.Invalid("there are more than %d records", r.limits.records)
	}
	if file.withdrawn {
		return r.visit(file)
	}
	if size > r.limits.record {
		file.err = tooLarge(r.limits.record)
		return r.visit(file)
	}
	file.data, file.err = r.readBytes(open)
	r.total += int64(len(file.data))
	if r.total > r.limits.total {
		return fault.Invalid("the records are larger than %d MiB together", r.limits.total>>20)
	}
	return r.visit(file)
}

func tooLarge(most int64) error { return fault.Invalid("it is larger than %d bytes", most) }

func (r *recordReader) readBytes(open func() (io.ReadCloser, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.buf.Reset()
	if _, err := r.buf.ReadFrom(io.LimitReader(f, r.limits.record+1)); err != nil {
		return nil, err
	}
	if int64(r.buf.Len()) > r.limits.record {
		return nil, tooLarge(r.limits.record)
	}
	return r.buf.Bytes(), nil
}
