package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Incidents: a file is not what it was when it was first had.
var (
	errOtherDigest  = fault.Invalid("its digest is not the one that it had when it was first seen; an operator must say which is right")
	errWeakerDigest = fault.Invalid("the index gave a stronger digest for it when it was first seen; an operator must say why that has gone")
)

// wanted is one verified thing to have: a file, or a sidecar.
type wanted struct {
	source *source
	key    cache.Key
	url    string
	digest string // the index's or the witness's; "": the first bytes count for ever
	size   int64  // 0: unknown
	most   int64  // 0: the store's limit
	file   ecosystem.File
}

// verified are the bytes of something wanted, with the sums that are known.
type verified struct {
	*cache.Blob
	sums cache.Sums
}

func wantFile(s *source, project string, f ecosystem.File) wanted {
	return wanted{source: s, key: fileKey(s, project, f.Name), url: f.URL, digest: f.Digest, size: f.Size, file: f}
}

func fileKey(s *source, project, name string) cache.Key {
	return cache.Key{Ecosystem: string(s.Ecosystem()), Upstream: s.Index, Project: project, File: name}
}

// cached gives the bytes if they are in the cache and are what their file is
// bound to. spoilt tells that the cache had others in their place.
func (g *Gateway) cached(w wanted) (v *verified, spoilt bool, err error) {
	b, bound, err := g.store.Binding(w.key)
	if err != nil {
		return nil, false, err
	}
	digest, settled := w.digest, false
	if bound {
		if settled, err = heldTo(b, w.digest); err != nil {
			return nil, false, err
		}
		digest = b.SHA256
	} else if !strings.HasPrefix(digest, "sha256:") {
		return nil, false, fault.New(fault.ErrNotFound, "the artifact is not in the cache")
	}
	blob, err := g.store.Get(digest)
	if err != nil {
		return nil, errors.Is(err, cache.ErrQuarantined), err
	}
	v = &verified{blob, b.Sums}
	if !settled {
		if v.sums, err = g.adopt(w, blob); err != nil {
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

// adopt verifies bytes that the cache has under their sha256 alone, and binds
// the file to them.
func (g *Gateway) adopt(w wanted, blob *cache.Blob) (cache.Sums, error) {
	sums, err := cache.SumAll(blob.Reader())
	if err == nil {
		err = w.verify(sums, blob)
	}
	if err == nil {
		err = g.bind(w, sums)
	}
	return sums, err
}

// absent tells an error of cached after which the bytes may be fetched.
func absent(err error) bool {
	return errors.Is(err, fault.ErrNotFound) || errors.Is(err, cache.ErrQuarantined)
}

// verify compares the bytes with the digest that is known of them.
func (w wanted) verify(sums cache.Sums, content ecosystem.Content) error {
	if w.digest == "" {
		return nil // what binds the file decides
	}
	if sum := sums.Of(w.digest); sum != "" {
		if sum != w.digest {
			return fault.Invalid("the file's %s is not the one that the index gives", algorithm(w.digest))
		}
		return nil
	}
	if w.source.log == nil {
		return fault.Invalid("the index gives a digest of a kind that can't be compared")
	}
	sum, err := w.source.log.Witness().SumFile(w.file, content)
	if err != nil {
		return err
	}
	if sum != w.digest {
		return fault.Invalid("the file's digest is not the one that the upstream's transparency log has of it")
	}
	return nil
}

// bind makes verified bytes the file's for ever.
func (g *Gateway) bind(w wanted, sums cache.Sums) error {
	first, err := g.store.Bind(w.key, cache.Binding{Given: w.digest, Sums: sums, First: g.seen().Truncate(time.Second)})
	if err == nil && first.SHA256 != sums.SHA256 {
		err = errOtherDigest
	}
	return err
}

// fetching is the key of a flight.
type fetching struct {
	cache.Key
	url, digest string
}

// fetch gets the bytes from the upstream, once however many want them, and
// gives them from the cache.
func (g *Gateway) fetch(ctx context.Context, w wanted) (*verified, error) {
	what := fetching{w.key, w.url, w.digest}
	_, err := flight.Once(ctx, g.flights, what, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, g.download(ctx, w)
	})
	if err != nil {
		return nil, err
	}
	v, _, err := g.cached(w)
	return v, err
}

// download stores the bytes once they are verified, or nothing.
func (g *Gateway) download(ctx context.Context, w wanted) error {
	out, err := g.store.Create(w.size, w.most)
	if err != nil {
		return err
	}
	if algorithm(w.digest) == "sha1" {
		out.AlsoSHA1()
	}
	err = w.source.Client.File(ctx, upstream.FileAsk{URL: w.url, Size: w.size, Known: w.digest != ""}, out)
	if err == nil {
		err = w.verify(out.Sums(), out)
	}
	if err == nil {
		err = g.stillTheFirst(w, out.Sums())
	}
	if err != nil {
		out.Abort()
		return err
	}
	sums := out.Sums()
	if err := out.Commit(); err != nil {
		return err
	}
	return g.bind(w, sums)
}

// stillTheFirst refuses bytes other than those that bind the file, before they
// are kept.
func (g *Gateway) stillTheFirst(w wanted, sums cache.Sums) error {
	b, bound, err := g.store.Binding(w.key)
	if err == nil && bound && b.SHA256 != sums.SHA256 {
		err = errOtherDigest
	}
	return err
}

// fetchAhead begins to fetch an artifact that will be asked for, if a slot is
// free. Whatever goes wrong is found again by whoever asks.
func (g *Gateway) fetchAhead(ctx context.Context, w wanted) {
	_, free, ok := g.ahead.Try(ctx)
	if !ok {
		return
	}
	ctx = g.flights.LifeFor(ctx)
	started := g.flights.Run(func() {
		defer free()
		v, _, err := g.cached(w)
		if absent(err) {
			v, err = g.fetch(ctx, w)
		}
		if err != nil {
			g.log.Debug("an artifact could not be fetched ahead", "file", w.key.File, "error", err)
			return
		}
		_ = v.Close() // read only
	})
	if !started {
		free()
	}
}
