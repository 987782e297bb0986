package client

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// ReloadConfig has a client's daemon read its configuration file again. Of one that is wrong it takes nothing.
func ReloadConfig(ctx context.Context, c *Client) (api.ConfigReload, error) {
	return fetchResult[api.ConfigReload](ctx, c, http.MethodPost, "/v1/config/reload", nil)
}
