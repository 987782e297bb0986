package httphead_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// told is a connection of a server that says what it reads and writes.
type told struct {
	net.Conn
	to   *httphead.Unhandled
	most int // bytes that are read at once
}

func (c told) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.most)])
	c.to.Read(b[:n], err)
	return n, err
}

func (c told) Write(b []byte) (int, error) {
	c.to.Wrote(len(b))
	return c.Conn.Write(b)
}

// once is a listener of one connection.
type once struct {
	conns chan net.Conn
	over  chan struct{}
}

func (l once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l once) Close() error   { return nil }
func (l once) Addr() net.Addr { return &net.UnixAddr{} }

// serve has net/http serve one connection, on which all of said comes before its client goes, which waits for so many
// answers before that; pieces are read of at most so many bytes. It tells how many requests a handler was told of, and
// whether something else came.
func serve(t *testing.T, said string, answered, most int, reads bool) (handled int64, something bool) {
	t.Helper()
	unhandled := &httphead.Unhandled{}
	here, there := net.Pipe()
	l := once{make(chan net.Conn, 1), make(chan struct{})}
	var count atomic.Int64
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			unhandled.Handle(r)
			count.Add(1)
			if reads {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			w.Header().Set("Content-Length", "0")
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state { //nolint:exhaustive // the others are no request's
			case http.StateIdle:
				unhandled.Idle()
			case http.StateClosed:
				close(l.over)
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	l.conns <- told{there, unhandled, most}
	enough, gone := make(chan struct{}), make(chan struct{})
	if answered == 0 {
		close(enough)
	}
	go func() {
		defer close(gone)
		all := bufio.NewScanner(here)
		for n := 0; all.Scan(); {
			if strings.HasPrefix(all.Text(), "HTTP/") {
				if n++; n == answered {
					close(enough)
				}
			}
		}
	}()
	go func() {
		_, _ = io.WriteString(here, said)
		select {
		case <-enough:
		case <-gone: // the server has ended it
		}
		_ = here.Close()
	}()
	_ = server.Serve(l)
	<-l.over
	<-gone
	return count.Load(), unhandled.Something()
}

// TestWhatComesBehindARequestIsFound: half a head that is read together with the request before it is something of
// which no handler was told, however that request's body is framed and its bytes are cut. The controls are the same
// without it, and with a whole request in its place.
func TestWhatComesBehindARequestIsFound(t *testing.T) {
	t.Parallel()
	const whole = "GET /whole HTTP/1.1\r\nHost: a\r\n\r\n"
	requests := map[string]struct {
		said string
		are  int
	}{
		"none":                        {"", 0},
		"without a body":              {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		"with bare line feeds":        {"GET / HTTP/1.1\nHost: a\n\n", 1},
		"a length":                    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 22\r\n\r\nGET / HTTP/1.1\r\nX: 12\r\n", 1},
		"a length of nothing":         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 1},
		"chunks":                      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n1A\r\n" + strings.Repeat("\r\n", 13) + "\r\n0\r\n\r\n", 1},
		"chunks that say more":        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0002;a=b\r\n0\r\r\n3 \r\n\r\n0\r\n0;x\r\n\r\n", 1},
		"chunks with fields behind":   {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\nx\r\n0\r\nX: y\r\nY: z\r\n\r\n", 1},
		"an empty line behind a body": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\n", 1},
		"several":                     {strings.Repeat(whole, 3), 3},
		"several of different kinds":  {whole + "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + whole, 3},
	}
	halves := []string{"D", "DELETE /secret", "DELETE /secret HTTP/1.1\r\n", "DELETE /secret HTTP/1.1\r\nHost: a\r\n", whole[:len(whole)-1]}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, most := range []int{1, 2, 7, 4096} {
				for _, reads := range []bool{true, false} {
					if n, something := serve(t, request.said, request.are, most, reads); something || int(n) != request.are {
						t.Fatalf("in pieces of %d, read %t: %d requests are handled, and something else came: %t", most, reads, n, something)
					}
					if n, something := serve(t, request.said+whole, request.are+1, most, reads); something || int(n) != request.are+1 {
						t.Errorf("with a whole one behind, in pieces of %d, read %t: %d are handled, and something else came: %t", most, reads, n, something)
					}
					for _, half := range halves {
						for _, waits := range []int{0, request.are} {
							if n, something := serve(t, request.said+half, waits, most, reads); !something || int(n) > request.are || waits > 0 && int(n) != waits {
								t.Errorf("with %q behind, in pieces of %d, read %t, and %d answers waited for: %d are handled, and something else came: %t", half, most, reads, waits, n, something)
							}
						}
					}
				}
			}
		})
	}
}

// TestWhatEndsAConnectionIsNoCover: what comes behind a request at which the server ends the connection reached nobody.
func TestWhatEndsAConnectionIsNoCover(t *testing.T) {
	t.Parallel()
	const last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	for _, c := range []struct {
		said string
		is   bool
	}{{last, false}, {last + "\r\n", false}, {last + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n", true}, {last + "GE", true}} {
		if n, something := serve(t, c.said, 1, 4096, true); n != 1 || something != c.is {
			t.Errorf("%q: %d are handled, and something else came: %t", c.said, n, something)
		}
	}
}

// TestABodyThatBreaksOffIsItsRequests: a handler was told of that one.
func TestABodyThatBreaksOffIsItsRequests(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nGET / HTTP/1.1\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n",
	} {
		for _, reads := range []bool{true, false} {
			if n, something := serve(t, said, 0, 4096, reads); n != 1 || something {
				t.Errorf("%q, read %t: %d are handled, and something else came: %t", said, reads, n, something)
			}
		}
	}
}
