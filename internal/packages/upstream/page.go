package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A page may inflate to inflateFree bytes at any ratio and to inflateRatio
// times its packed size beyond that. Real pages reach 30:1.
const (
	inflateFree  = 4 << 20
	inflateRatio = 100
)

// PageAsk asks for a page.
type PageAsk struct {
	URL    string
	Accept string
	Types  []string // media types that the answer may have; empty: any
	ETag   string   // of the page that we have; then it may be NotModified
	Most   int64    // bytes after inflating; 0 or more than the client's limit: that limit
	// Exact tells that the bytes are verified, by a digest or a signature: an answer with the upstream's
	// credential in it is refused then, and has it masked otherwise.
	Exact bool
	// Subject is for the record that the question leaves, unless Receipt says that there is one.
	Subject Subject
	Receipt Receipt
}

// Page is an answer, whose bytes are in the sink.
type Page struct {
	NotModified bool // the page that we have is still the upstream's; the rest is empty
	URL         string
	ContentType string
	ETag        string // "" if it is Masked
	Masked      bool   // the upstream's credential was in it, and is not in what the sink has
}

// Page fetches a page, whole and inflated, into a sink. It never
// has all of it in memory. After an error, and if the page is NotModified, what is in
// the sink is nothing.
func (c *Client) Page(ctx context.Context, ask PageAsk, sink Sink) (Page, error) {
	var page Page
	err := c.retryAttempts(ctx, upstreamQuestion{ask.URL, ask.Subject, ask.Receipt}, func(ctx context.Context, at *hop) error {
		if err := sink.Reset(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, c.limits.PageTime, fault.New(fault.ErrUnavailable, "the upstream takes too long to answer"))
		defer cancel()
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		var err error
		page, err = c.onePage(ctx, stop, at, ask, sink)
		return err
	})
	return page, err
}

func (c *Client) onePage(ctx context.Context, cancel context.CancelCauseFunc, at *hop, ask PageAsk, sink Sink) (Page, error) {
	header := http.Header{"Accept": {ask.Accept}, "Accept-Encoding": {"gzip"}}
	if ask.ETag != "" {
		header.Set("If-None-Match", ask.ETag)
	}
	resp, err := c.getURL(ctx, at, ask.URL, header)
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && ask.ETag != "" {
		return Page{NotModified: true}, nil
	}
	if err := status(resp); err != nil {
		return Page{}, err
	}
	if err := checkType(resp, ask.Types); err != nil {
		return Page{}, err
	}
	if err := delimited(resp); err != nil {
		return Page{}, err
	}
	body, stop := paceBody(resp.Body, c.limits.PaceWindow, c.limits.PaceBytes, cancel)
	defer stop()
	to := c.receiveBody(resp, sink, ask.Exact)
	err = inflate(to, body, resp.Header.Values("Content-Encoding"), c.mostBytes(ask))
	if err == nil {
		err = to.endBody()
	}
	if err != nil {
		if refused, ok := errors.AsType[*sinkError](err); ok {
			return Page{}, refused.err
		}
		return Page{}, bodyFault(ctx, err)
	}
	return pageOf(resp, to.masked()), nil
}

// pageOf is an answer whose body has come. The ETag of one that is masked is of other bytes: asked for by it, the
// page would stay masked when the credential is another.
func pageOf(resp *http.Response, masked bool) Page {
	page := Page{URL: resp.Request.URL.String(), ContentType: resp.Header.Get("Content-Type"), Masked: masked}
	if !masked {
		page.ETag = resp.Header.Get("ETag")
	}
	return page
}

func (c *Client) mostBytes(ask PageAsk) int64 {
	if ask.Most > 0 {
		return min(ask.Most, c.limits.PageBytes)
	}
	return c.limits.PageBytes
}

func checkType(resp *http.Response, types []string) error {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if len(types) > 0 && (err != nil || !slices.Contains(types, media)) {
		return fault.Invalid("the upstream answers with a content type that its protocol does not have")
	}
	return nil
}

// delimited refuses an answer of which nobody can tell whether it is whole: one
// that ends where its connection does, unless what is in it has an end mark.
func delimited(resp *http.Response) error {
	packed := strings.EqualFold(strings.Join(resp.Header.Values("Content-Encoding"), ","), "gzip")
	if resp.ProtoMajor > 1 || resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || packed {
		return nil
	}
	return fault.Invalid("the upstream's answer says nowhere where it ends, so one that was cut could not be told from a whole one")
}

// bodyFault sorts an error of reading a body.
func bodyFault(ctx context.Context, err error) error {
	if errors.Is(err, fault.ErrInvalid) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, fault.ErrUnavailable) {
		return &retryable{err: cause}
	}
	return &retryable{err: fault.Wrap(fault.ErrUnavailable, err, "the upstream's answer ends before its end")}
}

// inflate copies a body whole, at most limit bytes of it after unpacking.
func inflate(to io.Writer, body io.Reader, encodings []string, limit int64) error {
	switch strings.ToLower(strings.Join(encodings, ",")) {
	case "", "identity":
		return copyLimited(to, body, limit, nil)
	case "gzip":
	default:
		return fault.Invalid("the upstream packs its answer in a way that it was not asked for")
	}
	packed := &counter{r: body}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return gzipFault(err)
	}
	return gzipFault(copyLimited(to, z, limit, packed))
}

func gzipFault(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return fault.Wrap(fault.ErrInvalid, err, "the upstream's answer is not the gzip that it says")
	}
	return err
}

// copyLimited copies to the end; with packed it also watches the ratio.
func copyLimited(to io.Writer, from io.Reader, limit int64, packed *counter) error {
	_, err := io.Copy(&limitedWriter{to: to, limit: limit, packed: packed}, from)
	return err
}

// limitedWriter passes bytes on until there are too many.
type limitedWriter struct {
	to     io.Writer
	size   int64
	limit  int64
	packed *counter // nil: the bytes were not packed
}

// Write implements io.Writer.
func (l *limitedWriter) Write(p []byte) (int, error) {
	l.size += int64(len(p))
	switch {
	case l.size > l.limit:
		return 0, fault.Invalid("the upstream's answer has more than %d bytes", l.limit)
	case l.packed != nil && l.size > inflateFree && l.size > inflateRatio*l.packed.n:
		return 0, fault.Invalid("the upstream's answer inflates more than %d times", inflateRatio)
	}
	return l.to.Write(p)
}

// counter counts the packed bytes.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
