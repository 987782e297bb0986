package egress_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// parts is a multipart form with one field, and its type.
func parts(t *testing.T, name, value string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, one := range [][2]string{{"text", strings.Repeat("text ", 3_000)}, {name, value}} {
		if err := w.WriteField(one[0], one[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// TestOverriddenMethods: where the policy rules on methods, nothing in a request gives it
// another one: no field, however a server folds its name, no parameter and no form's key.
func TestOverriddenMethods(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		const form = "application/x-www-form-urlencoded"
		multi, multiKind := parts(t, "_method", "DELETE")
		plain, plainKind := parts(t, "payment_method", "card")
		got := &seen{}
		e := endAt(t, got, "api.example")
		c := e.client(t, http2)
		send := func(name, query, kind, body string) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/a?"+query, iotest.HalfReader(strings.NewReader(body)))
			if err != nil {
				t.Fatal(err)
			}
			if name != "" {
				r.Header[name] = []string{"DELETE"}
			}
			r.Header["Content-Type"] = []string{kind}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			return a.StatusCode
		}
		long := strings.Repeat("a", 700) + "=" + strings.Repeat("b", 700)
		for _, c := range [][4]string{
			{"X.HTTP.Method.Override", "", form, ""},
			{"X~HTTP~Method~Override", "", form, ""},
			{"x_http-method.override", "", form, ""},
			{"Xhttpmethodoverride", "", form, ""},
			{"X-Http-Verb-Override", "", form, ""},
			{"X-Envoy-Original-Path", "", form, ""},
			{"X-Override-Url", "", form, ""},
			{"X-Http-Path-Override", "", form, ""},
			{"X-Original-Path", "", form, ""},
			{"X-Original-Host", "", form, ""},
			{"X-Host", "", form, ""},
			{"X-Forwarded-Host", "", form, ""},
			{"X-Forwarded-Server", "", form, ""},
			{"X.Rewrite!Url", "", form, ""},
			{"Destination", "", form, ""},
			{"", "_method=DELETE", form, ""},
			{"", "a=b&%5fmethod=DELETE", form, ""},
			{"", "a=%zz;_m%65thod=DELETE", form, ""},
			{"", "X-HTTP-Method-Override=DELETE", form, ""},
			{"", "", form, "_method=DELETE"},
			{"", "", form, "a=b&" + long + "&_method=DELETE&" + long},
			{"", "", form, long + "&%5Fmeth%6Fd=DELETE"},
			{"", "", form + "; charset=utf-8", "a=1;_method=DELETE"},
			{"", "", multiKind, multi},
			{"", "", form + ", x", "_method=DELETE"},
			{"", "", "Application/X-WWW-Form-URLencoded;;", "_method=DELETE"},
			{"", "", multiKind + "; =", multi},
			{"", "", "", "_method=DELETE"},
			{"", "", "application/json", `{"_method": "DELETE"}`},
		} {
			if status := send(c[0], c[1], c[2], c[3]); status != 400 {
				t.Errorf("%.80q is answered %d", c, status)
			}
		}
		for _, line := range got.all() { // of a form the beginning may have come
			if strings.Contains(line, "ethod") {
				t.Errorf("the host saw %.200q", line)
			}
		}
		for _, c := range [][4]string{ // the controls
			{"X-Forwarded-For", "", form, ""},
			{"X-Original", "", form, ""},
			{"X-Request-Id", "method=flickr.photos&payment_method=card", form, "method=list&payment_method=card"},
			{"", "", form, long + "_method"},
			{"", "", plainKind, plain},
			{"", "", "application/json", `{"text": "_method"}`},
			{"X-Original-Content-Length", "", "text/plain", "the _method=DELETE is no key"},
		} {
			if status := send(c[0], c[1], c[2], c[3]); status != 200 {
				t.Errorf("%.80q is answered %d", c, status)
			}
		}
	})
}

// TestPatternsAsServersRead: what deny_patterns are about is found however a server that is
// not particular reads it, and an encoded body is refused whichever field says so.
func TestPatternsAsServersRead(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endAt(t, got, "api.example")
		c := e.client(t, http2)
		send := func(query, body string, header http.Header) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/searched?"+query, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			return a.StatusCode
		}
		for status, all := range map[int][]struct {
			query, body string
			header      http.Header
		}{
			200: {{"a=%zz&b=%73ecre", "a=%zz", http.Header{}}, {"", "text", http.Header{"Content-Encoding": {"identity", ""}}}, {"", "a", http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}}},
			403: {
				{"a=%zz&b=%73ecret-12345", "", http.Header{}},
				{"b=%2573ecret-1", "", http.Header{}},
				{"", "a=%&b=%73ecret-12345", http.Header{}},
				{"", `{"a":"\u0073ecret-1"}`, http.Header{}},
				{"", "&#115;ecret-1", http.Header{}},
				{"", "", http.Header{"X-A": {"%73ecret-1"}}},
				{"", "s\x00e\x00c\x00r\x00e\x00t\x00-\x001\x00", http.Header{}},
				{"", "sec\u00adret-1", http.Header{}},
			},
			415: {
				{"", "text", http.Header{"Content-Encoding": {"identity", "gzip"}}},
				{"", "text", http.Header{"Content-Encoding": {"", "gzip"}}},
				{"", "text", http.Header{"Content-Encoding": {"identity, br"}}},
				{"", "text", http.Header{"Grpc-Encoding": {"gzip"}}},
				{"", "text", http.Header{"Content-Type": {"text/plain; charset=utf-18"}}},
				{"", "text", http.Header{"Content-Type": {"text/plain", "text/plain; charset=cp037"}}},
				{"", "text", http.Header{"Content-Type": {"text/plain; charset=shift_jis; x"}}},
				{"", "text", http.Header{"Content-Type": {"text/plain, text/plain; Charset = \"UTF-EBCDIC\""}}},
				{"", "text", http.Header{"Content-Type": {"text/plain; charset*=us-ascii'en'big5"}}},
			},
		} {
			for _, one := range all {
				if is := send(one.query, one.body, one.header); is != status {
					t.Errorf("%+v is answered %d, not %d", one, is, status)
				}
			}
		}
		if n := len(got.all()); n != 3 {
			t.Errorf("the host saw %d requests", n)
		}
	})
}

