package client

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Call has code run by itself, without a sandbox, and returns when it has ended. A mistake of the
// code is the result's Failure; an error with the status 403 is that the policy refuses it. The
// call ends with ctx.
func Call(ctx context.Context, c *Client, call api.Call) (api.CallResult, error) {
	return fetchResult[api.CallResult](ctx, c, http.MethodPost, "/v1/calls", call)
}
