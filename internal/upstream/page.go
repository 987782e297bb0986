package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// A page may inflate to inflateFree bytes at any ratio and to inflateRatio
// times its packed size beyond that. Real pages reach 30:1.
const (
	inflateFree  = 4 << 20
	inflateRatio = 100
)

// largePage is the size from which a page waits for one of the few slots for
// large ones, so that many at a time don't fill the memory.
const largePage = 4 << 20

// PageAsk asks for a page.
type PageAsk struct {
	URL    string
	Accept string
	Types  []string // media types that the answer may have; empty: any
	ETag   string   // of the page that we have; then it may be NotModified
}

// Page is an answer, whole and inflated.
type Page struct {
	NotModified bool // the page that we have is still the upstream's; the rest is empty
	URL         string
	ContentType string
	ETag        string
	Body        []byte
}

// Page fetches a page within the client's limits.
func (c *Client) Page(ctx context.Context, ask PageAsk) (Page, error) {
	var page Page
	err := c.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, c.limits.PageTime, fault.New(fault.ErrUnavailable, "the upstream takes too long to answer"))
		defer cancel()
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		var err error
		page, err = c.onePage(ctx, stop, ask)
		return err
	})
	return page, err
}

func (c *Client) onePage(ctx context.Context, cancel context.CancelCauseFunc, ask PageAsk) (Page, error) {
	header := http.Header{"Accept": {ask.Accept}, "Accept-Encoding": {"gzip"}}
	if ask.ETag != "" {
		header.Set("If-None-Match", ask.ETag)
	}
	resp, err := c.get(ctx, ask.URL, header)
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
	body, stop := pace(resp.Body, c.limits.PaceWindow, c.limits.PaceBytes, cancel)
	defer stop()
	large, release := c.largeSlot(ctx)
	defer release()
	data, err := inflate(body, resp.Header.Values("Content-Encoding"), c.limits.PageBytes, large)
	if err != nil {
		return Page{}, bodyFault(ctx, err)
	}
	return Page{
		URL:         resp.Request.URL.String(),
		ContentType: resp.Header.Get("Content-Type"),
		ETag:        resp.Header.Get("ETag"),
		Body:        data,
	}, nil
}

// largeSlot gives a function that takes one of the client's slots for large
// pages, once, and one that gives it back if it was taken.
func (c *Client) largeSlot(ctx context.Context) (take func() error, release func()) {
	taken := false
	take = func() error {
		if taken {
			return nil
		}
		select {
		case c.large <- struct{}{}:
			taken = true
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	release = func() {
		if taken {
			<-c.large
		}
	}
	return take, release
}

func checkType(resp *http.Response, types []string) error {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if len(types) > 0 && (err != nil || !slices.Contains(types, media)) {
		return fault.Invalid("the upstream answers with a content type that its protocol does not have")
	}
	return nil
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

// inflate reads a body whole, at most limit bytes of it after unpacking.
func inflate(body io.Reader, encodings []string, limit int64, large func() error) ([]byte, error) {
	switch strings.ToLower(strings.Join(encodings, ",")) {
	case "", "identity":
		return readLimited(body, limit, nil, large)
	case "gzip":
	default:
		return nil, fault.Invalid("the upstream packs its answer in a way that it was not asked for")
	}
	packed := &counter{r: body}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, gzipFault(err)
	}
	data, err := readLimited(z, limit, packed, large)
	if err != nil {
		return nil, gzipFault(err)
	}
	return data, nil
}

func gzipFault(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return fault.Wrap(fault.ErrInvalid, err, "the upstream's answer is not the gzip that it says")
	}
	return err
}

// readLimited reads to the end; with packed it also watches the ratio. It calls
// large before it takes more than largePage bytes.
func readLimited(r io.Reader, limit int64, packed *counter, large func() error) ([]byte, error) {
	var out bytes.Buffer
	for {
		if out.Len() >= largePage {
			if err := large(); err != nil {
				return nil, err
			}
		}
		n, err := io.CopyN(&out, r, 256<<10)
		size := int64(out.Len())
		switch {
		case size > limit:
			return nil, fault.Invalid("the upstream's answer has more than %d bytes", limit)
		case packed != nil && size > inflateFree && size > inflateRatio*packed.n:
			return nil, fault.Invalid("the upstream's answer inflates more than %d times", inflateRatio)
		case errors.Is(err, io.EOF) && n < 256<<10:
			return out.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
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
