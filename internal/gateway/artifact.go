package gateway

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// errOtherDigest: the index gives a file another digest than it had first.
var errOtherDigest = fault.Invalid("its digest is not the one that it had when it was first seen; an operator must say which is right")

// wanted is one verified thing to have: a file, or a sidecar.
type wanted struct {
	source *source
	key    cache.Key
	url    string
	digest string
	size   int64 // 0: unknown
	most   int64 // 0: the store's limit
}

func wantFile(s *source, project string, f ecosystem.File) wanted {
	return wanted{source: s, key: fileKey(s, project, f.Name), url: f.URL, digest: f.Digest, size: f.Size}
}

func fileKey(s *source, project, name string) cache.Key {
	return cache.Key{Ecosystem: string(s.ecosystem()), Upstream: s.index, Project: project, File: name}
}

// cached gives the bytes if they are in the cache and are bound to their file.
// spoilt tells that the cache had others in their place.
func (g *Gateway) cached(w wanted) (blob *cache.Blob, spoilt bool, err error) {
	first, err := g.store.FirstDigest(w.key)
	if err != nil {
		return nil, false, err
	}
	if first != "" && first != w.digest {
		return nil, false, errOtherDigest
	}
	blob, err = g.store.Get(w.digest)
	if err != nil {
		return nil, errors.Is(err, cache.ErrQuarantined), err
	}
	if err := g.bind(w); err != nil {
		_ = blob.Close() // read only
		return nil, false, err
	}
	return blob, false, nil
}

// absent tells an error of cached after which the bytes may be fetched.
func absent(err error) bool {
	return errors.Is(err, fault.ErrNotFound) || errors.Is(err, cache.ErrQuarantined)
}

// bind makes the digest the file's for ever. Its bytes are verified by now.
func (g *Gateway) bind(w wanted) error {
	first, err := g.store.Bind(w.key, w.digest)
	if err != nil {
		return err
	}
	if first != w.digest {
		return errOtherDigest
	}
	return nil
}

// fetch gets the bytes from the upstream, once however many want them, and
// gives them from the cache.
func (g *Gateway) fetch(ctx context.Context, w wanted) (*cache.Blob, error) {
	_, err := flight(ctx, g, "file "+w.url+" "+w.digest, func() (struct{}, error) {
		return struct{}{}, g.download(g.life, w)
	})
	if err != nil {
		return nil, err
	}
	blob, _, err := g.cached(w)
	return blob, err
}

// download stores the bytes under their digest, or nothing.
func (g *Gateway) download(ctx context.Context, w wanted) error {
	out, err := g.store.Create(w.size, w.most)
	if err != nil {
		return err
	}
	if err := w.source.client.File(ctx, upstream.FileAsk{URL: w.url, Size: w.size}, out); err != nil {
		out.Abort()
		return err
	}
	if err := out.Commit(w.digest); err != nil {
		return err
	}
	return g.bind(w)
}

// fetchAhead begins to fetch an artifact that will be asked for, if a slot is
// free. Whatever goes wrong is found again by whoever asks.
func (g *Gateway) fetchAhead(w wanted) {
	select {
	case g.ahead <- struct{}{}:
	default:
		return
	}
	started := g.tasks.run(func() {
		defer func() { <-g.ahead }()
		blob, _, err := g.cached(w)
		if absent(err) {
			blob, err = g.fetch(g.life, w)
		}
		if err != nil {
			g.log.Debug("an artifact could not be fetched ahead", "file", w.key.File, "error", err)
			return
		}
		_ = blob.Close() // read only
	})
	if !started {
		<-g.ahead
	}
}
