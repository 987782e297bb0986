// Package logbook knows upstreams' transparency logs: it lends a protocol what it
// needs to verify one, keeps what was verified, and tells how old releases are by
// the sizes that the log had.
package logbook

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Limits of what is kept of a transparency log.
const (
	maxLogAnswer = 1 << 20 // bytes; a tile has 8 KiB, a record some hundred bytes
	maxLogCached = 20_000  // tiles and records
	maxAttested  = 200_000 // releases
)

// relayed is the folder below an upstream's index where it relays its log.
const relayed = "sumdb/"

// Book is one upstream's transparency log and what this installation knows of it.
// It is the ecosystem.Log that the upstream's protocol is lent. Close it.
type Book struct {
	cfg    Config
	name   string           // of the log, with which its verifier begins
	base   string           // of what is asked; without a trailing slash
	client *upstream.Client // asks the log
	own    bool             // the client is the book's own, to be closed

	config   *cache.Shelf // durable: the log as it was last verified, and its sizes
	cached   *cache.Shelf
	attested *memo.Findings[loggedRelease, Attestation]

	// size is of the largest head that the log has signed, as far as it was seen
	// since the start.
	size atomic.Int64

	// condemned is why the log is believed no more; set once, until a restart.
	condemned atomic.Pointer[string]

	mu    sync.Mutex
	sizes []ecosystem.LogSize // observed by this installation, oldest first; guarded by mu
}

var _ ecosystem.Log = (*Book)(nil)

// Config of a book.
type Config struct {
	Witness  ecosystem.Witness
	Upstream upstream.Config  // whose log it is
	Client   *upstream.Client // asks the log, unless the upstream names another place for it
	Options  upstream.Options // of a client for that place
	Store    *cache.Store
	Flights  *coalesce.Group
	Log      *slog.Logger     // for the operator
	Now      func() time.Time // when something that is seen now was first seen
}

// Attestation is what the log says of a release. It never changes, so it is
// kept on disk, as JSON.
type Attestation struct {
	ecosystem.Attested
	First time.Time // when this installation first saw it
}

// loggedRelease is one that the log is asked about.
type loggedRelease struct{ project, version string }

// String implements memo.Key.
func (r loggedRelease) String() string { return r.project + "@" + r.version }

func attestedSize(r loggedRelease, a Attestation) int64 {
	return int64(200 + len(r.project) + len(r.version) + len(a.File) + len(a.Attachment))
}

// Name is the log's own.
func (b *Book) Name() string { return b.name }

// Witness reads the log.
func (b *Book) Witness() ecosystem.Witness { return b.cfg.Witness }

// Client asks the log.
func (b *Book) Client() *upstream.Client { return b.client }

// Ask makes of a question to the upstream about its log one to where the log is
// asked. known is false if it is about another log: names of logs are a way out.
func (b *Book) Ask(location string) (at string, known bool) {
	rest, known := strings.CutPrefix(location, b.cfg.Upstream.Index+relayed+b.name+"/")
	return b.base + "/" + rest, known
}

// Close closes the book's own client. A nil book is closed.
func (b *Book) Close() {
	if b != nil && b.own {
		b.client.Close()
	}
}

// Verifier implements ecosystem.Log.
func (b *Book) Verifier() string { return b.cfg.Upstream.Log }

// Remote implements ecosystem.Log. That the log can't be asked, or answers what
// is no answer, is not yet a lie: what was not verified was not believed either.
func (b *Book) Remote(ctx context.Context, path string) ([]byte, error) {
	return b.remote(ctx, path, upstream.Receipt{})
}

// remote is Remote for a question that may be on record already.
func (b *Book) remote(ctx context.Context, path string, receipt upstream.Receipt) ([]byte, error) {
	var body upstream.Memory
	_, err := b.client.Page(ctx, upstream.PageAsk{URL: b.addressOf(path), Accept: "*/*", Most: maxLogAnswer, Exact: true, Receipt: receipt}, &body)
	switch {
	case err == nil:
		return body.Bytes(), nil
	case errors.Is(err, fault.ErrNotFound):
		return nil, fault.New(fault.ErrNotFound, "the transparency log has no such record")
	}
	return nil, fault.New(fault.ErrUnavailable, "the upstream's transparency log can't be asked: %s", errorSentence(err))
}

// addressOf is the address of a path below the log's base.
func (b *Book) addressOf(path string) string { return b.base + "/" + strings.TrimPrefix(path, "/") }

// looking is a book as it is lent for looking a release up, or those of one project. That
// the log is asked about it is on record once, before the first question: the others follow
// from the answers.
type looking struct {
	*Book
	about pkgref.Ref

	mu      sync.Mutex
	receipt upstream.Receipt // guarded by mu
}

func (b *Book) looking(project, version string) *looking {
	return &looking{Book: b, about: pkgref.Ref{Ecosystem: b.cfg.Upstream.Ecosystem, Name: project, Version: version}}
}

// Remote implements ecosystem.Log.
func (l *looking) Remote(ctx context.Context, path string) ([]byte, error) {
	receipt, err := l.recorded(ctx, path)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the upstream's transparency log is not asked: %s", errorSentence(err))
	}
	return l.remote(ctx, path, receipt)
}

func (l *looking) recorded(ctx context.Context, path string) (upstream.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receipt != (upstream.Receipt{}) {
		return l.receipt, nil
	}
	var err error
	l.receipt, err = l.client.Record(ctx, upstream.Subject{Package: l.about}, l.addressOf(path))
	return l.receipt, err
}

// Config implements ecosystem.Log.
func (b *Book) Config(name string) ([]byte, error) {
	return absentIsEmpty(b.config.Get("config " + name))
}

// Replace implements ecosystem.Log.
func (b *Book) Replace(name string, old, value []byte) error {
	return b.config.Replace("config "+name, old, value)
}

func errorSentence(err error) string {
	return fault.Sentence(err, "something inside the gateway failed")
}

func absentIsEmpty(value []byte, err error) ([]byte, error) {
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// Cached implements ecosystem.Log. A damaged file is as good as lost.
func (b *Book) Cached(name string) ([]byte, error) {
	value, err := b.cached.Get(name)
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "it is not in the cache")
	}
	return value, nil
}

// Cache implements ecosystem.Log. A tile that can't be kept is asked for again.
func (b *Book) Cache(name string, data []byte) {
	_ = b.cached.Put(name, data) // the log is asked again
}
