package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// TestHostsCertificateIsVerified: for the name that was asked for, and nothing is sent to
// one that has another.
func TestHostsCertificateIsVerified(t *testing.T) {
	got := &seen{}
	e := endAt(t, got, "other.example")
	for range 2 {
		if status, said := ask(t, e.client(t, true), "GET", "https://api.example/good/a", nil); status != 502 ||
			!strings.Contains(said, "the certificate of api.example can't be verified on the host, so nothing is sent to it") {
			t.Errorf("%d %s", status, said)
		}
	}
	if all := got.all(); len(all) != 0 {
		t.Errorf("the host saw %q", all)
	}
	e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })
	if !strings.HasPrefix(e.door.rejected[0], "network.unreached api.example:443 the certificate of api.example") {
		t.Errorf("on record are %q", e.door.rejected)
	}
}

// TestClientThatTrustsNobody: that it refuses the certificate is on record, with what to do.
func TestClientThatTrustsNobody(t *testing.T) {
	e := endAt(t, &seen{}, "api.example")
	conn := tls.Client(to(t, e.dial(), "api.example", 443), &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "api.example"})
	if err := conn.HandshakeContext(t.Context()); err == nil {
		t.Fatal("it took the certificate")
	}
	e.door.until(t, "the record", func() bool { return len(e.door.rejected) == 1 })
	if got := e.door.rejected[0]; !strings.HasPrefix(got, "network.tls api.example:443 the client refused the certificate") || !strings.Contains(got, "SSL_CERT_FILE") {
		t.Error(got)
	}
}

// TestEndedStreams: each event of an answer arrives while the host has not said the next.
func TestEndedStreams(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		next := make(chan struct{})
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
				}
			}
		}), "api.example")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.client(t, http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		lines := bufio.NewScanner(a.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
				t.Fatalf("%q", lines.Text())
			}
			next <- struct{}{}
		}
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("%q %v", lines.Text(), lines.Err())
		}
	})
}

// TestEndedBothWays: over HTTP/2 both say something in turn, and each has trailers, as with
// gRPC.
func TestEndedBothWays(t *testing.T) {
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		in := bufio.NewScanner(r.Body)
		for in.Scan() {
			fmt.Fprintln(w, "you said", in.Text())
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0 "+r.Trailer.Get("X-Sum")+" "+r.Header.Get("Te"))
	}), "api.example")
	body, say := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/grpc", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Te", "trailers")
	r.Trailer = http.Header{"X-Sum": nil}
	a, err := e.client(t, true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(say, word)
		if !lines.Scan() || lines.Text() != "you said "+word {
			t.Fatalf("%q %v", lines.Text(), lines.Err())
		}
	}
	r.Trailer.Set("X-Sum", "2")
	_ = say.Close()
	if lines.Scan() || lines.Err() != nil || a.Trailer.Get("Grpc-Status") != "0 2 trailers" {
		t.Errorf("%v %v", lines.Err(), a.Trailer)
	}
}

// TestEndedWebSocket: what follows the upgrade is carried both ways.
func TestEndedWebSocket(t *testing.T) {
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = both.Flush()
		_, _ = io.Copy(conn, both)
	}), "api.example")
	conn := e.raw(t)
	if _, err := io.WriteString(conn, "GET /good/ws HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if a, err := http.ReadResponse(answers, nil); err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v %v", a, err)
	}
	for _, frame := range []string{"\x81\x01a", "\x81\x01b"} {
		back := make([]byte, 3)
		if _, err := io.WriteString(conn, frame); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(answers, back); err != nil || string(back) != frame {
			t.Fatalf("%q %v", back, err)
		}
	}
	_ = conn.Close()
	e.door.until(t, "the record", func() bool { return len(e.door.done) == 1 })
	if got := e.door.done[0]; got.Status != http.StatusSwitchingProtocols || got.Path != "/good/ws" {
		t.Errorf("%+v", got)
	}
}

