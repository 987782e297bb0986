package artifacts

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Get gives what is wanted from the cache, or else from the upstream.
func (as *Artifacts) Get(ctx context.Context, w Wanted) (*Verified, error) {
	v, _, err := as.Cached(w)
	if Absent(err) {
		return as.Fetch(ctx, w)
	}
	return v, err
}

// fetching is the key of a flight.
type fetching struct {
	cache.Key
	url, digest string
}

// Fetch gets the bytes from the upstream, once however many want them, and
// gives them from the cache.
func (as *Artifacts) Fetch(ctx context.Context, w Wanted) (*Verified, error) {
	key, download := as.fetching(w)
	if _, err := coalesce.Once(ctx, as.cfg.Flights, key, download); err != nil {
		return nil, err
	}
	v, _, err := as.Cached(w)
	return v, err
}

func (as *Artifacts) fetching(w Wanted) (fetching, func(ctx context.Context) (struct{}, error)) {
	return fetching{w.Key, w.URL, w.Digest}, func(ctx context.Context) (struct{}, error) { return struct{}{}, as.download(ctx, w) }
}

// download stores the bytes once they are verified, or nothing.
func (as *Artifacts) download(ctx context.Context, w Wanted) error {
	out, err := as.cfg.Store.Create(w.Size, w.Most)
	if err != nil {
		return err
	}
	if algorithm(w.Digest) == "sha1" {
		out.AlsoSHA1()
	}
	err = w.Client.File(ctx, upstream.FileAsk{URL: w.URL, Size: w.Size, Known: w.Digest != "", Subject: w.subject()}, out)
	if err == nil {
		err = w.verify(out.Sums(), out)
	}
	return as.commit(w, out, err)
}

// subject is what is on record of the question for it.
func (w Wanted) subject() upstream.Subject {
	return upstream.Subject{
		Package: pkgref.Ref{Ecosystem: pkgref.Ecosystem(w.Key.Ecosystem), Name: w.Key.Project, Version: w.File.Version}, File: w.Key.File,
	}
}

// commit keeps bytes that were verified, and binds the file to them; after an error
// it keeps nothing.
func (as *Artifacts) commit(w Wanted, out *cache.Writer, err error) error {
	sums := out.Sums()
	if err == nil {
		err = as.stillTheFirst(w, sums)
	}
	if err != nil {
		out.Abort()
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return as.bindSums(w, sums)
}

// FetchAhead begins to fetch an artifact that will be asked for, if a slot is
// free. failed is told of an error, with the guests for whom it was fetched, if nobody
// has asked for it meanwhile: who asks is told by Fetch.
func (as *Artifacts) FetchAhead(ctx context.Context, w Wanted, failed func(guests []string, err error)) {
	_, free, ok := as.ahead.Try(ctx)
	if !ok {
		return
	}
	ctx = as.cfg.Flights.LifeFor(ctx)
	started := as.cfg.Flights.Run(func() {
		defer free()
		v, _, err := as.Cached(w)
		if err == nil {
			_ = v.Close() // read only
			return
		}
		var untold []string
		if Absent(err) {
			key, download := as.fetching(w)
			_, untold, err = coalesce.Ahead(ctx, as.cfg.Flights, key, download)
		}
		if err != nil {
			as.cfg.Log.Debug("an artifact could not be fetched ahead", "file", w.Key.File, "error", err)
			failed(untold, err)
		}
	})
	if !started {
		free()
	}
}

// BindBody stores what its caller verified, and verifies anew at each use, and
// binds it to its key for ever.
func (as *Artifacts) BindBody(key cache.Key, body []byte) error {
	out, err := as.cfg.Store.Create(int64(len(body)), 0)
	if err != nil {
		return err
	}
	_, err = out.Write(body)
	return as.commit(Wanted{Key: key}, out, err)
}
