package requests

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Batch is how many requests that have ended are told of at a time at most.
const Batch = 32

// Bounds of what is told of one, in bytes as JSON writes them: Batch of them are far below
// what the door takes as one message, whatever their clients have made up.
const (
	maxMethod  = 64
	maxTold    = 1 << 10 // of its path
	maxRule    = 512
	maxProblem = 1 << 10
)

// toldOf is the beginning of a text that JSON writes in no more than most bytes. Secrets are
// masked before it is cut.
func toldOf(text string, most int) string {
	if len(text) > most/6 { // else it is not cut, and masked by who keeps it
		text = redact.Text(text)
	}
	size := 0
	for i, c := range text {
		switch {
		case c == utf8.RuneError || c < ' ' || c == '\u2028' || c == '\u2029':
			size += 6
		case c == '"' || c == '\\' || c == '<' || c == '>' || c == '&':
			size += 6 // by some encoders
		default:
			size += utf8.RuneLen(c)
		}
		if size > most {
			return strings.ToValidUTF8(text[:i], "?")
		}
	}
	return strings.ToValidUTF8(text, "?")
}

// done are judged requests that have ended and of which nobody was told.
type done struct {
	mu     sync.Mutex // guards all below
	list   []door.RequestDone
	last   uint64 // number that was given
	atOnce bool   // each is told as soon as it ends
}

// tellAtOnce has each that ends from now on told as soon as it does. The connection to the host
// on which it was sent has ended by then, and the door knows such a one only for a while.
func (d *done) tellAtOnce() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.atOnce = true
}

// Done gives the judged requests that have ended since it gave some last.
func (c *Carrier) Done() []door.RequestDone {
	c.done.mu.Lock()
	defer c.done.mu.Unlock()
	list := c.done.list
	c.done.list = nil
	return list
}

func (d *done) addDone(one door.RequestDone) (full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	one.Number = d.last
	d.list = append(d.list, one)
	return d.atOnce || len(d.list) >= Batch
}

// underway is a request that is being passed on.
type underway struct {
	began   time.Time
	sent    atomic.Bool
	status  atomic.Int64
	out, in atomic.Int64 // bytes of bodies
	failed  atomic.Pointer[string]
}

type underwayKey struct{}

// followRequest has what becomes of a judged request known, once ended is called.
func (c *Carrier) followRequest(r *http.Request, rule string) (followed *http.Request, ended func()) {
	if c.config.Judge == nil {
		return r, func() {}
	}
	u := &underway{began: time.Now()}
	r = r.WithContext(context.WithValue(r.Context(), underwayKey{}, u))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &counted{ReadCloser: r.Body, n: &u.out}
	}
	method, path := toldOf(r.Method, maxMethod), toldOf(r.URL.EscapedPath(), maxTold)
	return r, func() {
		if !u.sent.Load() {
			return // what kept it from being sent is on record, or a connection's end
		}
		one := door.RequestDone{
			Method: method, Path: path, Rule: toldOf(rule, maxRule), Status: int(u.status.Load()),
			BytesOut: u.out.Load(), BytesIn: u.in.Load(), Milliseconds: time.Since(u.began).Milliseconds(),
		}
		if problem := u.failed.Load(); problem != nil {
			one.Problem = toldOf(*problem, maxProblem)
		}
		if c.done.addDone(one) && c.config.Full != nil {
			c.config.Full(r.Context())
		}
	}
}

// watchSent takes what became of a request that was sent, up to the answer's header.
func watchSent(r *http.Request, answer *http.Response, err error) {
	u, _ := r.Context().Value(underwayKey{}).(*underway)
	if u == nil {
		return
	}
	u.sent.Store(true)
	if err != nil {
		u.unanswered(err)
		return
	}
	u.status.Store(int64(answer.StatusCode))
	if answer.StatusCode != http.StatusSwitchingProtocols { // whose body is a connection
		answer.Body = &counted{answer.Body, &u.in, func() { u.brokeOff(r) }}
	}
}

// unanswered takes that a request has no answer, or one that is none.
func (u *underway) unanswered(err error) {
	problem := "the host did not answer it"
	if refusal, ok := asRefusal(err); ok {
		problem = refusal.Reason
	}
	u.failed.Store(&problem)
}

// brokeOff takes that an answer did not end as it said it would; that its client has gone
// is no such thing.
func (u *underway) brokeOff(r *http.Request) {
	if r.Context().Err() == nil {
		problem := "the host's answer broke off"
		u.failed.Store(&problem)
	}
}

// counted is a body whose bytes are counted.
type counted struct {
	io.ReadCloser
	n   *atomic.Int64
	cut func() // nil: nobody wants to know that it was
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && c.cut != nil {
		c.cut()
	}
	return n, err
}
