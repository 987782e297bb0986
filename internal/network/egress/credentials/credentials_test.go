package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

const (
	fake  = "sk-fake-AAAAAAAAAAAAAAAAAAAAAAAA"
	truth = "canary-the-secret"
)

// fakeDoor gives one secret to api.example.
type fakeDoor struct {
	door.Door
	mu     sync.Mutex // guards all below
	sealed bool
	said   []string
}

func (d *fakeDoor) tell(said string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, said)
}

func (d *fakeDoor) Credentials(_ context.Context, ask door.CredentialsAsk) (door.CredentialsAnswer, error) {
	a := door.CredentialsAnswer{Placeholders: map[string]string{"one": fake}}
	switch {
	case ask.Sandbox == "none":
		return door.CredentialsAnswer{}, nil
	case ask.Name == "broken.example":
		return a, fault.New(fault.ErrNotFound, "there is no such secret")
	case ask.Name == "api.example" && ask.TLS:
		a.Credentials = []exchange.Credential{{Secret: "one", Placeholder: fake, Manner: exchange.Manner{Where: []exchange.Place{exchange.Header}}}}
	}
	return a, nil
}

func (d *fakeDoor) Secrets(_ context.Context, ask door.SecretsAsk) (door.SecretsAnswer, error) {
	if d.sealed {
		return door.SecretsAnswer{}, fault.New(fault.ErrUnavailable, "the secret \"one\" can't be had: it is sealed")
	}
	d.tell(fmt.Sprintf("used %s:%d %s %v", ask.Name, ask.Port, shortly(ask.Request), places(ask.Uses)))
	return door.SecretsAnswer{Values: map[string]string{"one": truth}}, nil
}

func shortly(r exchange.Request) string { return "{" + r.Method + " " + r.Path + "}" }

// places are uses, shortly.
func places(uses []exchange.Use) []string {
	var all []string
	for _, u := range uses {
		all = append(all, "{"+u.Secret+" "+u.Where+"}")
	}
	return all
}

func (d *fakeDoor) Leaked(ctx context.Context, ask door.LeakAsk) (door.Answer, error) {
	if err := ctx.Err(); err != nil {
		return door.Answer{}, err // nobody is asked any more, as by door.Client
	}
	d.tell(fmt.Sprintf("leak %s:%d %s {%s %s}", ask.Name, ask.Port, shortly(ask.Request), ask.Leak.Secret, ask.Leak.Where))
	return door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: "it does not go there"}, RequestID: "R1"}, nil
}

func (d *fakeDoor) Declined(_ context.Context, ask door.DeclinedAsk) error {
	d.tell(fmt.Sprintf("declined %s:%d %s", ask.Name, ask.Port, ask.Secrets))
	return nil
}

// host echoes what it got, in an early answer, in the header and in the body.
func host(w http.ResponseWriter, r *http.Request) {
	got := r.Header.Get("Authorization")
	w.Header().Set("Link", got)
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Set("X-Right", fmt.Sprint(got == "Bearer "+truth))
	_, _ = io.Copy(io.Discard, r.Body)
	if r.URL.Path == "/revoked" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, "you said "+got)
}

// send has a request see an exchange, and the host if that lets it.
func send(t *testing.T, e requests.Exchange, r *http.Request, http2 bool) (a *http.Response, body, early string, err error) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(host))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "https", server.Listener.Addr().String(), ""
	*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early = h.Get("Link")
		return nil
	}}))
	if err := e.Outgoing(r); err != nil {
		return nil, "", "", err
	}
	if a, err = server.Client().Transport.RoundTrip(r); err != nil {
		return nil, "", "", err
	}
	if err := e.Incoming(a); err != nil {
		return nil, "", "", err
	}
	text, err := io.ReadAll(a.Body)
	return a, string(text), early, err
}

