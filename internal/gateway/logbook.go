package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Limits of what is kept of a transparency log.
const (
	maxLogAnswer = 1 << 20 // bytes; a tile has 8 KiB, a record some hundred bytes
	maxLogCached = 20_000  // tiles and records
	maxAttested  = 200_000 // releases
)

// relayed is the folder below an upstream's index where it relays its log.
const relayed = "sumdb/"

// logbook is one upstream's transparency log and what this installation knows
// of it. It is the ecosystem.Log that the upstream's protocol is lent.
type logbook struct {
	witness  ecosystem.Witness
	verifier string
	name     string           // of the log, with which its verifier begins
	base     string           // of what is asked; without a trailing slash
	client   *upstream.Client // asks the log
	own      bool             // the client is the logbook's own, to be closed

	config   *cache.Shelf // durable: the log as it was last verified, and its sizes
	cached   *cache.Shelf
	attested *cache.Shelf
	recent   *lru[attestation]

	// size is of the largest head that the log has signed, as far as it was seen
	// since the start.
	size atomic.Int64

	// condemned is why the log is believed no more; set once, until a restart.
	condemned atomic.Pointer[string]

	mu    sync.Mutex
	sizes []ecosystem.LogSize // observed by this installation, oldest first; guarded by mu
}

var _ ecosystem.Log = (*logbook)(nil)

// newLogbook opens the book of an upstream's log; nil if its protocol has no
// witness or the upstream no log.
func newLogbook(s *source, u upstream.Config, cfg Config, store *cache.Store) (*logbook, error) {
	witness, ok := s.protocol.(ecosystem.Witness)
	if !ok || u.Log == "" {
		return nil, nil //nolint:nilnil // an upstream without a log is no error
	}
	name, _, _ := strings.Cut(u.Log, "+")
	if !fs.ValidPath(name) || name == "." || (&url.URL{Path: name}).EscapedPath() != name {
		return nil, fault.Invalid("the verifier of the upstream's transparency log begins with no name")
	}
	l := &logbook{witness: witness, verifier: u.Log, name: name, base: u.Index + relayed + name, client: s.client, recent: newLRU[attestation](8 << 20)}
	if u.LogURL != "" {
		l.base = strings.TrimSuffix(u.LogURL, "/")
		client, err := upstream.New(
			upstream.Config{Ecosystem: u.Ecosystem, Index: l.base + "/", Proxy: u.Proxy, CAPEM: u.CAPEM},
			upstream.Options{Version: cfg.Version, Resolver: cfg.Resolver, Limits: cfg.Limits.Upstream},
		)
		if err != nil {
			return nil, err
		}
		l.client, l.own = client, true
	}
	return l, l.open(store, s.index)
}

func (l *logbook) open(store *cache.Store, index string) error {
	sum := sha256.Sum256([]byte(index + "\x00" + l.verifier))
	dir := "log/" + hex.EncodeToString(sum[:16])
	var errs [3]error
	l.config, errs[0] = store.Shelf(dir+"/config", 0)
	l.cached, errs[1] = store.Shelf(dir+"/cached", maxLogCached)
	l.attested, errs[2] = store.Shelf(dir+"/attested", maxAttested)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return l.loadSizes()
}

// ask makes of a question to the upstream about its log one to where the log is
// asked. known is false if it is about another log: names of logs are a way out.
func (l *logbook) ask(index, location string) (at string, known bool) {
	rest, known := strings.CutPrefix(location, index+relayed+l.name+"/")
	return l.base + "/" + rest, known
}

func (l *logbook) close() {
	if l != nil && l.own {
		l.client.Close()
	}
}

// Verifier implements ecosystem.Log.
func (l *logbook) Verifier() string { return l.verifier }

// Remote implements ecosystem.Log. That the log can't be asked, or answers what
// is no answer, is not yet a lie: what was not verified was not believed either.
func (l *logbook) Remote(ctx context.Context, path string) ([]byte, error) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	var body upstream.Memory
	_, err := l.client.Page(ctx, upstream.PageAsk{URL: l.base + path, Accept: "*/*", Most: maxLogAnswer}, &body)
	switch {
	case err == nil:
		return body.Bytes(), nil
	case errors.Is(err, fault.ErrNotFound):
		return nil, fault.New(fault.ErrNotFound, "the transparency log has no such record")
	}
	return nil, fault.New(fault.ErrUnavailable, "the upstream's transparency log can't be asked: %s", sentence(err))
}

// Config implements ecosystem.Log.
func (l *logbook) Config(name string) ([]byte, error) {
	return absentIsEmpty(l.config.Get("config " + name))
}

// Replace implements ecosystem.Log.
func (l *logbook) Replace(name string, old, value []byte) error {
	return l.config.Replace("config "+name, old, value)
}

func absentIsEmpty(value []byte, err error) ([]byte, error) {
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// Cached implements ecosystem.Log. What is damaged is as good as lost.
func (l *logbook) Cached(name string) ([]byte, error) {
	value, err := l.cached.Get(name)
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "it is not in the cache")
	}
	return value, nil
}

// Cache implements ecosystem.Log. What can't be kept is asked for again.
func (l *logbook) Cache(name string, data []byte) {
	_ = l.cached.Put(name, data) // the log is asked again
}
