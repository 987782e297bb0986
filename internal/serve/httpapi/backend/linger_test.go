package backend

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// closing tells of the connections of a listener that were closed.
type closing struct {
	net.Listener
	closed chan<- struct{}
}

func (l closing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &closingConn{Conn: c, closed: l.closed}, err
}

type closingConn struct {
	net.Conn
	closed chan<- struct{}
	once   sync.Once
}

func (c *closingConn) NetConn() net.Conn { return c.Conn }

func (c *closingConn) Close() error {
	c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

// refusing serves what answers before it has read a body, as the daemon does. wrap is what
// is around the listener.
func refusing(t *testing.T, network string, wrap func(net.Listener) net.Listener) (dial func() net.Conn, closed <-chan struct{}) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan struct{}, 10)
	l := wrap(closing{inner, ends})
	server := &http.Server{ConnContext: LingerContext, Handler: Hurried(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "who are you", http.StatusUnauthorized)
	}))}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return func() net.Conn {
		c, err := net.Dial(network, inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}, ends
}

// part of a body, of which the server reads but the beginning.
const part = 64 << 10

// asked sends a request and a part of its body, and reads the answer up to its end.
func asked(t *testing.T, c net.Conn) (answer string, err error) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 100*part, strings.Repeat("x", part)); err != nil {
		return "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		var n int
		if n, err = c.Read(make([]byte, 1)); n == 0 && errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return res.Status + " " + strings.TrimSpace(string(body)), err
}

// TestAnAnswerArrives also where nobody has read the body that is still being sent.
func TestAnAnswerArrives(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			dial, closed := refusing(t, network, Lingering)
			c := dial()
			if answer, err := asked(t, c); answer != "401 Unauthorized who are you" || err != nil {
				t.Fatalf("%q, %v", answer, err)
			}
			for range 4 {
				if _, err := c.Write(make([]byte, part)); err != nil {
					t.Fatalf("who goes on sending: %v", err)
				}
			}
			select {
			case <-closed:
				t.Error("it was closed before its client did so")
			default:
			}
			_ = c.Close()
			<-closed

			hasty, _ := refusing(t, network, func(l net.Listener) net.Listener { return l })
			if _, err := asked(t, hasty()); err == nil {
				t.Error("the control: a connection that does not linger was not reset")
			}
		})
	}
}

// halfway is a connection whose sending side can be closed.
type halfway struct {
	net.Conn
	over chan struct{}
	once sync.Once
}

func (h *halfway) CloseWrite() error { return nil }

func (h *halfway) Close() error {
	h.once.Do(func() { close(h.over) })
	return h.Conn.Close()
}

// TestLingeringEnds: a client that neither closes the connection nor stops sending, and one
// that does nothing, hold it for a while.
func TestLingeringEnds(t *testing.T) {
	for name, sends := range map[string]int{"is silent": 0, "goes on": 10 * lingerBytes} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				inner := &halfway{Conn: near, over: make(chan struct{})}
				c := &lingeringConn{Conn: inner, life: context.Background()}
				c.sending.Store(true)
				taken := make(chan int, 1)
				go func() {
					n, _ := far.Write(make([]byte, sends))
					taken <- n
				}()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				<-inner.over
				if n := <-taken; n > lingerBytes {
					t.Errorf("%d bytes were read of what nobody wants", n)
				}
				if err := c.Close(); err != nil {
					t.Errorf("a second time: %v", err)
				}
			})
		})
	}
}

// TestWhoLingers: the connection of a request with a body, also below TLS, until one without
// comes; none of HTTP/2.
func TestWhoLingers(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &lingeringConn{Conn: near, life: context.Background()}
	ctx := LingerContext(t.Context(), tls.Server(c, nil))
	if Innermost(tls.Server(c, nil)) != near {
		t.Error("the innermost connection is another")
	}
	for _, step := range []struct {
		body string
		h2   bool
		want bool
	}{{"x", false, true}, {"", false, false}, {"x", false, true}, {"x", true, false}} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/", strings.NewReader(step.body))
		if step.h2 {
			r.ProtoMajor = 2
		}
		Hurried(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
		if got := c.sending.Load(); got != step.want {
			t.Errorf("after %+v it lingers: %t", step, got)
		}
	}
	if LingerContext(t.Context(), near) != t.Context() {
		t.Error("another's connection is taken for one")
	}
}

// alone is a listener with one connection.
type alone struct {
	net.Listener
	conn net.Conn
}

func (a alone) Accept() (net.Conn, error) { return a.conn, nil }

func (alone) Close() error { return nil }

// TestNothingLingersAfterItsListener: the end of a server waits for nobody.
func TestNothingLingersAfterItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		inner := &halfway{Conn: near, over: make(chan struct{})}
		l := Lingering(alone{conn: inner})
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		noteBody(LingerContext(t.Context(), accepted), true)
		began := time.Now()
		_ = accepted.Close()
		synctest.Wait()
		select {
		case <-inner.over:
			t.Fatal("the control: it did not linger")
		default:
		}
		_ = l.Close()
		<-inner.over
		if !time.Now().Equal(began) { // by the clock of the test's own
			t.Error("its time had to pass")
		}
	})
}
