package exchange

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestABodyThatNobodyLookedAt does not leave to a host that gets its secret in the body: another
// reader than ours might find a credential of the client's own in it. The controls: what can be
// looked at leaves, and so does all of it where the policy lets the client's own through, and to a
// host that gets its secret elsewhere.
func TestABodyThatNobodyLookedAt(t *testing.T) {
	const form, json = "application/x-www-form-urlencoded", "application/json"
	own := "client_secret=" + mine
	const parts = "multipart/form-data; boundary=b"
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	large := "a=" + strings.Repeat(" ", maxBody)
	for name, c := range map[string]struct {
		kinds   []string
		body    string
		unknown bool // how long it is
		passes  bool
	}{
		"a form":                           {kinds: []string{form}, body: own},
		"a large form":                     {kinds: []string{form}, body: large + "&" + own},
		"a large form, in chunks":          {kinds: []string{form}, body: large + "&" + own, unknown: true},
		"large JSON":                       {kinds: []string{json}, body: `{"a":"` + large + `","client_secret":"` + mine + `"}`, unknown: true},
		"a kind with a bad parameter":      {kinds: []string{form + "; charset"}, body: own},
		"JSON with a bad parameter":        {kinds: []string{json + `; charset="`}, body: `{"client_secret":"` + mine + `"}`},
		"no kind":                          {kinds: []string{"/"}, body: own},
		"two kinds in one":                 {kinds: []string{"text/plain, " + form}, body: own},
		"a second kind":                    {kinds: []string{"text/plain", form}, body: own},
		"a first kind":                     {kinds: []string{form, "text/plain"}, body: own},
		"JSON behind a mark":               {kinds: []string{json}, body: "\ufeff" + `{"client_secret":"` + mine + `"}`},
		"JSON of JavaScript":               {kinds: []string{json}, body: `{client_secret: "` + mine + `"}`},
		"JSON that ends early":             {kinds: []string{json}, body: `{"a": 1,, "client_secret": "` + mine + `"}`},
		"harmless":                         {kinds: []string{form}, body: "a=b", passes: true},
		"harmless, with a bad parameter":   {kinds: []string{form + "; charset"}, body: "a=b", passes: true},
		"harmless JSON":                    {kinds: []string{json}, body: `{"a": [1, null, "b"]} `, passes: true},
		"many fields":                      {kinds: []string{form}, body: strings.Repeat("a&", maxFields)},
		"many texts":                       {kinds: []string{json}, body: "[" + strings.Repeat(`"a",`, maxFields) + `"a"]`},
		"many parts":                       {kinds: []string{parts}, body: strings.Repeat(part("a", ""), maxFields+1)},
		"as many texts as may be":          {kinds: []string{json}, body: "[" + strings.Repeat(`"a",`, maxFields-1) + `"a"]`, passes: true},
		"no kind at all":                   {body: own},
		"a form of parts":                  {kinds: []string{parts}, body: part("client_secret", mine)},
		"a form of parts, by another name": {kinds: []string{parts}, body: part("a", "b") + part("CLIENT_SECRET[]", mine)},
		"a large form of parts":            {kinds: []string{parts}, body: part("a", large) + part("client_secret", mine), unknown: true},
		"parts with two names":             {kinds: []string{parts}, body: strings.Replace(part("a", mine), `"a"`, `"a"; name="client_secret"`, 1)},
		"a boundary for some":              {kinds: []string{parts}, body: part("a", "b\r\n--bc\r\nContent-Disposition: form-data; name=\"client_secret\"\r\n\r\n"+mine)},
		"no boundary":                      {kinds: []string{"multipart/form-data"}, body: part("client_secret", mine)},
		"two boundaries":                   {kinds: []string{parts + "; boundary=c"}, body: part("client_secret", mine)},
		"harmless parts":                   {kinds: []string{parts}, body: part("a", "b") + part("grant_type", "code") + "--b--\r\n", passes: true},
		"no body":                          {kinds: []string{json}, passes: true},
		"JSON that is called text":         {kinds: []string{"text/plain"}, body: `{"client_secret":"` + mine + `"}`},
		"a form that is called text":       {kinds: []string{"text/plain;charset=UTF-8"}, body: own},
		"JSON by its old name":             {kinds: []string{"text/json"}, body: `{"client_secret":"` + mine + `"}`},
		"lines of JSON":                    {kinds: []string{"application/x-ndjson"}, body: `{"client_secret":"` + mine + `"}` + "\n"},
		"XML":                              {kinds: []string{"application/xml"}, body: "<client_secret>" + mine + "</client_secret>"},
		"an image that is XML":             {kinds: []string{"image/svg+xml"}, body: "<client_secret>" + mine + "</client_secret>"},
		"MessagePack":                      {kinds: []string{"application/msgpack"}, body: "\x81\xadclient_secret\xa4" + mine},
		"parts of another kind":            {kinds: []string{"multipart/mixed; boundary=b"}, body: part("client_secret", mine)},
		"an image":                         {kinds: []string{"image/png"}, body: "\x89PNG", passes: true},
		"a large upload":                   {kinds: []string{"application/octet-stream"}, body: large, unknown: true, passes: true},
	} {
		send := func(c2 Credential) (string, error) {
			if strings.HasPrefix(c.body, "--b\r\n") && !strings.HasSuffix(c.body, "--b--\r\n") {
				c.body += "--b--\r\n"
			}
			r := post(t, "/token", "", c.body)
			if r.Header["Content-Type"] = c.kinds; c.unknown {
				r.Body, r.ContentLength = io.NopCloser(struct{ io.Reader }{r.Body}), -1
			}
			return leaves(t, []Credential{c2}, r)
		}
		got, err := send(swapping(Body))
		if _, is := errors.AsType[*Refused](err); c.passes && (err != nil || !strings.Contains(got, c.body)) || !c.passes && !is {
			t.Errorf("%s: %v, %.200q", name, err, got)
		}
		allowed := swapping(Body)
		allowed.Own = true
		for _, other := range []Credential{allowed, swapping(Header)} {
			if got, err := send(other); err != nil || !strings.Contains(got, c.body) {
				t.Errorf("%s: to who may have it: %v, %.200q", name, err, got)
			}
		}
	}
}

