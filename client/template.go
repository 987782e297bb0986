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

// Templates lists the templates that are built.
func (c *Client) Templates(ctx context.Context) ([]api.Template, error) {
	return fetchResult[[]api.Template](ctx, c, http.MethodGet, "/v1/templates", nil)
}

// Template returns a template and what is in it.
func (c *Client) Template(ctx context.Context, name string) (api.TemplateLedger, error) {
	return fetchResult[api.TemplateLedger](ctx, c, http.MethodGet, "/v1/templates/"+url.PathEscape(name), nil)
}

// RemoveTemplate deletes one; status 409 if a sandbox uses it.
func (c *Client) RemoveTemplate(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/templates/"+url.PathEscape(name), nil, nil)
}

// BuildTemplate builds a template, calls progress for each step (in this
// goroutine), and returns when it is done. Ending ctx ends the build.
func (c *Client) BuildTemplate(ctx context.Context, name string, progress func(api.TemplateEvent)) (api.Template, error) {
	resp, err := c.send(ctx, http.MethodPost, "/v1/templates/"+url.PathEscape(name), nil)
	if err != nil {
		return api.Template{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	dec := json.NewDecoder(resp.Body)
	for {
		var event api.TemplateEvent
		err := dec.Decode(&event)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return api.Template{}, fmt.Errorf("build the template %s: %w", name, ErrLost)
		case err != nil:
			return api.Template{}, fmt.Errorf("build the template %s: %w", name, err)
		case event.Error != "":
			return api.Template{}, &Error{Problem: api.Problem{Status: http.StatusInternalServerError, Detail: event.Error}}
		case event.Done != nil:
			return *event.Done, nil
		}
		progress(event)
	}
}
