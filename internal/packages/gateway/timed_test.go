package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestARequestThatHasComeIsNotTimed: an answer that takes its upstream longer than a client may take to send a request is given, as the client
// has not left. net/http lifts the time of a request that has come.
func TestARequestThatHasComeIsNotTimed(t *testing.T) {
	t.Parallel()
	const timed = 300 * time.Millisecond
	b := newBench(t, func(c *gateway.Config) {
		c.Limits.RequestTime, c.Limits.Upstream.HeaderWait = timed, time.Minute
	})
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	late := func(reply liar.Reply) liar.Reply {
		return func(s *liar.Server, w http.ResponseWriter, r *http.Request) {
			<-time.After(3 * timed)
			reply(s, w, r)
		}
	}
	path := "/p/" + foo.File
	b.registry.Script(filesHost+path, late(liar.Body("application/zip", foo.Bytes)))
	b.registry.Script(filesHost+path+".metadata", late(liar.Body("text/plain", foo.Metadata)))
	for _, what := range []string{path + ".metadata", path} {
		if a := b.get(what); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", what, status(a))
		}
	}
}
