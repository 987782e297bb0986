package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// heldAnswer is what of a sandbox's memory a request has taken for the bytes of its answer. They are in
// memory until the guest has read them, which it may never do.
type heldAnswer struct {
	of httphead.Account // nil: nobody counts

	mu    sync.Mutex // guards bytes
	bytes int64
}

func (h *heldAnswer) takeBytes(bytes int64) bool {
	if h.of == nil {
		return true
	}
	if !h.of.Take(bytes) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes
	return true
}

// giveBytes gives all back.
func (h *heldAnswer) giveBytes() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of != nil && h.bytes > 0 {
		h.of.Give(h.bytes)
	}
	h.bytes = 0
}

// recordTime bounds how long the door takes to record that there is no room.
const recordTime = 10 * time.Second

// holdBytes takes so many bytes for the answer until the request has ended, if the client is still there. false: there is no
// room, and the guest was told so, on record.
func (g *Gateway) holdBytes(q *query, bytes int) bool {
	q.orLeave()
	if q.held.takeBytes(int64(bytes)) {
		return true
	}
	const reason = "the run has as much in the gateway's memory as it may; let some of its downloads end first"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), recordTime)
	defer cancel()
	if _, err := g.door.HostRefused(ctx, door.HostRefusal{Sandbox: q.sandbox, Name: q.conn.name, Port: 443, Rule: door.RuleHostMemory, Reason: reason}); err != nil {
		g.log.Error("a refused answer of a registry could not be recorded", "sandbox", q.sandbox, "error", err)
	}
	q.answerProblem(http.StatusServiceUnavailable, reason+" (rule "+door.RuleHostMemory+")")
	return false
}
