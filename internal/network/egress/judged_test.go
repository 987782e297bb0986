package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// judgingDoor judges by a policy, and has its hosts' authority.
type judgingDoor struct {
	*fakeDoor
	policy   *policy.Policy
	hosts    *authority.Hosts
	done     []door.RequestDone // guarded by fakeDoor.mu
	exchange requests.Exchange

	pushes []door.PushAsk   // guarded by fakeDoor.mu
	left   int              // of pushes, those that were given up while they waited
	answer chan door.Answer // what each one that waits gets in turn
	unable bool             // nobody can be asked about one

	gate chan struct{} // that is waited for before each request is judged; nil: none is
}

func (d *judgingDoor) Name(_ context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	return door.NameAnswer{Answer: door.Answer{Decision: d.policy.Host(ask.Name, ask.Port)}, Ports: d.policy.HostPorts(ask.Name), Judged: d.policy.Requests().Judged(ask.Name, ask.Port), Git: d.policy.Requests().Git(ask.Name, ask.Port)}, nil
}

func (d *judgingDoor) Leaf(ctx context.Context, ask door.LeafAsk) (door.Certificate, error) {
	leaf, err := d.hosts.Leaf(ctx, d.policy.Requests().Hosts(), ask.Name)
	return door.Certificate{ChainPEM: leaf.ChainPEM, KeyPEM: leaf.KeyPEM}, err
}

func (d *judgingDoor) Request(_ context.Context, ask door.RequestAsk) (door.RequestAnswer, error) {
	if d.gate != nil {
		<-d.gate
	}
	decision, terms := d.policy.Requests().Judge(ask.Name, ask.Port, policy.Request{Method: ask.Method, Path: ask.Path, Query: ask.Query})
	a := door.RequestAnswer{Answer: door.Answer{Decision: decision}, Terms: terms}
	if !decision.Allowed() {
		a.Answer.RequestID = "n-9"
	}
	return a, nil
}

func (d *judgingDoor) AwaitPush(ctx context.Context, ask door.PushAsk) (door.Answer, error) {
	d.mu.Lock()
	d.pushes = append(d.pushes, ask)
	d.change()
	d.mu.Unlock()
	if d.unable {
		return door.Answer{}, fault.New(fault.ErrUnavailable, "nobody can be asked")
	}
	if !ask.Wait {
		return door.Answer{Decision: policy.Decision{Effect: policy.Hold}}, nil
	}
	select {
	case a := <-d.answer:
		return a, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left++
		d.change()
		return door.Answer{}, ctx.Err()
	}
}

func (d *judgingDoor) Requested(_ context.Context, done door.RequestsDone) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range done.Requests {
		one.Milliseconds, one.Number = 0, 0
		d.done = append(d.done, one)
	}
	d.change()
	return nil
}

func (d *judgingDoor) Exchange(context.Context, requests.Connection) (requests.Exchange, error) {
	return d.exchange, nil
}

// end is a host behind a gateway that ends its TLS, and a client of it.
type end struct {
	door *judgingDoor
	at   *place
	dial func() net.Conn
	tls  *tls.Config // of the client
	pool *x509.CertPool

	dialer *outbound.Dialer
	ca     []byte // the same
}

const judgedDocument = `network_allowlist:
  - { host: api.example, methods: [GET, PUT, POST], paths: ["/good/**"] }
  - { host: api.example, methods: [POST], paths: ["/small"], max_body: 10 }
  - { host: api.example, methods: [POST], paths: ["/searched"], deny_patterns: ["(?i)secret-[0-9]+"] }
`

// endAt makes one whose host answers with a handler, and a certificate for names.
func endAt(t *testing.T, h http.Handler, names ...string) *end {
	t.Helper()
	return endUnder(t, judgedDocument, h, names...)
}

// endUnder makes an end, as endAt does, under another policy.
func endUnder(t *testing.T, document string, h http.Handler, names ...string) *end {
	t.Helper()
	return endLimited(t, egress.Limits{}, document, h, names...)
}

// endLimited makes an end, as endUnder does, with limits.
func endLimited(t *testing.T, limits egress.Limits, document string, h http.Handler, names ...string) *end {
	t.Helper()
	e, pair := newEndUnder(t, document, limits, names...)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close() // another takes its place
	s.Listener, s.EnableHTTP2, s.TLS = e.at, true, &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return e
}

// newEnd makes one that nobody answers at yet, and the host's certificate.
func newEnd(t *testing.T, limits egress.Limits, names ...string) (*end, tls.Certificate) {
	t.Helper()
	return newEndUnder(t, judgedDocument, limits, names...)
}