// TestAHeldPushKeepsToItsTerms: as one that may go at once, also where a narrower policy has them.
func TestAHeldPushKeepsToItsTerms(t *testing.T) {
	const word = "TOP-SECRET"
	for _, push := range []string{"hold", "allow"} {
		for body, want := range map[string]int{
			strings.Repeat("x", 2_000): http.StatusRequestEntityTooLarge, word: http.StatusForbidden, "": 200,
		} {
			got := &seen{}
			e := endUnder(t, fmt.Sprintf("network_allowlist:\n  - { host: api.example, git: { repos: ['acme/app'], push: %s } }\n", push), got, "api.example")
			narrower, err := policy.Parse("n", []byte("network_allowlist:\n  - { host: api.example, methods: [POST], max_body: 1000, deny_patterns: ['"+word+"'] }\n"))
			if err != nil {
				t.Fatal(err)
			}
			narrowed, ok := e.door.policy.NarrowedBy(narrower)
			if e.door.policy = narrowed; !ok {
				t.Fatal("it can't be narrowed")
			}
			e.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Allow}}
			refs := "0000000000000000000000000000000000000000 1111111111111111111111111111111111111111 refs/heads/a\x00 report-status"
			said := fmt.Sprintf("%04x%s0000", len(refs)+4, refs)
			if want == 200 {
				said = "0000"
			}
			status, text := ask(t, e.client(t, false), http.MethodPost, "https://api.example/acme/app.git/git-receive-pack", strings.NewReader(said+body))
			if status != want {
				t.Errorf("push: %s, %d bytes: %d %s", push, len(body), status, text)
			}
			if n := len(got.all()); (n > 0) != (want == 200) {
				t.Errorf("push: %s, %d bytes: the host saw %d requests", push, len(body), n)
			}
		}
	}
}
