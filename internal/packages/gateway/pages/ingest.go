package pages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// largePage is the size from which pages are read, and rendered, only a few at
// a time, so that many don't fill the memory together.
const largePage = 1 << 20

// takeSlot waits for a turn if size is that of a large page; release gives it back.
func takeSlot(ctx context.Context, heavy *fairqueue.Shares, size int64) (release func(), err error) {
	if size < largePage {
		return func() {}, nil
	}
	if _, release, err = heavy.Take(ctx); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the gateway is stopping")
	}
	return release, nil
}

// ingest reads an upstream's page, once and for good: from now on there are its
// rows and its index. have is what was kept before, or nil.
func (ps *Pages) ingest(ctx context.Context, s Source, project string, have *Page, got upstream.Page, raw *cache.Spool) (*Page, error) {
	release, err := takeSlot(ctx, ps.heavy, raw.Size())
	if err != nil {
		return nil, err
	}
	defer release()
	body, err := raw.Reader()
	if err != nil {
		return nil, err
	}
	w := ps.cfg.Store.CreatePage()
	defer w.Close()
	ix, err := s.Protocol.ParseIndex(project, ecosystem.Page{URL: got.URL, ContentType: got.ContentType, Body: body}, pageRows{w})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ps.carryOver(s, project, ix, ps.history(s, project, have), ps.cfg.Now())
	compact(ix)
	stored := cache.Page{URL: got.URL, ContentType: got.ContentType, ETag: got.ETag, Digest: raw.Digest(), Format: keptFormat, Fetched: now}
	stored.Rows, err = w.Commit(storeKey(s, project), stored, func(to io.Writer) error { return writeKept(to, ix) })
	if err != nil { // a full disk must not stop what can go on in memory
		ps.cfg.Log.Warn("an index page could not be kept", "index", s.Index, "project", project, "error", err)
		if stored.Rows, err = w.Memory(); err != nil {
			return nil, err
		}
	}
	p := newPage(s, ix, stored)
	ps.rememberPage(s, project, p)
	return p, nil
}

// pageRows are the rows of a page that is being read.
type pageRows struct{ w *cache.PageWriter }

// Append implements ecosystem.Rows.
func (r pageRows) Append(p []byte) (ecosystem.Extent, error) {
	at, err := r.w.Append(p)
	return ecosystem.Extent{Offset: at, Length: int64(len(p))}, err
}

// newPage makes a page of what is kept, which it takes over. It leaves out the
// files on hosts that the upstream's client would not ask.
func newPage(s Source, ix *ecosystem.Index, stored cache.Page) *Page {
	p := &Page{
		Index: ix, stored: stored.Rows, source: stored.Digest, known: s.knownHosts(),
		URL: stored.URL, contentType: stored.ContentType, etag: stored.ETag, fetched: stored.Fetched,
		Hosts: map[string]bool{}, byPath: make(places, len(ix.Files)), gone: new(atomic.Bool),
	}
	p.Digest = pageDigest(stored.Digest, stored.URL, p.known, ix.Files)
	permitted := map[string]bool{} // by scheme and host
	listed := ix.Files[:0]
	for _, f := range ix.Files {
		if !permits(s, p.Hosts, permitted, f.URL) {
			ix.LeftOut = append(ix.LeftOut, ecosystem.LeftOut{
				Name: f.Name, Version: f.Version, Path: f.Path, Reason: "it is on a host that is not known as a file host of the upstream",
			})
			continue
		}
		p.byPath.putPath(&f, len(listed))
		listed = append(listed, f)
	}
	clear(ix.Files[len(listed):])
	ix.Files = listed
	p.size = sizeOf(ix) + stored.Rows.Memory()
	return p
}

// permits tells whether the upstream's client would ask for a file, and notes
// its host. A page's files are on a few hosts.
func permits(s Source, hosts, permitted map[string]bool, location string) bool {
	u, err := url.Parse(location)
	if err != nil {
		return false
	}
	hosts[u.Host] = true
	key := u.Scheme + "://" + u.Host
	ok, known := permitted[key]
	if !known {
		ok = s.Client.Permits(key + "/")
		permitted[key] = ok
	}
	return ok && u.User == nil
}

// pageDigest covers what the verdicts on a page depend on: the upstream's
// bytes and where they came from, by which links are read, the hosts that decide
// what is listed, and the times that were carried over.
func pageDigest(source, from, known string, files []ecosystem.File) string {
	sum := sha256.New()
	// A hash takes everything, so none of the writes can fail.
	_, _ = io.WriteString(sum, source+"\x00"+from+"\x00"+known+"\x00")
	var times [16]byte
	for _, f := range files {
		binary.BigEndian.PutUint64(times[:], uint64(f.Published.UnixMicro()))
		binary.BigEndian.PutUint64(times[8:], uint64(f.FirstSeen.Unix()))
		_, _ = sum.Write(times[:])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// history gives the index that was kept before, with the files on all hosts;
// nil if there is none.
func (ps *Pages) history(s Source, project string, have *Page) *ecosystem.Index {
	var before *ecosystem.Index
	_, err := ps.cfg.Store.GetPage(storeKey(s, project), func(from io.Reader) (err error) {
		before, err = readKept(from)
		return err
	})
	switch {
	case err == nil:
		return before
	case have != nil: // it could not be kept
		return have.Index
	}
	return nil
}

// carryOver gives each file the time at which it was first listed here, and the
// time of publication that it had then: a registry that changes a time later
// changes nothing. A file that comes back with other bytes is a new one.
func (ps *Pages) carryOver(s Source, project string, ix, before *ecosystem.Index, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	known := map[string]ecosystem.File{}
	if before != nil {
		for _, f := range before.Files {
			known[f.Name] = f
		}
	}
	moved, replaced := 0, 0
	for i := range ix.Files {
		f := &ix.Files[i]
		f.Published = f.Published.UTC()
		f.FirstSeen = now
		old, ok := known[f.Name]
		switch {
		case !ok:
		case otherBytes(old.Digest, f.Digest):
			replaced++
		default:
			f.FirstSeen = old.FirstSeen
			if !old.Published.IsZero() && !f.Published.Equal(old.Published) {
				f.Published = old.Published
				moved++
			}
		}
	}
	if moved+replaced > 0 {
		ps.cfg.Log.Warn("the index changed what was: times of publication are kept as they were, files with another digest count as new",
			"index", s.Index, "project", project, "times", moved, "digests", replaced)
	}
}

// otherBytes tells that two digests can't be of the same bytes. An index may
// give another kind of digest later.
func otherBytes(a, b string) bool {
	algorithm, _, _ := strings.Cut(a, ":")
	return a != b && algorithm != "" && strings.HasPrefix(b, algorithm+":")
}
