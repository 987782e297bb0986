package upstream

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxHops bounds a chain of redirects.
const maxHops = 5

// retryable is an attempt's failure that another attempt may mend.
type retryable struct {
	err   error
	after time.Duration // what the upstream asked to wait; 0: nothing
}

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }

// upstreamQuestion is what is to be asked, and what its record says; receipt is of the record, if
// there is one already.
type upstreamQuestion struct {
	location string
	about    Subject
	receipt  Receipt
}

// hop is how far an attempt came: the host that it asked last.
type hop struct {
	receipt   Receipt // that the question is on record: without it nothing is sent
	host      string  // host:port
	connected bool    // there was a connection to it
}

// retryAttempts runs attempts at a question until one succeeds or fails for good. It takes a
// turn out of the shares of those for whom it is done, has the question put on record, and
// tells the breaker of the host how it went. Its errors have no credential in them.
func (c *Client) retryAttempts(ctx context.Context, q upstreamQuestion, attempt func(ctx context.Context, at *hop) error) error {
	return c.silence(c.attempts(ctx, q, attempt))
}

func (c *Client) attempts(ctx context.Context, q upstreamQuestion, attempt func(ctx context.Context, at *hop) error) error {
	u, err := url.Parse(q.location)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the upstream's URL can't be read")
	}
	if err := c.hosts.permits(u); err != nil {
		return err
	}
	if err := c.breakers.breakerOf(hostPort(u)).allowGuests(fairqueue.Of(ctx).Guests()...); err != nil {
		return ofUpstream(err)
	}
	guest, release, err := c.shares.Take(ctx)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the request was given up")
	}
	defer release()
	receipt, err := c.receipt(ctx, q.receipt, q.about, q.location)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		at := hop{receipt: receipt}
		err := attempt(ctx, &at)
		again, ok := errors.AsType[*retryable](err)
		if !ok {
			if at.connected {
				c.breakers.breakerOf(at.host).noteAnswered()
			}
			return err
		}
		if n >= c.limits.Attempts || again.after > c.limits.RetryAfter || !sleepFor(ctx, c.pauseBefore(n, again.after)) {
			if ctx.Err() != nil {
				return again.err
			}
			c.breakers.breakerOf(at.host).noteFailed(guest, at.connected)
			return ofUpstream(again.err)
		}
	}
}

// ofUpstream marks a failure of which nothing here is the cause.
func ofUpstream(err error) error { return &failure{err} }

type failure struct{ err error }

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, ErrFailed} }

func (c *Client) pauseBefore(n int, asked time.Duration) time.Duration {
	d := c.limits.Backoff << (n - 1)
	return max(asked, d/2+rand.N(d)) //nolint:gosec // jitter, not a secret
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// getURL asks for a URL and follows redirects, checking each hop and giving
// credentials to the index's own host only. The caller closes the body.
func (c *Client) getURL(ctx context.Context, at *hop, location string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the upstream's URL can't be read")
	}
	for range maxHops {
		if err := c.hosts.permits(u); err != nil {
			return nil, err
		}
		resp, err := c.getOnce(ctx, at, u, header)
		if err != nil {
			return nil, err
		}
		next, err := redirect(u, resp)
		if err != nil || next == nil {
			return resp, err
		}
		u = next
	}
	return nil, fault.Invalid("the upstream redirects more than %d times", maxHops)
}

func (c *Client) getOnce(ctx context.Context, at *hop, u *url.URL, header http.Header) (*http.Response, error) {
	if at.receipt.of != c {
		return nil, fault.Invalid("an upstream is asked what is not on record")
	}
	*at = hop{receipt: at.receipt, host: hostPort(u)}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { at.connected = true }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the upstream's URL can't be asked for")
	}
	req.Header = header.Clone()
	req.Header.Set("User-Agent", c.agent)
	if hostPort(u) == c.hosts.index && u.Scheme == c.base.Scheme {
		c.cfg.authorize(req)
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return nil, transportFault(ctx, err)
	}
	return resp, c.lookAtHead(resp)
}

// transportFault sorts what went wrong below HTTP. A refused address is a lie
// and stays one; the rest may mend itself.
func transportFault(ctx context.Context, err error) error {
	if errors.Is(err, fault.ErrInvalid) {
		return fault.Wrap(fault.ErrInvalid, err, "the upstream has an address that it may not have")
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, fault.ErrUnavailable) {
		return &retryable{err: cause}
	}
	return &retryable{err: fault.Wrap(fault.ErrUnavailable, err, "the upstream can't be reached")}
}

// redirect gives the next hop, nil if the answer is none; it then closes the
// body of this one.
func redirect(from *url.URL, resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil //nolint:nilnil // no next hop is not an error
	}
	discard(resp)
	next, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fault.Invalid("the upstream redirects to nowhere")
	}
	u := from.ResolveReference(next)
	u.Fragment = ""
	return u, nil
}

// discard lets the connection be used again if little is left.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 8<<10) // what can't be read is dropped with the connection
	_ = resp.Body.Close()
}

// status sorts an answer's status; nil is 200. It closes the body otherwise.
func status(resp *http.Response) error {
	code := resp.StatusCode
	if code == http.StatusOK {
		return nil
	}
	discard(resp)
	switch {
	case code == http.StatusNotFound || code == http.StatusGone:
		return fault.New(fault.ErrNotFound, "the upstream has no such project or file")
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired:
		return fault.Wrap(fault.ErrForbidden, ErrDeclined, "the upstream refuses the gateway's request with status %d", code)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &retryable{
			err:   fault.New(fault.ErrUnavailable, "the upstream answers with status %d", code),
			after: retryAfter(resp.Header.Get("Retry-After")),
		}
	}
	return fault.Invalid("the upstream answers with status %d, which does not answer this request", code)
}

func retryAfter(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		return time.Duration(min(n, 86400)) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
