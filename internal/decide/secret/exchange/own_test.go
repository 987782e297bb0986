package exchange

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestOwnCredentials: a host that gets a secret gets none of the client's own beside it or in
// its place, in whatever spelling; elsewhere, and where the policy says so, it does.
func TestOwnCredentials(t *testing.T) {
	signing := Credential{Secret: "one", Placeholder: fake, Manner: Manner{Sign: SigV4}}
	key := Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "X-Api-Key", Format: "{secret}"}}
	allowed := setting()
	allowed.Own = true
	manners := map[string]Credential{"header": key, "where": swapping(Header, Basic, Query), "oauth": setting(), "aws": signing}
	with := func(name, value string, more ...string) *http.Request {
		r := post(t, "/v1", "", "")
		r.Header[name] = append([]string{value}, more...)
		return r
	}
	send := func(c []Credential, r *http.Request) (string, error) {
		r = r.Clone(t.Context())
		err := New(c, all(), &vault{}).Outgoing(r)
		return bodyText(t, r), err
	}
	refused := map[string]*http.Request{
		"a key": with("Api-Key", "own"), "folded": with("x_api_key", "own"), "dots": with("X.Api.Key", "own"), "a token": with("Private-Token", "own"), "Google's": with("X-Goog-Api-Key", "own"),
		"proxy": with("Proxy-Authorization", "Bearer own"), "a subprotocol": with("Sec-Websocket-Protocol", "openai-insecure-api-key.own"), "folded authorization": with("authorization_", "Bearer own"),
		"query": post(t, "/v1?a=b&key=own", "", ""), "token in a query": post(t, "/v1?access_token=own", "", ""), "escaped": post(t, "/v1?%61pi%5Fkey=own", "", ""), "behind a bad escape": post(t, "/v1?b=%zz;api_key=own", "", ""),
		"presigned": post(t, "/v1?X-Goog-Signature=own", "", ""), "a page's": post(t, "/v1?page_access_token=own", "", ""), "a web token": post(t, "/v1?jwt=own", "", ""),
		"an application's": with("Dd-Application-Key", "own"), "a secret": with("X-Api-Secret", "own"), "another word for it": with("X-Authentication", "own"),
	}
	for manner, c := range manners {
		for name, r := range refused {
			_, err := send([]Credential{c}, r)
			if refusal, is := errors.AsType[*Refused](err); !is || !strings.Contains(refusal.Sentence, "credential of its own (") {
				t.Errorf("%s, %s: %v", manner, name, err)
			}
			if _, err := send(nil, r); err != nil {
				t.Errorf("%s: a host without a secret: %v", name, err)
			}
			if _, err := send([]Credential{allowed}, r); err != nil {
				t.Errorf("%s: where it is allowed: %v", name, err)
			}
		}
		for _, name := range []string{"X-Trace", "Sec-Websocket-Key", "Idempotency-Key", "X-Csrf-Token", "Openai-Organization"} {
			if _, err := send([]Credential{c}, with(name, "own")); err != nil {
				t.Errorf("%s, %s: %v", manner, name, err)
			}
		}
		for _, query := range []string{"page_token=own", "max_tokens=1", "continuation-token=own", "monkey=own", "key="} {
			if _, err := send([]Credential{c}, post(t, "/v1?"+query, "", "")); err != nil {
				t.Errorf("%s, %s: %v", manner, query, err)
			}
		}
		got, err := send([]Credential{c}, with("Cookie", "session=own"))
		if err != nil || strings.Contains(got, "own") {
			t.Errorf("%s: a cookie: %v, %s", manner, err, got)
		}
	}
	where := []Credential{swapping(Header, Basic, Query)}
	for name, r := range map[string]*http.Request{
		"in place of the placeholder": with("X-Api-Key", "own"), "beside the placeholder": with("X-Api-Key", fake, "own"), "in one line with it": with("X-Api-Key", "own, "+fake),
		"before it": with("Authorization", "Bearer own "+fake), "as a parameter before it": with("Authorization", `Token token="own", x=`+fake), "in a parameter behind it": with("Authorization", "Bearer "+fake+", access_token=own"),
		"basic": with("Authorization", "Basic "+encode("me:own")),
	} {
		if _, err := send(where, r); err == nil {
			t.Errorf("%s: it is sent", name)
		}
	}
	for name, r := range map[string]*http.Request{ // the controls
		"the placeholder": with("X-Api-Key", fake), "a parameter": with("Authorization", `MediaBrowser Client="one", Token="`+fake+`"`), "a scheme": with("Authorization", "Bearer "+fake),
		"basic": with("Authorization", "Basic "+encode("me:"+fake)), "a cookie": with("Cookie", "a="+fake), "query": post(t, "/v1?key="+fake, "", ""),
	} {
		got, err := send(where, r)
		if err != nil || !strings.Contains(got, truth) && !strings.Contains(got, encode("me:"+truth)) && !strings.Contains(got, url.QueryEscape(truth)) {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
	if got, err := send(where, with("Cookie", "session=own; a="+fake+"; b=own", "c=own")); err != nil || strings.Contains(got, "own") || !strings.Contains(got, "a="+truth) {
		t.Errorf("cookies beside the placeholder's: %v, %s", err, got)
	}
	if got, err := send([]Credential{key}, with("X-Api-Key", "own")); err != nil || strings.Contains(got, "own") {
		t.Errorf("what is set over: %v, %s", err, got)
	}
}
