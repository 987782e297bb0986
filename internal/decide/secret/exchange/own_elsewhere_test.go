package exchange

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// TestOwnCredentialsWhereTheHostsSecretDoesNotGo: a host that a secret is for takes no other credential on a
// connection whose requests do not get it: the places in which it takes its own are looked at there as
// well. The controls: what has none leaves, and so does all where nothing is for the host.
func TestOwnCredentialsWhereTheHostsSecretDoesNotGo(t *testing.T) {
	inPlace := func(place Place) []Credential {
		return []Credential{{Secret: "one", Manner: Manner{Where: []Place{place}}}}
	}
	for name, c := range map[string]struct {
		ofHost     []Credential
		path       string
		head       http.Header
		body, kind string
		harmless   string // a body in place of it
	}{
		"a header":            {ofHost: []Credential{setting()}, path: "/v1", head: http.Header{"X-Api-Key": {mine}}},
		"the secret's header": {ofHost: []Credential{{Secret: "one", Manner: Manner{Header: "X-Door", Format: Variable}}}, path: "/v1", head: http.Header{"X-Door": {mine}}},
		"a parameter":         {ofHost: []Credential{setting()}, path: "/v1?access_token=" + mine},
		"JSON":                {ofHost: inPlace(Body), path: "/v1", body: `{"client_secret":"` + mine + `"}`, kind: "application/json", harmless: `{"a":"b"}`},
		"a path":              {ofHost: inPlace(Path), path: "/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/send"},
		"a form that is signed": {
			ofHost: []Credential{{Secret: "one", Manner: Manner{Sign: SigV4}}}, path: "/bucket", kind: "multipart/form-data; boundary=b",
			body: "--b\r\nContent-Disposition: form-data; name=\"AWSAccessKeyId\"\r\n\r\n" + mine + "\r\n--b--\r\n", harmless: "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--b--\r\n",
		},
	} {
		send := func(x *Exchange, path string, head http.Header, body string) error {
			r := post(t, path, c.kind, body)
			maps.Copy(r.Header, head)
			if err := x.Outgoing(r); err != nil {
				return err
			}
			_, err := io.ReadAll(r.Body)
			return err
		}
		alone := func() *Exchange { return New(nil, nil, &vault{}).OfHost(c.ofHost).Alone() }
		if err := send(New(nil, nil, &vault{}), c.path, c.head, c.body); err != nil {
			t.Errorf("INCONCLUSIVE: %s, to a host that nothing is for: %v", name, err)
		}
		if err := send(alone(), "/v1", nil, c.harmless); err != nil {
			t.Errorf("INCONCLUSIVE: %s, without one: %v", name, err)
		}
		err := send(alone(), c.path, c.head, c.body)
		refused, is := errors.AsType[*Refused](err)
		if !is || !strings.Contains(refused.Sentence, "of its own") && !strings.Contains(refused.Sentence, "sign") {
			t.Errorf("%s leaves: %v", name, err)
		}
	}
}
