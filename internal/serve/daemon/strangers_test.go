package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// oneToken is a book with one secret, and another's.
type oneToken struct{}

func (oneToken) Check(secret string) (token.Token, bool) {
	if secret == "other" {
		return token.Token{ID: "t2"}, true
	}
	return token.Token{ID: "t1"}, secret == "good"
}

// guardedFront serves a front whose wires answer, behind a guarded listener.
func guardedFront(t *testing.T, most int) (address string, g *guarded) {
	t.Helper()
	l := listen(t)
	g = newGuarded(l, most)
	f := newFront(t, 1e6, 1e6)
	f.tokens = oneToken{}
	s := newServer("test", g, f.handler(), quiet())
	s.http.ConnContext = guardContext
	serveAll([]*server{s})
	t.Cleanup(func() { closeAll([]*server{s}) })
	return l.Addr().String(), g
}

// asks sends a request and reads the answer's status.
func asks(c net.Conn, secret string) (status int, closes bool, err error) {
	if _, err := fmt.Fprintf(c, "GET /v1/version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", secret); err != nil {
		return 0, false, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, false, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Close, err
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestIdleStrangersGiveWay: as many connections as there may be, on which nobody says
// anything, keep no client with a token out, nor end the connections that are known.
func TestIdleStrangersGiveWay(t *testing.T) {
	t.Parallel()
	const most = 20
	address, g := guardedFront(t, most)
	friend := dial(t, address)
	if status, closes, err := asks(friend, "good"); err != nil || status != http.StatusOK || closes {
		t.Fatalf("%d, closed %t, %v", status, closes, err)
	}
	var idle []net.Conn
	for range 3 * most {
		idle = append(idle, dial(t, address))
	}
	_, err := idle[0].Read(make([]byte, 1)) // the oldest gives way, when its turn comes
	if err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("the oldest stranger: %v", err)
	}
	for range 3 {
		late := dial(t, address)
		if status, closes, err := asks(late, "good"); err != nil || status != http.StatusOK || closes {
			t.Errorf("a client with a token: %d, closed %t, %v", status, closes, err)
		}
	}
	if status, _, err := asks(friend, "good"); err != nil || status != http.StatusOK {
		t.Errorf("the connection that is known: %d %v", status, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open > most {
		t.Errorf("%d connections are open, of %d", g.open, most)
	}
}

// TestAnOwnerHasItsShare: as many connections of one token as there may be, all of them used, keep
// no client of another one out.
func TestAnOwnerHasItsShare(t *testing.T) {
	t.Parallel()
	const most = 20
	address, g := guardedFront(t, most)
	var kept []net.Conn
	for range most {
		c := dial(t, address)
		if status, closes, err := asks(c, "good"); err != nil || status != http.StatusOK || closes {
			t.Fatalf("%d, closed %t, %v", status, closes, err)
		}
		kept = append(kept, c)
	}
	for range 2 * most {
		late := dial(t, address)
		must(t, late.SetDeadline(time.Now().Add(30*time.Second))) // it waits for ever, if it fails
		if status, closes, err := asks(late, "other"); err != nil || status != http.StatusOK || closes {
			t.Fatalf("a client of another token: %d, closed %t, %v", status, closes, err)
		}
		must(t, late.Close())
	}
	for i := range most * 3 / 4 { // the control: its share is its own
		if status, _, err := asks(kept[i], "good"); err != nil || status != http.StatusOK {
			t.Errorf("connection %d of the first: %d %v", i, status, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owned["t1"] != most*3/4 || g.open > most {
		t.Errorf("one has %d connections, of %d", g.owned["t1"], g.open)
	}
}

// TestAnAddressHasItsShare: strangers from one address give way to each other.
func TestAnAddressHasItsShare(t *testing.T) {
	t.Parallel()
	address, g := guardedFront(t, 10*strangersEach)
	var idle []net.Conn
	for range strangersEach + 1 {
		idle = append(idle, dial(t, address))
	}
	if _, err := idle[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest is still there")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.strangers.Len(); n > strangersEach {
		t.Errorf("%d strangers of one address", n)
	}
}

// TestStrangersKeepNoConnection: who shows no valid token is answered once.
func TestStrangersKeepNoConnection(t *testing.T) {
	t.Parallel()
	address, _ := guardedFront(t, 10)
	for _, secret := range []string{"", "bad"} {
		c := dial(t, address)
		if _, closes, err := asks(c, secret); err != nil || !closes {
			t.Errorf("with %q: closed %t, %v", secret, closes, err)
		}
		if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
			t.Errorf("with %q the connection goes on: %v", secret, err)
		}
	}
}

// TestStrangersOfHTTP2AreAnswered: who shows no valid token keeps the one connection that a
// client of HTTP/2 has, on which other answers may be on their way, and stays a stranger.
func TestStrangersOfHTTP2AreAnswered(t *testing.T) {
	t.Parallel()
	g := newGuarded(listen(t), 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sortOut(w, r, "", "")
		w.WriteHeader(http.StatusBadGateway)
	}))
	must(t, s.Listener.Close())
	s.Listener, s.EnableHTTP2, s.Config.ConnContext = g, true, guardContext
	s.StartTLS()
	t.Cleanup(s.Close)
	for i := range 3 {
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		must(t, err)
		res, err := s.Client().Do(r)
		must(t, err)
		res.Body.Close()
		if res.ProtoMajor != 2 || reused != (i > 0) {
			t.Errorf("request %d: %s, on the connection of the one before: %t", i, res.Proto, reused)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.strangers.Len(); n != 1 {
		t.Errorf("%d strangers, want the one", n)
	}
}

// TestNetworks: what one holder has is one.
func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1:2", true},
		{"[2001:db8::1]:1", "[2001:db8::ffff:2]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
	} {
		a, aerr := net.ResolveTCPAddr("tcp", c.a)
		b, berr := net.ResolveTCPAddr("tcp", c.b)
		must(t, aerr)
		must(t, berr)
		if (networkOf(a) == networkOf(b)) != c.same {
			t.Errorf("%s and %s: %s, %s", c.a, c.b, networkOf(a), networkOf(b))
		}
	}
	if !strings.Contains(networkOf(&net.UnixAddr{Name: "x"}).String(), "invalid") {
		t.Error("what is no address has one")
	}
}