func newEndUnder(t *testing.T, document string, limits egress.Limits, names ...string) (*end, tls.Certificate) {
	t.Helper()
	p, err := policy.Parse("p", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := authority.OpenHosts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := hosts.CAPEM(t.Context(), p.Requests().Hosts())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := authority.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := theirs.Certificate(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(leaf.ChainPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	e := &end{door: &judgingDoor{fakeDoor: &fakeDoor{}, policy: p, hosts: hosts, answer: make(chan door.Answer, 1)}, at: newPlace(t), pool: x509.NewCertPool()}
	host, err := outbound.NewHost("api.example", e.at.Addr().String(), 0, false, theirs.CAPEM())
	if err != nil {
		t.Fatal(err)
	}
	e.ca = ca
	e.pool.AppendCertsFromPEM(ca)
	e.tls = &tls.Config{RootCAs: e.pool, ServerName: "api.example"}
	e.dialer = outbound.NewDialer([]outbound.Host{host}, nowhere{})
	e.dial = uplinkTo(t, e.door.fakeDoor, limits, e.dialer, e.door)
	return e, pair
}

// client speaks HTTP/1.1 or HTTP/2 to the host.
func (e *end) client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	tr := &http.Transport{
		TLSClientConfig: e.tls.Clone(), ForceAttemptHTTP2: http2, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			var conn net.Conn
			var r channel.Reply
			if !passes(func() {
				conn = e.dial()
				r = open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443})
			}) {
				return nil, errors.New("the test has failed at the dial")
			}
			if !r.OK {
				return nil, fmt.Errorf("refused: %s", r.Error)
			}
			return conn, nil
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// passes does a part of a test that may end it, on a goroutine that is a client's. Ended there, only that
// goroutine would be, and the test would wait for the client for ever.
func passes(part func()) (passed bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		part()
		passed = true
	}()
	<-over
	return passed
}

// TestADialThatFailsEndsARequest, and not only the goroutine that dials.
func TestADialThatFailsEndsARequest(t *testing.T) {
	if passes(runtime.Goexit) || !passes(func() {}) {
		t.Error("what ended its goroutine has passed, or what did not has failed")
	}
}

// raw is the client's end of TLS, on which it speaks HTTP/1.1.
func (e *end) raw(t *testing.T) *tls.Conn {
	t.Helper()
	return tls.Client(to(t, e.dial(), "api.example", 443), e.tls)
}

// each runs a test over both protocols.
func each(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Helper()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) { test(t, http2) })
	}
}

func ask(t *testing.T, c *http.Client, method, url string, body io.Reader) (status int, said string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// TestJudgedRequests: what the policy has reaches the host; the rest is told why not, by
// rule and with where to read more, and the connection goes on.
func TestJudgedRequests(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endAt(t, got, "api.example")
		c := e.client(t, http2)
		if status, said := ask(t, c, "GET", "https://api.example/good/a?x=%2F..;y", nil); status != 200 || said != "hello" {
			t.Errorf("%d %s", status, said)
		}
		for target, why := range map[string]string{
			"DELETE /good/a":         "not DELETE requests to it",
			"GET /bad":               "not GET requests to /bad of it",
			"GET /good/../bad":       "a segment . or ..",
			"GET /good/%2e%2e/bad":   "escapes a slash, a backslash, a dot or a %",
			"GET /good/a%2fb":        "escapes a slash, a backslash, a dot or a %",
			"GET /good//a":           "two slashes in a row",
			"GET //good/a":           "two slashes in a row",
			"GET /GOOD/a":            "not GET requests to /GOOD/a",
			"GET /good/a/..%3bx/bad": "a segment . or ..",
		} {
			method, path, _ := strings.Cut(target, " ")
			status, said := ask(t, c, method, "https://api.example"+path, nil)
			if status != 403 || !strings.HasPrefix(said, "cofferdam: ") || !strings.Contains(said, why) ||
				!strings.Contains(said, "(rule network.request)") || !strings.Contains(said, "request n-9; see: cofferdam why") {
				t.Errorf("%s: %d %s", target, status, said)
			}
		}
		if status, said := ask(t, c, "PUT", "https://api.example/good/b", strings.NewReader("12345")); status != 200 || said != "hello" {
			t.Errorf("%d %s", status, said)
		}
		want := []string{`GET api.example /good/a?x=%2F..;y ""`, `PUT api.example /good/b "12345"`}
		if all := got.all(); !slices.Equal(all, want) {
			t.Errorf("the host saw %q", all)
		}
		c.CloseIdleConnections()
		e.door.until(t, "the end", func() bool { return len(e.door.ended) == 1 })
		if n := e.at.reached(); n != 1 || len(e.door.begun) != 1 {
			t.Errorf("%d connections, %+v", n, e.door.begun)
		}
		if b := e.door.begun[0]; b.Protocol != "https" || !b.Judged || e.door.ended[0].Requests != 2 {
			t.Errorf("%+v, %+v", b, e.door.ended)
		}
		first := door.RequestDone{Method: "GET", Path: "/good/a", Rule: "network_allowlist.api.example", Status: 200, BytesIn: 5}
		second := door.RequestDone{Method: "PUT", Path: "/good/b", Rule: "network_allowlist.api.example", Status: 200, BytesOut: 5, BytesIn: 5}
		if !slices.Equal(e.door.done, []door.RequestDone{first, second}) {
			t.Errorf("on record are %+v", e.door.done)
		}
	})
}

