package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/api"
)

// AlarmFilter says of which run or sandbox alarms are asked for, and since when.
type AlarmFilter struct {
	Run     string
	Sandbox string
	After   string // the Next of an answer before; "": none is told, and the answer's Next begins with what is still to come
}

// Alarms tells which alarms a run has had since an answer before, oldest first. It waits for the
// records of commands that have ended. A daemon that is older answers with status 404.
func Alarms(ctx context.Context, c *Client, f AlarmFilter) (api.Alarms, error) {
	q := url.Values{}
	for key, value := range map[string]string{"run": f.Run, "sandbox": f.Sandbox, "after": f.After} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return fetchResult[api.Alarms](ctx, c, http.MethodGet, "/v1/alarms"+encoded(q), nil)
}
