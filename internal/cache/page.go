package cache

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxPages bounds how many pages are kept over a restart.
const maxPages = 20_000

// Page is an upstream's index page.
type Page struct {
	URL         string    `json:"url"` // where it came from, after redirects
	ContentType string    `json:"content_type"`
	ETag        string    `json:"etag,omitempty"`
	Fetched     time.Time `json:"fetched"` // or last confirmed by the upstream
	Body        []byte    `json:"-"`
}

// PageKey names a page.
type PageKey struct {
	Ecosystem string `json:"ecosystem"`
	Upstream  string `json:"upstream"` // the index's URL
	Project   string `json:"project"`  // canonical
}

type pageHeader struct {
	Key    PageKey `json:"key"`
	Page   Page    `json:"page"`
	Size   int64   `json:"size"`
	Digest string  `json:"digest"` // of the body
}

func (s *Store) pagePath(k PageKey) string {
	sum := sha256.Sum256([]byte(k.Ecosystem + "\x00" + k.Upstream + "\x00" + k.Project))
	return filepath.Join(s.dir, dirPages, hex.EncodeToString(sum[:]))
}

// PutPage keeps a page. It is atomic but not durable: a page lost by a crash
// is fetched again.
func (s *Store) PutPage(k PageKey, p Page) error {
	if err := s.space(int64(len(p.Body))); err != nil {
		return err
	}
	sum := sha256.Sum256(p.Body)
	header, err := json.Marshal(pageHeader{Key: k, Page: p, Size: int64(len(p.Body)), Digest: "sha256:" + hex.EncodeToString(sum[:])})
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the page's header can't be written")
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the page can't be packed")
	}
	_, err = z.Write(p.Body)
	if err = errors.Join(err, z.Close()); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the page can't be packed")
	}
	temp, err := s.writeTemp("page-", false, append(header, '\n'), packed.Bytes())
	if err != nil {
		return err
	}
	if err := os.Rename(temp, s.pagePath(k)); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return nil
}

// GetPage gives a kept page; fault.ErrNotFound if there is none, or none that
// is whole.
func (s *Store) GetPage(k PageKey) (Page, error) {
	missing := fault.New(fault.ErrNotFound, "the page is not in the cache")
	data, err := os.ReadFile(s.pagePath(k))
	if errors.Is(err, fs.ErrNotExist) {
		return Page{}, missing
	}
	if err != nil {
		return Page{}, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	head, packed, ok := bytes.Cut(data, []byte{'\n'})
	var h pageHeader
	if !ok || json.Unmarshal(head, &h) != nil || h.Key != k {
		return Page{}, missing
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Page{}, missing
	}
	body, err := io.ReadAll(io.LimitReader(z, h.Size+1))
	sum := sha256.Sum256(body)
	if err != nil || "sha256:"+hex.EncodeToString(sum[:]) != h.Digest {
		return Page{}, missing
	}
	h.Page.Body = body
	return h.Page, nil
}

// prunePages keeps the most recent pages.
func (s *Store) prunePages(most int) error {
	pages, err := os.ReadDir(filepath.Join(s.dir, dirPages))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be read")
	}
	if len(pages) <= most {
		return nil
	}
	when := make(map[string]time.Time, len(pages))
	for _, p := range pages {
		if info, err := p.Info(); err == nil {
			when[p.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(pages, func(a, b fs.DirEntry) int { return when[a.Name()].Compare(when[b.Name()]) })
	for _, p := range pages[:len(pages)-most] {
		if err := os.Remove(filepath.Join(s.dir, dirPages, p.Name())); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "an old page can't be removed from the cache")
		}
	}
	return nil
}
