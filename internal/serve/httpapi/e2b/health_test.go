package e2b

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// untaken is a writer over HTTP/2 of whose stream nothing is taken, and notes how long that may go on.
type untaken struct {
	http.ResponseWriter
	ended chan bool
	until time.Time
}

// CloseNotify tells that a stream has ended, as net/http does.
func (u *untaken) CloseNotify() <-chan bool { return u.ended }

// SetWriteDeadline serves http.ResponseController.
func (u *untaken) SetWriteDeadline(until time.Time) error {
	u.until = until
	return nil
}

// TestWhoAsksForHealthTakesNothingOfTheOwner: anybody may, also with a body that nobody reads and without taking the answer; and whoever
// visits a port knows the sandbox's id. The controls are requests with the sandbox's token, of which one's body is read.
func TestWhoAsksForHealthTakesNothingOfTheOwner(t *testing.T) {
	const statPath = filesystemService + "Stat"
	for path, c := range map[string]struct {
		kept int
		time time.Duration
	}{
		healthPath:       {0, httphead.Uncounted},
		"/no/such/route": {backend.ReceiveBuffer, httphead.Untaken},
		statPath:         {0, httphead.Untaken}, // which reads it
	} {
		for _, port := range []string{"49983", "49999"} {
			if path == statPath && port == "49999" {
				continue // it is no route there
			}
			s := newDataStage(t)
			room := backend.NewRoom()
			s.data.cfg.Room = room
			r := s.request(http.MethodPost, path, strings.NewReader("{}"))
			r.Header.Set("Content-Type", typeUnary)
			r.Header.Set(headerPort, port)
			r.ProtoMajor, r.ContentLength, r.RequestURI = 2, -1, path
			if path == healthPath {
				r.Header.Del("X-Access-Token")
			}
			began := time.Now()
			w := &untaken{ResponseWriter: httptest.NewRecorder(), ended: make(chan bool)}
			backend.Hurried(s.data).ServeHTTP(w, r)
			ctx, leave := room.Enter(t.Context(), roomOf(s.data.cfg.Sandboxes.List()[0]))
			free := 0
			for backend.Take(ctx, 1<<10) == nil {
				free += 1 << 10
			}
			leave()
			close(w.ended)
			if kept := backend.RoomEach - free; kept != c.kept {
				t.Errorf("%s at %s: %d bytes of the owner's room are taken", path, port, kept)
			}
			if took := w.until.Sub(began).Round(time.Second); took != c.time {
				t.Errorf("%s at %s: the stream may go on for %s", path, port, took)
			}
		}
	}
}
