package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestWhatNobodyTakesEnds: a route that streams, or that was upgraded, ends when its client over the network takes
// nothing more, with or without a token. The user of the Unix socket may pause for as long as that likes: the control.
func TestWhatNobodyTakesEnds(t *testing.T) {
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: &approvaltest.Log{}, Tokens: book, Untaken: 50 * time.Millisecond})
	endless := func(to io.Writer) error {
		for piece := make([]byte, 1<<20); ; {
			if _, err := to.Write(piece); err != nil {
				return errAnswered
			}
		}
	}
	upgraded := func(w http.ResponseWriter, _ *http.Request) error {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, ok := backend.Innermost(conn).(*net.TCPConn); !ok {
			t.Errorf("what was upgraded is a %T, of which nobody sees that its client has gone", backend.Innermost(conn))
		}
		return endless(conn)
	}
	for name, c := range map[string]struct {
		secret string
		who    who
		handle routeHandler
	}{
		"a stream of a token's":    {secret, holders, func(w http.ResponseWriter, _ *http.Request) error { return endless(w) }},
		"a stream of a stranger's": {"", anyone, func(w http.ResponseWriter, _ *http.Request) error { return endless(w) }},
		"what was upgraded":        {secret, holders, upgraded},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				s.serveRoute(route{"GET /x", c.who, c.handle})(w, r)
			}))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: h\r\nX-Api-Key: %s\r\n\r\n", c.secret)
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("it goes on")
			}
		})
	}
}

// stuck is a writer over HTTP/2 whose client takes nothing until a deadline ends that.
type stuck struct {
	http.ResponseWriter
	late chan time.Time // has room for one
}

// Write implements http.ResponseWriter.
func (s *stuck) Write([]byte) (int, error) {
	time.Sleep(time.Until(<-s.late))
	return 0, os.ErrDeadlineExceeded
}

// SetWriteDeadline serves http.ResponseController.
func (s *stuck) SetWriteDeadline(until time.Time) error {
	select {
	case s.late <- until:
	default:
	}
	return nil
}

// TestAStrangersPlaceIsSoonFree: who shows no token has one of the places of all strangers, and keeps it from no other one for longer than those
// for whom nobody is counted, whether the answer is being written or the last of it is left. The control is a token's request.
func TestAStrangersPlaceIsSoonFree(t *testing.T) {
	for name, c := range map[string]struct {
		secret bool
		length int
		want   time.Duration
	}{
		"a stranger":                      {false, 1 << 20, httphead.Uncounted},
		"a stranger, with a short answer": {false, 1, httphead.Uncounted},
		"a token":                         {true, 1 << 20, httphead.Untaken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
				if err != nil {
					t.Fatal(err)
				}
				s := New(Config{Log: &approvaltest.Log{}, Tokens: book, Underway: backend.NewUnderway()})
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
				r.ProtoMajor = 2
				if c.secret {
					_, secret, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("X-Api-Key", secret)
				}
				w := &stuck{httptest.NewRecorder(), make(chan time.Time, 1)}
				began := time.Now()
				backend.Hurried(s.serveRoute(route{"GET /x", anyone, func(w http.ResponseWriter, _ *http.Request) error {
					if c.length == 1 {
						return nil // it is left to the server
					}
					_, err := w.Write(make([]byte, c.length))
					return errors.Join(errAnswered, err)
				}})).ServeHTTP(w, r)
				took := time.Since(began)
				if c.length == 1 {
					took = time.Until(<-w.late)
				}
				if took != c.want {
					t.Errorf("%s, not %s", took, c.want)
				}
			})
		})
	}
}
