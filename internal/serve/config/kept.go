package config

import (
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// keptWell refuses a file with credentials that others can read.
func (c Config) keptWell(path string, mode fs.FileMode) error {
	if what := c.credential(); what != "" && mode&0o077 != 0 {
		return fault.New(fault.ErrForbidden, "the configuration file %s is refused: it has credentials (%s), and others can read it (its mode is %#o); chmod 600 it, and renew them if somebody may have read them", path, what, mode)
	}
	return nil
}

// credential is where the first secret stands; "" if there is none.
func (c Config) credential() string {
	for i, u := range c.Upstreams {
		if u.Token != "" {
			return fmt.Sprintf("upstreams[%d].token", i)
		}
		for key, text := range map[string]string{"index": u.Index, "proxy": u.Proxy, "log_url": u.LogURL} {
			if hasUser(text) {
				return fmt.Sprintf("upstreams[%d].%s", i, key)
			}
		}
	}
	for i, w := range c.Approvals.Webhooks {
		if w.Format == "slack" || hasUser(w.URL) { // such an address is the credential
			return fmt.Sprintf("approvals.webhooks[%d].url", i)
		}
	}
	if hasUser(c.Audit.Publish.URL) {
		return "audit.publish.url"
	}
	if hasUser(c.Telemetry.Traces.Endpoint) {
		return "telemetry.traces.endpoint"
	}
	if len(c.Telemetry.Traces.Headers) > 0 {
		return "telemetry.traces.headers"
	}
	return ""
}

// hasUser tells whether a URL, or a proxy without a scheme, names a user.
func hasUser(text string) bool {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	return err == nil && u.User != nil
}
