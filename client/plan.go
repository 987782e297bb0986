package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/api"
)

// MakePlan has the daemon weigh what the resolver of a run in plan mode chose,
// while its sandbox lives.
func (c *Client) MakePlan(ctx context.Context, run string, resolved api.ResolvedPlan) (api.Plan, error) {
	return fetchResult[api.Plan](ctx, c, http.MethodPost, "/v1/runs/"+url.PathEscape(run)+"/plan", resolved)
}

// Plan gives a run's last plan again.
func (c *Client) Plan(ctx context.Context, run string) (api.Plan, error) {
	return fetchResult[api.Plan](ctx, c, http.MethodGet, "/v1/runs/"+url.PathEscape(run)+"/plan", nil)
}
