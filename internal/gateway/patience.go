package gateway

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// keepPatient keeps a client waiting for its answer: the server's own limits do
// not count while a person is asked, and a client that counts the time since the
// last byte is sent "100 Continue", where it is known to skip that. Which do, and
// what the others do, is in docs/approvals-clients.md. The connection is the
// caller's again once stop has returned.
//
// An interim answer to a sandbox that is frozen waits in the connection's
// window; it goes out when the sandbox runs again, which it does before the
// answer comes.
func (a *asked) keepPatient(interim time.Duration) (stop func()) {
	control := http.NewResponseController(a.w)
	_ = control.SetReadDeadline(time.Time{})  // the request is read; without it the client is cut off
	_ = control.SetWriteDeadline(time.Time{}) // later, and its retry joins
	if !countsSinceLastByte(a.r.UserAgent()) || !a.r.ProtoAtLeast(1, 1) {
		return func() {}
	}
	end := make(chan struct{})
	var sender sync.WaitGroup
	errand.In(&sender, func() {
		tick := time.NewTicker(interim)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				a.w.WriteHeader(http.StatusContinue)
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		sender.Wait()
	}
}

// countsSinceLastByte tells the clients whose time limit is one of silence and that
// skip any number of "100 Continue": those on Python's http.client, and pnpm.
func countsSinceLastByte(agent string) bool {
	for _, name := range []string{"pip/", "python-requests/", "python-urllib3/", "Python-urllib/", "poetry/", "pnpm/"} {
		if strings.HasPrefix(agent, name) {
			return true
		}
	}
	return false
}
