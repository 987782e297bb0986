package client

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Clock tells what time it is, and whether the host's clock has jumped.
func (c *Client) Clock(ctx context.Context) (api.Clock, error) {
	return fetchResult[api.Clock](ctx, c, http.MethodGet, "/v1/clock", nil)
}

// AcceptClock says that the host's clock is right, and answers how it stood.
func (c *Client) AcceptClock(ctx context.Context) (before api.Clock, err error) {
	return fetchResult[api.Clock](ctx, c, http.MethodPost, "/v1/clock/accept", nil)
}