// TestEndedUploads: a large one streams, and one that asks first is answered before it
// sends anything.
func TestEndedUploads(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}), "api.example")
		c := e.client(t, http2)
		const size = 8 << 20
		if status, said := ask(t, c, "PUT", "https://api.example/good/large", io.MultiReader(bytes.NewReader(make([]byte, size)))); status != 200 || said != fmt.Sprint(size, " <nil>") {
			t.Errorf("%d %s", status, said)
		}
		asks := e.client(t, http2)
		asks.Transport.(*http.Transport).ExpectContinueTimeout = 1 << 40 // it does not send before it was told to
		for path, want := range map[string]int{"/good/x": 200, "/bad": 403} {
			var continued atomic.Bool
			read := &counting{Reader: strings.NewReader("0123456789")}
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { continued.Store(true) }})
			r, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://api.example"+path, read)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Expect", "100-continue")
			a, err := asks.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			if a.StatusCode != want || !http2 && (continued.Load() != (want == 200) || (read.n.Load() > 0) != (want == 200)) {
				t.Errorf("%s: %d, told to go on %t, sent %d", path, a.StatusCode, continued.Load(), read.n.Load())
			}
		}
	})
}

type counting struct {
	io.Reader
	n atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestAnswersThatAreCut are no whole answers to the client either.
func TestAnswersThatAreCut(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "api.example")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.client(t, http2).Do(r)
		if err != nil {
			return // it was not even begun
		}
		defer a.Body.Close()
		if said, err := io.ReadAll(a.Body); err == nil {
			t.Errorf("%q looks whole", said)
		}
	})
}

// swapping puts a word into requests, takes one out of answers, and refuses some of both.
type swapping struct{}

func (swapping) Outgoing(r *http.Request) error {
	switch r.Header.Get("X-Want") {
	case "refusal":
		return &requests.Refusal{Rule: "network.secret", Reason: "a placeholder is not for this"}
	case "failure":
		return errors.New("the store says pssst")
	}
	r.Header.Set("Authorization", "Bearer real")
	return nil
}

func (swapping) Incoming(a *http.Response) error {
	if a.Header.Get("X-Leak") != "" {
		return &requests.Refusal{Rule: "network.secret", Reason: "the answer has a secret in it"}
	}
	a.Header.Del("X-Secret")
	return nil
}

// TestExchange: what sees to a connection's requests changes what is sent and what comes
// back, and can refuse both.
func TestExchange(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		var sent []string
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = append(sent, r.Header.Get("Authorization")+" "+r.URL.Path)
			w.Header().Set("X-Secret", "x")
			w.Header().Set("Alt-Svc", `h3=":443"`)
			if r.URL.Path == "/good/leak" {
				w.Header().Set("X-Leak", "y")
			}
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		}), "api.example")
		e.door.exchange = swapping{}
		c := e.client(t, http2)
		get := func(path, want string) (*http.Response, string) {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://api.example"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Want", want)
			if !http2 {
				r.Header.Set("Connection", "Authorization") // it is ours by then
			}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			said, _ := io.ReadAll(a.Body)
			return a, string(said)
		}
		if a, _ := get("/good/a", ""); a.StatusCode != http.StatusFound || a.Header.Get("X-Secret")+a.Header.Get("Alt-Svc") != "" || a.Header.Get("Location") != "https://evil.example/" {
			t.Errorf("%+v", a)
		}
		if a, said := get("/good/a", "refusal"); a.StatusCode != 403 || !strings.Contains(said, "a placeholder is not for this") || !strings.Contains(said, "(rule network.secret)") {
			t.Errorf("%d %s", a.StatusCode, said)
		}
		if a, said := get("/good/a", "failure"); a.StatusCode != 502 || strings.Contains(said, "pssst") {
			t.Errorf("%d %s", a.StatusCode, said)
		}
		if a, said := get("/good/leak", ""); a.StatusCode != 403 || !strings.Contains(said, "the answer has a secret in it") {
			t.Errorf("%d %s", a.StatusCode, said)
		}
		if a, _ := get("/bad", ""); a.StatusCode != 403 {
			t.Errorf("%d", a.StatusCode)
		}
		if !slices.Equal(sent, []string{"Bearer real /good/a", "Bearer real /good/leak"}) {
			t.Errorf("the host saw %q", sent)
		}
		if !slices.Contains(e.door.rejected, "network.secret api.example:443 a placeholder is not for this [GET /good/a]") {
			t.Errorf("on record are %q", e.door.rejected)
		}
	})
}