func post(body io.Reader, authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat", body)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func begin(t *testing.T, d *fakeDoor, name string, tls bool) requests.Exchange {
	t.Helper()
	e, err := credentials.Exchanges{Door: d}.Exchange(t.Context(), requests.Connection{Sandbox: "sb1", Name: name, Port: 443, TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTheHostGetsTheSecret and the sandbox gets none back: not in an early answer, not in
// the header, not in the body.
func TestTheHostGetsTheSecret(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		d := &fakeDoor{}
		a, body, early, err := send(t, begin(t, d, "api.example", true), post(strings.NewReader("a question"), "Bearer "+fake), http2)
		if err != nil {
			t.Fatal(err)
		}
		if a.Header.Get("X-Right") != "true" || len(d.said) != 1 || d.said[0] != "used api.example:443 {POST /v1/chat} [{one header}]" {
			t.Errorf("%v %q", a.Header, d.said)
		}
		masked := "Bearer " + strings.Repeat("x", len(truth))
		if body != "you said "+masked || early != masked || strings.Contains(fmt.Sprint(a.Header), truth) {
			t.Errorf("%q %q %v", body, early, a.Header)
		}
	}
}

// TestARevokedSecret is told to the door, over both versions.
func TestARevokedSecret(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		d, r := &fakeDoor{}, post(http.NoBody, "Bearer "+fake)
		r.URL.Path = "/revoked"
		a, _, _, err := send(t, begin(t, d, "api.example", true), r, http2)
		if err != nil || a.StatusCode != http.StatusUnauthorized {
			t.Fatal(a, err)
		}
		if len(d.said) != 2 || d.said[1] != "declined api.example:443 [one]" {
			t.Errorf("%q", d.said)
		}
	}
}

// TestALeakIsOnRecordThoughItsClientHasGone: the alarm is not the client's to prevent.
func TestALeakIsOnRecordThoughItsClientHasGone(t *testing.T) {
	for _, gone := range []bool{false, true} { // the first is the control
		d, r := &fakeDoor{}, post(http.NoBody, "Bearer "+fake)
		e := begin(t, d, "other.example", true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if gone {
			cancel()
		}
		if err := e.Outgoing(r.WithContext(ctx)); err == nil || len(d.said) != 1 || !strings.HasPrefix(d.said[0], "leak other.example:443") {
			t.Errorf("gone %t: %v, %q on record", gone, err, d.said)
		}
	}
}

// TestElsewhereAPlaceholderIsAnAlarm: at another host, without TLS, and far inside of an
// upload, over both versions. Without one a request passes.
func TestElsewhereAPlaceholderIsAnAlarm(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for name, c := range map[string]struct {
			host string
			tls  bool
			body string
			auth string
			leak string
		}{
			"none":         {"other.example", true, "a question", "", ""},
			"another host": {"other.example", true, "a question", "Bearer " + fake, "leak other.example:443 {POST /v1/chat} {one header Authorization}"},
			"no TLS":       {"api.example", false, "a question", "Bearer " + fake, "leak api.example:443 {POST /v1/chat} {one header Authorization}"},
			"upload":       {"other.example", true, strings.Repeat("a", 1<<20) + fake, "", "leak other.example:443 {POST /v1/chat} {one body}"},
		} {
			d := &fakeDoor{}
			_, _, _, err := send(t, begin(t, d, c.host, c.tls), post(struct{ io.Reader }{strings.NewReader(c.body)}, c.auth), http2)
			if c.leak == "" {
				if err != nil || len(d.said) > 0 {
					t.Errorf("%s: %v %q", name, err, d.said)
				}
				continue
			}
			refusal, is := errors.AsType[*requests.Refusal](err)
			if !is || refusal.Rule != door.RuleHostPlaceholder || !refusal.Recorded || refusal.Reason != "it does not go there; request R1; see: cofferdam why" || len(d.said) != 1 || d.said[0] != c.leak {
				t.Errorf("%s: %v %q", name, err, d.said)
			}
		}
	}
}

// TestNoSecretNoRequest: what can't be had is a refusal that goes on record, in words.
func TestNoSecretNoRequest(t *testing.T) {
	_, _, _, err := send(t, begin(t, &fakeDoor{sealed: true}, "api.example", true), post(http.NoBody, "Bearer "+fake), false)
	refusal, is := errors.AsType[*requests.Refusal](err)
	if !is || refusal.Rule != door.RuleHostCredential || refusal.Recorded || refusal.Reason != `the secret "one" can't be had: it is sealed` {
		t.Error(err)
	}
	_, err = credentials.Exchanges{Door: &fakeDoor{}}.Exchange(t.Context(), requests.Connection{Sandbox: "sb1", Name: "broken.example"})
	if refusal, is = errors.AsType[*requests.Refusal](err); !is || refusal.Rule != door.RuleHostCredential || refusal.Reason != "there is no such secret" {
		t.Error(err)
	}
	if e, err := (credentials.Exchanges{Door: &fakeDoor{}}).Exchange(t.Context(), requests.Connection{Sandbox: "none"}); err != nil || e != nil {
		t.Errorf("%v, %v", e, err)
	}
}
