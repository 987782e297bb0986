package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Homes lists what this user keeps from one sandbox to the next.
func Homes(ctx context.Context, c *Client) ([]api.KeptHome, error) {
	return fetchResult[[]api.KeptHome](ctx, c, http.MethodGet, "/v1/homes", nil)
}

// RemoveHome removes one; status 409 while a sandbox has it.
func RemoveHome(ctx context.Context, c *Client, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/homes/"+url.PathEscape(name), nil, nil)
}
