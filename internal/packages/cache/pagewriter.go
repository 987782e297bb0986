package cache

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// PageWriter takes a page's rows. Nobody sees them before Commit.
type PageWriter struct {
	store *Store
	rows  *Spool
}

// CreatePage begins a page. Close it, also after Commit.
func (s *Store) CreatePage() *PageWriter { return &PageWriter{store: s, rows: s.Spool()} }

// Append writes p and says where in the rows it begins.
func (w *PageWriter) Append(p []byte) (offset int64, err error) {
	offset = w.rows.Size()
	_, err = w.rows.Write(p)
	return offset, err
}

// Commit puts the page in its place, with what index writes beside the rows. It
// is atomic but not durable: a page lost by a crash is fetched again. After an
// error the rows may still be had by Memory.
func (w *PageWriter) Commit(k PageKey, p Page, index func(io.Writer) error) (*Rows, error) {
	packed := w.store.Spool()
	defer packed.Close()
	if err := packPage(packed, index); err != nil {
		return nil, err
	}
	r := &Rows{store: w.store, name: k.fileName(), size: w.rows.Size(), digest: w.rows.Digest()}
	tail, err := tailOf(pageHeader{Key: k, Page: p, RowsSize: r.size, RowsDigest: r.digest, IndexSize: packed.Size(), IndexDigest: packed.Digest()})
	if err != nil {
		return nil, err
	}
	if err := w.publishPage(k, p, packed, tail); err != nil {
		return nil, err
	}
	return r, nil
}

func packPage(to io.Writer, index func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the page can't be packed")
	}
	if err := index(z); err != nil {
		return err
	}
	return z.Close()
}

func tailOf(h pageHeader) ([]byte, error) {
	header, err := json.Marshal(h)
	if err != nil || len(header) > maxHeader {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the page's header can't be written")
	}
	sum := sha256.Sum256(header)
	tail := append(header, sum[:]...)
	tail = binary.BigEndian.AppendUint32(tail, uint32(len(header))) // at most maxHeader
	return append(tail, pageMagic...), nil
}

// publishPage writes the rest behind the rows and gives the file its name.
func (w *PageWriter) publishPage(k PageKey, p Page, packed *Spool, tail []byte) error {
	if err := w.store.checkSpace(w.rows.Size() + packed.Size()); err != nil {
		return err
	}
	if err := w.rows.spillToFile(); err != nil {
		return err
	}
	index, err := packed.Reader()
	if err != nil {
		return err
	}
	f := w.rows.file
	if _, err = f.Seek(0, io.SeekEnd); err == nil {
		_, err = io.Copy(f, io.MultiReader(index, bytes.NewReader(tail)))
	}
	if err == nil {
		err = os.Chtimes(f.Name(), p.Fetched, p.Fetched)
	}
	if err == nil {
		err = os.Rename(f.Name(), w.store.pagePath(k.fileName()))
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	now, ok := stampOf(f)
	if !ok {
		return fault.New(fault.ErrUnavailable, "the page that was written to the cache is not what it should be")
	}
	w.store.keepPage(k.fileName(), w.rows.Digest(), now)
	return nil
}

// Memory gives the rows from memory if they are few, for when Commit failed: a
// full disk must not stop what can go on without.
func (w *PageWriter) Memory() (*Rows, error) {
	size := w.rows.Size()
	if size > spoolMemory {
		return nil, fault.New(fault.ErrUnavailable, "the cache can't be written, and the page is too large to go on without")
	}
	from, err := w.rows.Reader()
	if err != nil {
		return nil, err
	}
	r := &Rows{size: size, memory: make([]byte, size)}
	if _, err := io.ReadFull(from, r.memory); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	return r, nil
}

// Close throws away what was not committed.
func (w *PageWriter) Close() { w.rows.Close() }
