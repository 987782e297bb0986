package cache

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A kept page is one file, so that it is replaced and lost as a whole:
//
//	rows     as they were appended
//	index    gzip
//	header   JSON
//	sha256 of the header, its length in four bytes, pageMagic
const (
	pageMagic  = "cdp2" // ends with the number of this layout; others are not read
	pageFooter = sha256.Size + 4 + len(pageMagic)
	maxHeader  = 64 << 10
)

// Page is an upstream's index page, as far as the cache knows it.
type Page struct {
	URL         string `json:"url"` // where it came from, after redirects
	ContentType string `json:"content_type"`
	ETag        string `json:"etag,omitempty"`
	Digest      string `json:"digest"` // of the upstream's bytes
	// Format is the caller's number for what it wrote as rows and index.
	Format  int       `json:"format"`
	Fetched time.Time `json:"-"` // or last confirmed by the upstream
	Rows    *Rows     `json:"-"`
}

// PageKey names a page.
type PageKey struct {
	Ecosystem string `json:"ecosystem"`
	Upstream  string `json:"upstream"` // the index's URL
	Project   string `json:"project"`  // canonical
}

type pageHeader struct {
	Key         PageKey `json:"key"`
	Page        Page    `json:"page"`
	RowsSize    int64   `json:"rows_size"`
	RowsDigest  string  `json:"rows_digest"`
	IndexSize   int64   `json:"index_size"` // packed
	IndexDigest string  `json:"index_digest"`
}

func (k PageKey) fileName() string {
	sum := sha256.Sum256([]byte(k.Ecosystem + "\x00" + k.Upstream + "\x00" + k.Project))
	return hex.EncodeToString(sum[:])
}

func (s *Store) pagePath(name string) string { return filepath.Join(s.dir, dirPages, name) }

// errNoPage is about any page that can't be used: it is fetched again.
var errNoPage = fault.New(fault.ErrNotFound, "the page is not in the cache")

// GetPage gives a kept page and has index read it. fault.ErrNotFound: there is
// none, or none that is whole; index may then have been called. The rows are
// verified when they are opened.
func (s *Store) GetPage(k PageKey, index func(io.Reader) error) (Page, error) {
	f, err := openPage(s.pagePath(k.fileName()))
	if err != nil {
		return Page{}, err
	}
	defer f.Close()
	now, ok := stampOf(f)
	if !ok {
		return Page{}, errNoPage
	}
	h, err := readHeader(f, now.size)
	if err != nil || h.Key != k {
		return Page{}, errNoPage
	}
	if err := readIndex(f, h, index); err != nil {
		return Page{}, err
	}
	s.usePage(k.fileName(), now.size)
	p := h.Page
	p.Fetched = time.Unix(now.mtime.Unix())
	p.Rows = &Rows{store: s, name: k.fileName(), size: h.RowsSize, digest: h.RowsDigest}
	return p, nil
}

func openPage(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoPage
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	return f, nil
}

// readHeader reads the end of a kept page's file.
func readHeader(f io.ReaderAt, size int64) (pageHeader, error) {
	footer := make([]byte, pageFooter)
	if size < int64(pageFooter) {
		return pageHeader{}, errNoPage
	}
	if _, err := f.ReadAt(footer, size-int64(pageFooter)); err != nil || string(footer[sha256.Size+4:]) != pageMagic {
		return pageHeader{}, errNoPage
	}
	length := int64(binary.BigEndian.Uint32(footer[sha256.Size:]))
	if length > min(maxHeader, size-int64(pageFooter)) {
		return pageHeader{}, errNoPage
	}
	data := make([]byte, length)
	if _, err := f.ReadAt(data, size-int64(pageFooter)-length); err != nil || sha256.Sum256(data) != [sha256.Size]byte(footer) {
		return pageHeader{}, errNoPage
	}
	var h pageHeader
	if err := json.Unmarshal(data, &h); err != nil || h.RowsSize < 0 || h.IndexSize < 0 || h.RowsSize+h.IndexSize+length+int64(pageFooter) != size {
		return pageHeader{}, errNoPage
	}
	return h, nil
}

// readIndex verifies the packed index before it is unpacked.
func readIndex(f io.ReaderAt, h pageHeader, index func(io.Reader) error) error {
	packed := io.NewSectionReader(f, h.RowsSize, h.IndexSize)
	if digest, err := digestOf(packed); err != nil || digest != h.IndexDigest {
		return errNoPage
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return errNoPage
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return errNoPage
	}
	if err := index(z); err != nil {
		return fault.Wrap(fault.ErrNotFound, err, "the page in the cache can't be read")
	}
	return nil
}

func digestOf(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// ConfirmPage keeps that the upstream confirmed a page. A page that is gone
// stays gone.
func (s *Store) ConfirmPage(k PageKey, when time.Time) error {
	s.usePage(k.fileName(), 0)
	// This changes the file's stamp, so its rows are hashed once more when they
	// are opened next.
	if err := os.Chtimes(s.pagePath(k.fileName()), when, when); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return nil
}
