// Package webhook tells other systems what happens in the approval queue, and of the
// log's alarms: each event is one POST, signed, in order, tried again until it is taken
// or too old.
//
// A hook's cursor is the last event that it is done with. The queue keeps its events, and the store
// the cursors, so together they are the outbox: nothing is lost when the daemon ends, and nothing
// of the queue ever waits for a hook.
//
// A hook gets an event once or, when the answer was lost, again: the number in
// Cofferdam-Delivery tells. The signature is in
//
//	Cofferdam-Signature: t=1767225600,v1=5f2c...
//
// where v1 is the hex HMAC-SHA256, under the hook's secret, of the digits after
// t=, a dot, and the body. A receiver that checks it also refuses an old t.
//
// A hook is shown its URL, which may be a secret, and never the key of the signature. Nothing of its answer is read but
// the status' number, which goes into the daemon's log, and no redirect is followed; so nothing that it says
// comes to a sandbox or a record.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The headers of a delivery.
const (
	HeaderSignature = "Cofferdam-Signature"
	HeaderEvent     = "Cofferdam-Event"
	HeaderDelivery  = "Cofferdam-Delivery"
)

// How hard a delivery is tried.
const (
	answerTimeout = 10 * time.Second // for one answer
	firstPause    = time.Second      // doubled each time
	longPause     = 10 * time.Minute
	maxAge        = 24 * time.Hour // an older event is left out
	maxAnswer     = 64 << 10       // bytes that are read of an answer
)

// Hook is one address.
type Hook struct {
	URL    string
	Secret []byte // of the signature; nil: not signed
	Format Format
	Events []approval.EventName // nil: all
}

