package exchange

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// errNoMore is that the host says no more for now.
var errNoMore = errors.New("no more has come")

// flushed is an answer of which the host has sent one piece and nothing behind it.
type flushed struct {
	io.Closer
	piece string
}

func (f *flushed) Read(p []byte) (int, error) {
	if f.piece == "" {
		return 0, errNoMore
	}
	n := copy(p, f.piece)
	f.piece = f.piece[n:]
	return n, nil
}

// comes is what a sandbox has of a piece of an answer before any more of it comes.
func comes(t *testing.T, x *Exchange, piece string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://other.example/", nil)
	r.RequestURI = ""
	if err := x.Outgoing(r); err != nil {
		t.Fatal(err)
	}
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: &flushed{io.NopCloser(nil), piece}}
	if err := x.Incoming(a); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1_000)
	n, _ := a.Body.Read(b)
	return string(b[:n])
}

// TestWhatWaitsTellsNothingOfASecret: a host of the policy's that gets no secret sends a sandbox guesses. Whether
// one is handed on at once must not depend on whether it is the beginning of the run's secret: or it is found letter
// by letter.
func TestWhatWaitsTellsNothingOfASecret(t *testing.T) {
	const secret, public = "sk-Zq81xKf0TwLm33", "sk-" // the placeholder begins with that
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	raw := func(guess string) string { return "." + guess }
	for _, c := range []struct {
		what  string
		seeks func() *Exchange
		piece func(guess string) string
	}{
		{"with the secret", func() *Exchange {
			return New(nil, map[string]string{"one": "sk-fakefakefakefa"}, &lender{secret}).Seek()
		}, raw},
		{"with the secret, in events with base64", func() *Exchange {
			return New(nil, map[string]string{"one": "sk-fakefakefakefa"}, &lender{secret}).Seek()
		}, func(guess string) string {
			return "data: " + base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(".", 20)+guess)) + "\n\n"
		}},
		{"the control, without one", func() *Exchange {
			return New(nil, map[string]string{"one": "sk-fakefakefakefa"}, &lender{""})
		}, raw},
	} {
		x, known, guesses := c.seeks(), public, 0
		for grown := true; grown && len(known) < len(secret); {
			grown = false
			for _, letter := range letters {
				guesses++
				if guess := known + string(letter); len(comes(t, x, c.piece(guess))) < len(c.piece(guess)) {
					known, grown = guess, true
					break
				}
			}
		}
		t.Logf("%s: after %d guesses the sandbox knows %q", c.what, guesses, known)
		if strings.HasPrefix(secret, known) && len(known) > len(public) {
			t.Errorf("%s: the sandbox has found out %d letters of the secret: %s", c.what, len(known), known)
		}
	}
}

// lender is a Keeper of one value.
type lender struct{ value string }

func (l *lender) Secrets(_ context.Context, _ Request, _ []Use) (Given, error) {
	return Given{Others: map[string][]string{"one": {l.value}}}, nil
}
func (*lender) Leaked(context.Context, Request, Leak) string { return "" }
func (*lender) Declined(context.Context, []string)           {}