// TestRequestsThatAreReadTwoWays: none of them, and nothing behind them, is passed on.
func TestRequestsThatAreReadTwoWays(t *testing.T) {
	got := &seen{}
	e := endAt(t, got, "api.example")
	evil, recorded := "GET /bad HTTP/1.1\r\nHost: api.example\r\n\r\n", 0
	for name, c := range map[string]struct {
		sent   string
		status int
	}{
		"two lengths":         {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + evil, 400},
		"odd chunks":          {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + evil, 501},
		"two encodings":       {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + evil, 501},
		"another authority":   {"GET /good/a HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		"another absolute":    {"GET https://evil.example/good/a HTTP/1.1\r\nHost: api.example\r\n\r\n", 421},
		"another scheme":      {"GET http://api.example/good/a HTTP/1.1\r\nHost: api.example\r\n\r\n", 400},
		"userinfo":            {"GET https://api.example@evil.example/good/a HTTP/1.1\r\nHost: api.example\r\n\r\n", 421},
		"userinfo of ours":    {"GET https://x@api.example/good/a HTTP/1.1\r\nHost: api.example\r\n\r\n", 400},
		"userinfo in Host":    {"GET /good/a HTTP/1.1\r\nHost: api.example@evil.example\r\n\r\n", 400},
		"two authorities":     {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nHost: evil.example\r\n\r\n", 400},
		"TRACE":               {"TRACE /good/a HTTP/1.1\r\nHost: api.example\r\n\r\n", 405},
		"CONNECT":             {"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example\r\n\r\n", 405},
		"all of it":           {"OPTIONS * HTTP/1.1\r\nHost: api.example\r\n\r\n", 400},
		"h2c":                 {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 400},
		"another method":      {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n", 400},
		"another place":       {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nX_Original_URL: /bad\r\n\r\n", 400},
		"a backslash":         {"GET /good/..\\bad HTTP/1.1\r\nHost: api.example\r\n\r\n", 403},
		"a long path":         {"GET /good/" + strings.Repeat("a", 9_000) + " HTTP/1.1\r\nHost: api.example\r\n\r\n", 414},
		"a request before":    {"GET /bad HTTP/1.1\r\nHost: api.example\r\n\r\n", 403},
		"a bare CR":           {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nX: a\rHost: evil.example\r\n\r\n", 400},
		"a CR in the target":  {"GET /good/a\rb HTTP/1.1\r\nHost: api.example\r\n\r\n", 400},
		"NUL in a field":      {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nX: a\x00b\r\n\r\n", 400},
		"NUL in the name":     {"GET /good/a HTTP/1.1\r\nHost: api.example\x00.evil.example\r\n\r\n", 400},
		"a homograph":         {"GET /good/a HTTP/1.1\r\nHost: \u0430pi.example\r\n\r\n", 400},
		"a homograph's other": {"GET /good/a HTTP/1.1\r\nHost: xn--pi-7kc.example\r\n\r\n", 421},
		"a socket elsewhere":  {"GET /good/a HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 421},
		"an odd expectation":  {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nExpect: evil\r\nContent-Length: 44\r\n\r\n" + evil, 417},
		"a huge header":       {"GET /good/a HTTP/1.1\r\nHost: api.example\r\nX: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", 431},
		"a length with signs": {"POST /good/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: +4\r\n\r\nabcd", 400},
	} {
		conn := e.raw(t)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || a.StatusCode != c.status {
			t.Errorf("%s: %+v %v", name, a, err)
		}
		_ = conn.Close()
		if c.status != http.StatusForbidden { // which the policy's own door has on record
			recorded++
		}
	}
	e.door.until(t, "a record of each", func() bool { return len(e.door.rejected) == recorded })
	for _, record := range e.door.rejected {
		if !strings.HasPrefix(record, "network.http api.example:443 ") {
			t.Errorf("on record is %s", record)
		}
	}
	if all := got.all(); len(all) != 0 {
		t.Errorf("the host saw %q", all)
	}
	conn := e.raw(t) // the control: what is chunked and has a length is made anew, and what is behind it is judged
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /good/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"+evil); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for _, want := range []int{200, 403} {
		a, err := http.ReadResponse(answers, nil)
		if err != nil || a.StatusCode != want {
			t.Fatalf("%+v %v", a, err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
	}
	if all := got.all(); !slices.Equal(all, []string{`POST api.example /good/a "x"`}) {
		t.Errorf("the host saw %q", all)
	}
}

// TestTwoFacedRequests: none passes that some servers take for another one, in whatever
// spelling of the field, over both versions; one with a field that only looks like those does.
func TestTwoFacedRequests(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endAt(t, got, "api.example")
		c := e.client(t, http2)
		with := func(field string) int {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/a", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header[field] = []string{"/bad"}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(a.Body)
			if _ = a.Body.Close(); err != nil || a.StatusCode == 400 && !strings.Contains(string(said), "a request has the field X") {
				t.Errorf("%s: %s %v", field, said, err)
			}
			return a.StatusCode
		}
		for _, field := range []string{
			"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method",
			"X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-URI", "X-Forwarded-Prefix",
		} {
			for _, spelt := range []string{field, strings.ToLower(field), strings.ToUpper(field), strings.ReplaceAll(field, "-", "_"), strings.Replace(field, "-", "_", 1)} {
				if status := with(spelt); status != 400 {
					t.Errorf("%s is answered %d", spelt, status)
				}
			}
		}
		if all := got.all(); len(all) != 0 {
			t.Errorf("the host saw %q", all)
		}
		for _, field := range []string{"X-Forwarded-For", "X-Original", "Access-Control-Request-Method"} { // the controls
			if status := with(field); status != 200 {
				t.Errorf("%s is answered %d", field, status)
			}
		}
	})
}

// TestChunksThatAreNone: what came of a body is no whole request.
func TestChunksThatAreNone(t *testing.T) {
	got := &seen{}
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			got.ServeHTTP(w, r)
		}
	}), "api.example")
	conn := e.raw(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /good/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcdX\r\nzz\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if a, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && a.StatusCode < 400 {
		t.Errorf("%+v", a)
	}
	if all := got.all(); len(all) != 0 {
		t.Errorf("the host saw %q", all)
	}
}

// TestWhatRequestsCarry: no more than they may, and nothing of what is looked for.
func TestWhatRequestsCarry(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil {
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				got.ServeHTTP(w, r)
			}
		}), "api.example")
		c := e.client(t, http2)
		for _, x := range []struct {
			path, body, header string
			unknown            bool // its length is
			status             int
		}{
			{path: "/small", body: "0123456789", status: 200},
			{path: "/small", body: "0123456789", unknown: true, status: 200},
			{path: "/small", body: "01234567890", status: 413},
			{path: "/small", body: "01234567890", unknown: true, status: 413},
			{path: "/small", body: strings.Repeat("x", 1<<20), unknown: true, status: 413},
			{path: "/searched", body: "nothing", header: "X-A: b", status: 200},
			{path: "/searched", body: "a SECRET-12 here", status: 403},
			{path: "/searched", body: "a SECRET-12 here", unknown: true, status: 403},
			{path: "/searched", body: "x", header: "X-A: secret-7", status: 403},
			{path: "/searched?a=secret%2d12", body: "x", status: 403},
			{path: "/searched", body: "a=secret%2D12", header: "Content-Type: application/x-www-form-urlencoded", status: 403},
			{path: "/searched", body: "x", header: "Content-Encoding: gzip", status: 415},
			{path: "/searched", body: strings.Repeat("x", 1_000_001), status: 413},
		} {
			var body io.Reader = strings.NewReader(x.body)
			if x.unknown {
				body = io.MultiReader(body)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example"+x.path, body)
			if err != nil {
				t.Fatal(err)
			}
			if name, v, ok := strings.Cut(x.header, ": "); ok {
				r.Header.Set(name, v)
			}
			before := len(got.all())
			a, err := c.Do(r)
			if err != nil {
				t.Fatalf("%s %.20q: %v", x.path, x.body, err)
			}
			said, _ := io.ReadAll(a.Body) // it may have been cut
			_ = a.Body.Close()
			if passed := len(got.all()) > before; a.StatusCode != x.status || passed != (x.status == 200) {
				t.Errorf("%s %.20q %s: %d, passed %t: %s", x.path, x.body, x.header, a.StatusCode, passed, said)
			}
			if x.status == 403 && (!strings.Contains(string(said), "(rule network.pattern)") || strings.Contains(strings.ToLower(string(said)), "secret-")) {
				t.Errorf("%s", said)
			}
		}
	})
}
