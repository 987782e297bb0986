// Package artifacts has files whose bytes are verified: whole, of the digest that an
// index or a transparency log gives, and of the one that they had when they were
// first here. It fetches what the cache does not have.
package artifacts

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Config of Artifacts.
type Config struct {
	Store   *cache.Store
	Flights *coalesce.Group
	Ahead   int // artifacts fetched before they are asked for, at a time
	Log     *slog.Logger
	Now     func() time.Time // when something that is seen now was first seen
}

// Artifacts are those of all upstreams. Make one with New.
type Artifacts struct {
	cfg   Config
	ahead *fairqueue.Shares
}

// New makes one.
func New(cfg Config) *Artifacts {
	return &Artifacts{cfg: cfg, ahead: fairqueue.New(fairqueue.Limits{All: cfg.Ahead, Each: cfg.Ahead, Sure: 1, Most: 16 * cfg.Ahead})}
}

// Wanted is one thing to have: a file, or what describes it.
type Wanted struct {
	Key     cache.Key
	URL     string
	Digest  string // the index's or the witness's; "": the first bytes count for ever
	Size    int64  // 0: unknown
	Most    int64  // 0: the store's limit
	File    ecosystem.File
	Client  *upstream.Client
	Witness ecosystem.Witness // compares digests that are a log's own; nil: there is none
}

// Verified are bytes that were verified, open for reading. Only this package makes
// them. Close them.
type Verified struct {
	blob *cache.Blob
	sums cache.Sums
}

// ReadAt implements ecosystem.Content.
func (v *Verified) ReadAt(p []byte, off int64) (int, error) { return v.blob.ReadAt(p, off) }

// Size implements ecosystem.Content.
func (v *Verified) Size() int64 { return v.blob.Size() }

// Digest is their sha256, "sha256:<hex>".
func (v *Verified) Digest() string { return v.blob.Digest() }

// SHA512 is "sha512:<hex>", or "" if it is not known.
func (v *Verified) SHA512() string { return v.sums.SHA512 }

// Reader reads them from the beginning.
func (v *Verified) Reader() *io.SectionReader { return v.blob.Reader() }

// Close implements io.Closer.
func (v *Verified) Close() error { return v.blob.Close() }

// Absent tells an error of Cached or Bound after which the bytes may be fetched.
func Absent(err error) bool {
	return errors.Is(err, fault.ErrNotFound) || errors.Is(err, cache.ErrQuarantined)
}

// Again opens verified bytes once more, for who may outlive their owner.
func (as *Artifacts) Again(v *Verified) (*Verified, error) {
	blob, err := as.cfg.Store.Get(v.Digest())
	if err != nil {
		return nil, err
	}
	return &Verified{blob, v.sums}, nil
}

// FirstSeen is when a file's bytes were first here; zero: they never were.
func (as *Artifacts) FirstSeen(key cache.Key) (time.Time, error) {
	b, bound, err := as.cfg.Store.Binding(key)
	if err != nil || !bound {
		return time.Time{}, err
	}
	return b.First, nil
}

// Incidents: a file is not what it was when it was first had.
var (
	errOtherDigest  = fault.Invalid("its digest is not the one that it had when it was first seen; an operator must say which is right")
	errWeakerDigest = fault.Invalid("the index gave a stronger digest for it when it was first seen; an operator must say why that has gone")
)

// Cached gives the bytes if they are in the cache and are what their file is
// bound to. spoilt tells that the cache had others in their place.
func (as *Artifacts) Cached(w Wanted) (v *Verified, spoilt bool, err error) {
	b, bound, err := as.cfg.Store.Binding(w.Key)
	if err != nil {
		return nil, false, err
	}
	digest, settled := w.Digest, false
	if bound {
		if settled, err = heldTo(b, w.Digest); err != nil {
			return nil, false, err
		}
		digest = b.SHA256
	} else if !strings.HasPrefix(digest, "sha256:") {
		return nil, false, fault.New(fault.ErrNotFound, "the artifact is not in the cache")
	}
	blob, err := as.cfg.Store.Get(digest)
	if err != nil {
		return nil, errors.Is(err, cache.ErrQuarantined), err
	}
	v = &Verified{blob, b.Sums}
	if !settled {
		if v.sums, err = as.adoptBlob(w, blob); err != nil {
			_ = blob.Close() // read only
			return nil, false, err
		}
	}
	return v, false, nil
}

// heldTo compares what the index gives now with what binds the file. settled is
// false where only the bytes can tell.
func heldTo(b cache.Binding, digest string) (settled bool, err error) {
	switch sum := b.Of(digest); {
	case digest == b.Given:
		return true, nil
	case digest == "" || (ecosystem.Strong(b.Given) && !ecosystem.Strong(digest)):
		return true, errWeakerDigest
	case sum == digest:
		return true, nil
	case sum != "" || algorithm(digest) == algorithm(b.Given):
		return true, errOtherDigest
	}
	return false, nil
}

func algorithm(digest string) string {
	a, _, _ := strings.Cut(digest, ":")
	return a
}

// adoptBlob verifies bytes that the cache has under their sha256 alone, and binds
// the file to them.
func (as *Artifacts) adoptBlob(w Wanted, blob *cache.Blob) (cache.Sums, error) {
	sums, err := cache.SumAll(blob.Reader())
	if err == nil {
		err = w.verify(sums, blob)
	}
	if err == nil {
		err = as.bindSums(w, sums)
	}
	return sums, err
}

// verify compares the bytes with the digest that is known of them.
func (w Wanted) verify(sums cache.Sums, content ecosystem.Content) error {
	if w.Digest == "" {
		return nil // what binds the file decides
	}
	if sum := sums.Of(w.Digest); sum != "" {
		if sum != w.Digest {
			return fault.Invalid("the file's %s is not the one that the index gives", algorithm(w.Digest))
		}
		return nil
	}
	if w.Witness == nil {
		return fault.Invalid("the index gives a digest of a kind that can't be compared")
	}
	sum, err := w.Witness.SumFile(w.File, content)
	if err != nil {
		return err
	}
	if sum != w.Digest {
		return fault.Invalid("the file's digest is not the one that the upstream's transparency log has of it")
	}
	return nil
}

// bindSums makes verified bytes the file's for ever.
func (as *Artifacts) bindSums(w Wanted, sums cache.Sums) error {
	first, err := as.cfg.Store.Bind(w.Key, cache.Binding{Given: w.Digest, Sums: sums, First: as.cfg.Now().Truncate(time.Second)})
	if err == nil && first.SHA256 != sums.SHA256 {
		err = errOtherDigest
	}
	return err
}

// stillTheFirst refuses bytes other than those that bind the file, before they
// are kept.
func (as *Artifacts) stillTheFirst(w Wanted, sums cache.Sums) error {
	b, bound, err := as.cfg.Store.Binding(w.Key)
	if err == nil && bound && b.SHA256 != sums.SHA256 {
		err = errOtherDigest
	}
	return err
}

// Bound gives the bytes that something small is bound to for ever.
func (as *Artifacts) Bound(key cache.Key) ([]byte, error) {
	b, bound, err := as.cfg.Store.Binding(key)
	if err != nil {
		return nil, err
	}
	if !bound {
		return nil, fault.New(fault.ErrNotFound, "the attachment is not in the cache")
	}
	blob, err := as.cfg.Store.Get(b.SHA256)
	if err != nil {
		return nil, err
	}
	defer blob.Close() //nolint:errcheck // read only
	return io.ReadAll(blob.Reader())
}