// TestAKeyInPlaceOfAScheme is the client's own, and so is one in a parameter that has a name of
// the service's own for keys, or before a point of a subprotocol. The controls: words of real
// clients in these places.
func TestAKeyInPlaceOfAScheme(t *testing.T) {
	const ofHex, ofLetters = "deadbeefcafebabe0123456789abcdef", "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"
	for _, c := range []struct {
		field, value string
		passes       bool
	}{
		{"Authorization", ofHex + " " + fake, false},
		{"Authorization", ofLetters + " " + fake, false},
		{"X-Sentry-Auth", "Sentry sentry_version=7, sentry_key=" + ofHex + ", x=" + fake, false},
		{"X-Sentry-Auth", "Sentry x=" + fake + ", sentry_secret=" + ofHex, false},
		{"Authorization", "Foo x=" + fake + ", session_key=" + ofHex, false},
		{"Sec-Websocket-Protocol", "key." + "short-own" + ", x." + fake, false},
		{"Sec-Websocket-Protocol", "auth." + "short-own", false},
		{"Authorization", "AWS4-HMAC-SHA256-ACCESS-TOKEN " + fake, true},
		{"Authorization", "DeepL-Auth-Key " + fake, true},
		{"Authorization", "Zoho-oauthtoken " + fake, true},
		{"Authorization", "key=" + fake, true},
		{"Authorization", `OAuth oauth_consumer_key="agents", oauth_token="` + fake + `"`, true},
		{"Authorization", `Snowflake Token="` + fake + `"`, true},
		{"Authorization", "ApiKey me:" + fake, true},
		{"X-Sentry-Auth", "Sentry sentry_version=7, sentry_client=raven/1, sentry_key=" + fake, true},
		{"Sec-Websocket-Protocol", "realtime, openai-insecure-api-key." + fake, true},
	} {
		r := post(t, "/v1", "", "")
		r.Header.Set(c.field, c.value)
		if got, err := leaves(t, []Credential{swapping(Header, Basic)}, r); c.passes && (err != nil || !strings.Contains(got, truth)) || !c.passes && err == nil {
			t.Errorf("%s: %s: %v, %q", c.field, c.value, err, got)
		}
	}
}

// TestARefusalIsShort, however long the name of the place is that the client chose.
func TestARefusalIsShort(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for name, r := range map[string]*http.Request{
		"query": post(t, "/v1?"+long+"_token=own", "text/plain", ""), "JSON": post(t, "/v1", "application/json", `{"`+long+`password":"own"}`),
		"form": post(t, "/v1", "application/x-www-form-urlencoded", long+"password=own"), "short": post(t, "/v1?my_token=own", "application/octet-stream", ""),
	} {
		err := New([]Credential{swapping(Body)}, all(), &vault{}).Outgoing(r)
		if refused, is := errors.AsType[*Refused](err); !is || len(refused.Sentence) > 400 || name == "short" && !strings.Contains(refused.Sentence, "(parameter mytoken)") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
