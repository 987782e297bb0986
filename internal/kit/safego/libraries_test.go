package safego_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// panicking is a body with some bytes of which the rest can't be read without a panic.
type panicking struct{ left string }

func (p *panicking) Read(to []byte) (int, error) {
	if p.left == "" {
		panic("no more")
	}
	n := copy(to, p.left)
	p.left = p.left[n:]
	return n, nil
}

func (p *panicking) Write([]byte) (int, error) { panic("can't be written") }
func (p *panicking) Close() error              { panic("can't be closed") }

// TestTransportsAreShielded: what a transport calls in its own goroutines panics, and the
// request fails; the process, which is this one, goes on.
func TestTransportsAreShielded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // as much as there is
	}))
	defer server.Close()
	post := func(dial safego.DialFunc, body io.Reader) error {
		transport := &http.Transport{DialContext: dial}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	plain := (&net.Dialer{}).DialContext
	if err := post(safego.ShieldDial(plain), safego.ShieldBody(io.NopCloser(strings.NewReader("x")))); err != nil {
		t.Errorf("the control: %v", err)
	}
	if err := post(plain, safego.ShieldBody(&panicking{left: "some"})); !errors.Is(err, safego.ErrLost) {
		t.Errorf("a body that panics: %v", err)
	}
	lost := safego.ShieldDial(func(context.Context, string, string) (net.Conn, error) { panic("no way") })
	if err := post(lost, http.NoBody); !errors.Is(err, safego.ErrLost) {
		t.Errorf("a dial that panics: %v", err)
	}
}

// TestShieldedBody: what was read before a panic has arrived, nothing comes after it, and one
// direction's panic is not the other's.
func TestShieldedBody(t *testing.T) {
	t.Parallel()
	body := safego.ShieldBody(&panicking{left: "some"})
	got, err := io.ReadAll(body)
	if string(got) != "some" || !errors.Is(err, safego.ErrLost) {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, safego.ErrLost) {
		t.Errorf("after the panic: %d, %v", n, err)
	}
	if err := body.Close(); !errors.Is(err, safego.ErrLost) {
		t.Error(err)
	}
	writer, ok := safego.ShieldBody(&panicking{left: "some"}).(io.ReadWriteCloser)
	if !ok {
		t.Fatal("a body that can be written to can't any more")
	}
	if n, err := writer.Write([]byte("x")); n != 0 || !errors.Is(err, safego.ErrLost) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := writer.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Errorf("reading after a write that panicked: %d, %v", n, err)
	}
	if _, ok := safego.ShieldBody(io.NopCloser(strings.NewReader(""))).(io.Writer); ok {
		t.Error("a body that can't be written to can")
	}
}
