package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Advisories lists what was imported about packages.
func (c *Client) Advisories(ctx context.Context) (api.Advisories, error) {
	return fetchResult[api.Advisories](ctx, c, http.MethodGet, "/v1/advisories", nil)
}

// ImportAdvisories imports facts about packages, calls progress for each step
// (in this goroutine), and returns when they count. With an error that is an
// *Error the answer tells how far the import came. Ending ctx ends it, and
// nothing is replaced. Only callers on the Unix socket may name a path of the
// daemon's host; over the network it is UploadAdvisories that imports.
func (c *Client) ImportAdvisories(ctx context.Context, req api.ImportAdvisories, progress func(api.AdvisoryEvent)) (api.AdvisoryImport, error) {
	resp, err := c.send(ctx, http.MethodPost, "/v1/advisories", req)
	if err != nil {
		return api.AdvisoryImport{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return followImport(resp.Body, req.Path, progress)
}

// UploadAdvisories imports bytes, as ImportAdvisories imports a path of the daemon's host: a zip or a JSON file of OSV records,
// or a list of names. The label is needed, and the path is not used.
func (c *Client) UploadAdvisories(ctx context.Context, req api.ImportAdvisories, content io.Reader, progress func(api.AdvisoryEvent)) (api.AdvisoryImport, error) {
	q := url.Values{}
	if req.Popular != "" {
		q.Set("popular", req.Popular)
	}
	if req.KeepGoing {
		q.Set("keep_going", "1")
	}
	// The transport would close what it can; the content is the caller's.
	upload, err := c.rawRequest(ctx, http.MethodPut, "/v1/advisories/"+url.PathEscape(req.Label)+encoded(q), io.NopCloser(content))
	if err != nil {
		return api.AdvisoryImport{}, err
	}
	upload.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.doRequest(upload)
	if err != nil {
		return api.AdvisoryImport{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return followImport(resp.Body, req.Label, progress)
}

// followImport reads an import's progress to its end.
func followImport(events io.Reader, what string, progress func(api.AdvisoryEvent)) (api.AdvisoryImport, error) {
	dec := json.NewDecoder(events)
	for {
		var event api.AdvisoryEvent
		err := dec.Decode(&event)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return api.AdvisoryImport{}, fmt.Errorf("import %s: %w", what, ErrLost)
		case err != nil:
			return api.AdvisoryImport{}, fmt.Errorf("import %s: %w", what, err)
		case event.Done == nil && event.Error == "":
			progress(event)
			continue
		}
		done := api.AdvisoryImport{}
		if event.Done != nil {
			done = *event.Done
		}
		if event.Error != "" {
			return done, &Error{Problem: api.Problem{Status: event.Status, Detail: event.Error}}
		}
		return done, nil
	}
}

// RemoveAdvisories forgets what was imported under a label; status 404 if
// nothing was.
func (c *Client) RemoveAdvisories(ctx context.Context, label string) error {
	return c.call(ctx, http.MethodDelete, "/v1/advisories/"+url.PathEscape(label), nil, nil)
}

// RemoveAllAdvisories forgets everything that was imported, also what is
// damaged.
func (c *Client) RemoveAllAdvisories(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/v1/advisories?all=1", nil, nil)
}

// CheckPackage tells what is known of a package, and with a version of that
// release.
func (c *Client) CheckPackage(ctx context.Context, ecosystem, name, version string) (api.PackageFacts, error) {
	q := url.Values{"ecosystem": {ecosystem}, "name": {name}, "version": {version}}
	return fetchResult[api.PackageFacts](ctx, c, http.MethodGet, "/v1/advisories/check?"+q.Encode(), nil)
}