// Check finds what no hook can be: https, or http to this machine only. Its
// errors go on after the place of the hook.
func (h Hook) Check() error {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New(".url is no URL such as https://host.example/path") // not shown: it may be a secret
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New(".url must begin with https://; http:// is for addresses of this machine")
	}
	if h.Format != JSON && h.Format != Slack {
		return fmt.Errorf(".format is %q; it is %s or %s", h.Format, JSON, Slack)
	}
	if h.Format == JSON && len(h.Secret) == 0 {
		return errors.New(".secret_file is missing: who gets the events must be able to tell that they are from here")
	}
	for _, e := range h.Events {
		if !slices.Contains(EventNames(), e) {
			return fmt.Errorf(".events has %q; there are %v", e, EventNames())
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// EventNames are the events that there are.
func EventNames() []approval.EventName {
	return []approval.EventName{
		approval.EventAsked, approval.EventJoined, approval.EventApproved, approval.EventDenied,
		approval.EventExpired, approval.EventRevoked, approval.EventSuperseded, EventAlarm,
	}
}

// hookName is the hook's in the store and in messages: its host, and a digest since
// the path of a URL can be a secret.
func (h Hook) hookName() string {
	sum := sha256.Sum256([]byte(h.URL + "\x00" + string(h.Format)))
	u, err := url.Parse(h.URL)
	if err != nil {
		return hex.EncodeToString(sum[:8])
	}
	return u.Host + "#" + hex.EncodeToString(sum[:8])
}

// Source is the queue.
type Source interface {
	Watch(ctx context.Context, after uint64) iter.Seq2[approval.Event, error]
	LastEvent() uint64
}

// Cursors remember where hooks stand.
type Cursors interface {
	Cursor(ctx context.Context, hook string) (number uint64, ok bool, err error)
	SetCursor(ctx context.Context, hook string, number uint64) error
}

// Config is what a Sender is made of; all but Logger is needed.
type Config struct {
	Hooks   []Hook
	Source  Source
	Cursors Cursors
	Logger  *slog.Logger // nil: nobody is told
	// Alarms are the log's; nil: nobody is told of them. FirstAlarm is the record with
	// which a new hook begins.
	Alarms     AlarmSource
	FirstAlarm uint64
	// Transport carries the requests; nil is one of its own.
	Transport http.RoundTripper
}

// Sender delivers events.
type Sender struct {
	cfg    Config
	client *http.Client
}

// New makes a Sender; a hook that can't be is fault.ErrInvalid.
func New(cfg Config) (*Sender, error) {
	for i, h := range cfg.Hooks {
		if err := h.Check(); err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "webhooks[%d]", i)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 4, IdleConnTimeout: time.Minute}
	}
	return &Sender{cfg: cfg, client: &http.Client{
		Transport: cfg.Transport, Timeout: answerTimeout,
		// A redirect is not followed: it would take the events elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Run delivers until ctx ends, and returns when nothing is under way any more.
func (s *Sender) Run(ctx context.Context) {
	var hooks sync.WaitGroup
	for _, h := range s.cfg.Hooks {
		safego.In(&hooks, func() { safego.Stay(ctx, func() { s.serveHook(ctx, h) }) })
		if s.cfg.Alarms != nil && h.wantsAlarms() {
			safego.In(&hooks, func() { safego.Stay(ctx, func() { s.serveAlarms(ctx, h) }) })
		}
	}
	hooks.Wait()
	s.client.CloseIdleConnections()
}

// serveHook serves one hook for as long as it lives.
func (s *Sender) serveHook(ctx context.Context, h Hook) {
	log := s.cfg.Logger.With("webhook", h.hookName())
	last := s.cfg.Source.LastEvent() // no cursor of an earlier daemon is past it
	for pause := firstPause; ctx.Err() == nil; pause = longer(pause) {
		if err := s.followHook(ctx, h, &last, log); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "the events of the approval queue could not be read for a webhook", "err", err)
		}
		waitPause(ctx, pause)
	}
}

// findPosition finds where a cursor stands. One that is new, or is past the last number that it can have,
// begins with first: the log was put back to an earlier state then, and what has come to it since
// has numbers that were told of before.
func (s *Sender) findPosition(ctx context.Context, name string, first, last uint64, log *slog.Logger) (uint64, error) {
	at, known, err := s.cfg.Cursors.Cursor(ctx, name)
	if err != nil || known && at <= last {
		return at, err
	}
	if known {
		log.WarnContext(ctx, "a webhook was told of more than the log has, so the log is another, or was put back from a copy; it is told what comes from now on", "cursor", at, "last", last)
	}
	return first, s.cfg.Cursors.SetCursor(ctx, name, first)
}

// followHook delivers from where the hook stands, which is not past last. A hook that is new begins
// now.
func (s *Sender) followHook(ctx context.Context, h Hook, last *uint64, log *slog.Logger) error {
	cursor, err := s.findPosition(ctx, h.hookName(), s.cfg.Source.LastEvent(), *last, log)
	if err != nil {
		return err
	}
	*last = math.MaxUint64 // it moves on from here by what the queue has
	for event, err := range s.cfg.Source.Watch(ctx, cursor) {
		if err != nil {
			return err
		}
		if h.Events == nil || slices.Contains(h.Events, event.Name) {
			s.tellHook(ctx, h, queueMessage(h.Format, event), log)
		}
		if ctx.Err() != nil {
			return nil // not done with it
		}
		if err := s.cfg.Cursors.SetCursor(ctx, h.hookName(), event.Number); err != nil {
			return err
		}
	}
	return nil
}

// hookMessage is an event on its way to one hook.
type hookMessage struct {
	number uint64
	at     time.Time
	name   approval.EventName
	body   func() ([]byte, error)
}

func queueMessage(f Format, e approval.Event) hookMessage {
	return hookMessage{number: e.Number, at: e.At, name: e.Name, body: func() ([]byte, error) { return f.encodeBody(e) }}
}

// tellHook tries until the message is taken, is too old, or ctx ends.
func (s *Sender) tellHook(ctx context.Context, h Hook, m hookMessage, log *slog.Logger) {
	body, err := m.body()
	if err != nil {
		log.ErrorContext(ctx, "an event can't be told to a webhook", "number", m.number, "err", err)
		return
	}
	for pause := firstPause; ; pause = longer(pause) {
		if time.Since(m.at) > maxAge {
			log.WarnContext(ctx, "an event is too old to be told to a webhook", "number", m.number, "event", m.name)
			return
		}
		err := s.postMessage(ctx, h, m, body)
		if err == nil || ctx.Err() != nil {
			return
		}
		log.WarnContext(ctx, "a webhook did not take an event; it is tried again", "number", m.number, "err", err, "pause", pause)
		waitPause(ctx, pause+rand.N(pause/4)) // #nosec G404 -- only spreads the load
	}
}

func (s *Sender) postMessage(ctx context.Context, h Hook, m hookMessage, body []byte) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request can't be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "cofferdam")
	req.Header.Set(HeaderEvent, string(m.name))
	req.Header.Set(HeaderDelivery, strconv.FormatUint(m.number, 10))
	if h.Secret != nil {
		req.Header.Set(HeaderSignature, Sign(h.Secret, time.Now(), body))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}

// Sign is the value of HeaderSignature.
func Sign(secret []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func longer(pause time.Duration) time.Duration { return min(2*pause, longPause) }

func waitPause(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
