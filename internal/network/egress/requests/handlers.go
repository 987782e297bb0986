package requests

import "sync"

// handlers are a connection's requests that are being answered. The server tells that a
// connection is closed before those of HTTP/2 have returned, and starts some of them later
// still; so they are counted here, and none begins once the connection is done with.
type handlers struct {
	mu    sync.Mutex // guards both
	ended bool
	group sync.WaitGroup // to which nothing is added once ended is set
}

// beginHandler counts one in; false: the connection is done with.
func (h *handlers) beginHandler() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.group.Add(1)
	return true
}

func (h *handlers) handlerDone() { h.group.Done() }

// endHandlers waits for all that have begun, and lets no other begin.
func (h *handlers) endHandlers() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.group.Wait()
}
