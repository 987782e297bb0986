package requests

import (
	"context"
	"net"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httpqueue"
)

// expectHead has a client's next head over HTTP/1 counted while it comes, which may take as long
// as HeadTime. Over HTTP/2 one is read after the other, within a bound that counts fields as well.
func (c *Carrier) expectHead(from *single, conn net.Conn, state http.ConnState) {
	if _, isFramed := conn.(*httpqueue.Conn); isFramed || c.config.Memory == nil {
		return
	}
	if state == http.StateNew || state == http.StateIdle {
		from.head.Expect(c.config.Memory, maxRequestHead+httphead.Slack)
	}
}

// refuseHead puts on record that there is no room for a client's head. net/http ends the connection.
func (c *Carrier) refuseHead(ctx context.Context) {
	c.config.Refuse(ctx, &Refusal{Rule: door.RuleHostMemory, Reason: c.config.Memory.Sentence()}, "")
}
