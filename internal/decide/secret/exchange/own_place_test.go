package exchange

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// mine is a credential of the client's own. Where it leaves as it is, so does each piece of it.
const mine = "ghp_MINEmineMINEmine0123456789"

// leaves sends a request by an exchange with these credentials, to the end of its body, and gives
// what leaves of it: the head and the body, and then the trailer.
func leaves(t *testing.T, c []Credential, r *http.Request) (string, error) {
	t.Helper()
	if err := New(c, all(), &vault{}).Outgoing(r); err != nil {
		return "", err
	}
	trailer := r.Trailer
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	var head, behind strings.Builder
	_ = r.Header.Write(&head)
	_ = trailer.Write(&behind)
	return r.Method + " " + r.URL.String() + "\r\n" + head.String() + "\r\n" + string(b) + "\r\n" + behind.String(), nil
}

// credentialPlace is one in which a host may look for who asks.
type credentialPlace struct {
	credential Credential
	// spellings are the names of the place, of which the first is the ordinary one.
	spellings []string
	// request has the place hold these values, each under its name.
	request func(t *testing.T, pairs ...[2]string) *http.Request
	written func(secret string) string // how the place has a secret; nil: as it is
	// named tells that a value alone is refused under each spelling, and not only beside the
	// placeholder's: the name is known.
	named bool
	joins []string // what parts values in one line
}

func credentialPlaces() map[string]credentialPlace {
	const form, json = "application/x-www-form-urlencoded", "application/json"
	field := func(t *testing.T, pairs ...[2]string) *http.Request {
		t.Helper()
		r := post(t, "/v1", "", "")
		for _, p := range pairs {
			r.Header[p[0]] = append(r.Header[p[0]], p[1])
		}
		return r
	}
	listed := func(before, sign, after string) func(t *testing.T, pairs ...[2]string) string {
		return func(_ *testing.T, pairs ...[2]string) string {
			var all []string
			for _, p := range pairs {
				all = append(all, p[0]+"="+url.QueryEscape(p[1]))
			}
			return before + strings.Join(all, sign) + after
		}
	}
	at := func(write func(t *testing.T, pairs ...[2]string) string) func(t *testing.T, pairs ...[2]string) *http.Request {
		return func(t *testing.T, pairs ...[2]string) *http.Request {
			t.Helper()
			return post(t, write(t, pairs...), "", "")
		}
	}
	carrying := func(kind string, write func(t *testing.T, pairs ...[2]string) string) func(t *testing.T, pairs ...[2]string) *http.Request {
		return func(t *testing.T, pairs ...[2]string) *http.Request {
			t.Helper()
			return post(t, "/v1", kind, write(t, pairs...))
		}
	}
	object := func(_ *testing.T, pairs ...[2]string) string {
		var all []string
		for _, p := range pairs {
			all = append(all, fmt.Sprintf("%q: {%q: [1, %q]}", "a", p[0], p[1]))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	one := func(header string) Credential {
		return Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: header, Where: []Place{Header}}}
	}
	lists := []string{", ", " ", ";", ",", "; x=", ":", "="}
	folded := []string{"key[]", "key[0]", "key%5B0%5D", "KEY", "k%65y", "_key", "key.", "key[a]"}
	strange := func(name string) []string {
		return []string{name, strings.ToUpper(name), name + "[]", name + "[0]", name + "%5B%5D", "_" + name, name + "_", name + "[a]"}
	}
	return map[string]credentialPlace{
		"a header that is set": {
			credential: Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "Fastly-Key", Format: "{secret}"}},
			spellings:  []string{"Fastly-Key", "Fastly_key", "fastly_key", "Fastly.Key", "Fastlykey", "Fastly-Key-", "Fastly-Key-Bin"}, request: field, named: true, joins: lists,
		},
		"a header with the placeholder": {credential: one("X-Appwrite-Project"), spellings: []string{"X-Appwrite-Project", "X_Appwrite_Project", "X-Appwriteproject", "X.Appwrite.Project"}, request: field, named: true, joins: lists},
		"any header":                    {credential: swapping(Header), spellings: []string{"X-Honeycomb-Team", "X_Honeycomb_Team", "X-Honeycombteam"}, request: field, joins: lists},
		"a header for keys":             {credential: swapping(Header), spellings: []string{"X-Api-Key", "x_api_key", "X-Apikey", "X-Api-Key-Bin"}, request: field, named: true, joins: lists},
		"authorization":                 {credential: swapping(Header, Basic), spellings: []string{"Authorization", "Authorization_", "authorization", "X-Authorization", "Proxy-Authorization"}, request: field, named: true, joins: []string{", ", " ", ";", " Bearer "}},
		"query":                         {credential: swapping(Query), spellings: append([]string{"key"}, folded...), request: at(listed("/v1?", "&", "")), written: url.QueryEscape, named: true, joins: lists},
		"query, by semicolons":          {credential: swapping(Query), spellings: append([]string{"key"}, folded...), request: at(listed("/v1?a=b&", ";", "")), written: url.QueryEscape, named: true},
		"query, any name":               {credential: swapping(Query), spellings: strange("appid"), request: at(listed("/v1?", "&", "")), written: url.QueryEscape},
		"form":                          {credential: swapping(Body), spellings: strange("client_secret"), request: carrying(form, listed("a=b&", "&", "&c=d")), written: url.QueryEscape, named: true, joins: lists},
		"form, any name":                {credential: swapping(Body), spellings: strange("appid"), request: carrying(form, listed("", "&", "")), written: url.QueryEscape},
		"JSON":                          {credential: swapping(Body), spellings: []string{"client_secret", "clientSecret", "CLIENT-SECRET", "client_secret[]"}, request: carrying(json, object), named: true, joins: lists, written: func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }},
		"JSON, any name":                {credential: swapping(Body), spellings: []string{"appid", "app_id", "APPID", "appid[0]"}, request: carrying(json, object), written: func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }},
	}
}

// TestOneCredentialInEachPlace: whatever a place is called, and however often it is there, no
// credential of the client's own leaves by it. The controls: the placeholder leaves as the secret,
// and the client's own does where no secret goes, and where the policy says so.
func TestOneCredentialInEachPlace(t *testing.T) {
	for name, place := range credentialPlaces() {
		c, ordinary := []Credential{place.credential}, place.spellings[0]
		truth := truth
		if place.written != nil {
			truth = place.written(truth)
		}
		if got, err := leaves(t, c, place.request(t, [2]string{ordinary, fake})); err != nil || !strings.Contains(got, truth) {
			t.Errorf("%s: the control: %v, %q", name, err, got)
		}
		refused := func(how string, pairs ...[2]string) {
			t.Helper()
			got, err := leaves(t, c, place.request(t, pairs...))
			if refusal, is := errors.AsType[*Refused](err); strings.Contains(got, mine) || err != nil && !is || is && !refusal.Leak && !strings.Contains(refusal.Sentence, "credential of its own (") {
				t.Errorf("%s, %s: %v, %q", name, how, err, got)
			}
			allowed := place.credential
			allowed.Own = true
			if got, err := leaves(t, []Credential{allowed}, place.request(t, pairs...)); err == nil && !strings.Contains(got, mine) && !strings.Contains(got, url.QueryEscape(mine)) && !place.credential.setsCredential() {
				t.Errorf("%s, %s: where it is allowed: %q", name, how, got)
			}
		}
		for _, spelling := range place.spellings {
			own, theirs := [2]string{spelling, mine}, [2]string{ordinary, fake}
			if place.named {
				refused(spelling+" alone", own)
				if got, err := leaves(t, nil, place.request(t, own)); err != nil || !strings.Contains(got, mine) {
					t.Errorf("%s: a host without a secret: %v, %q", name, err, got)
				}
			}
			refused(spelling+" before the placeholder", own, theirs)
			refused(spelling+" behind the placeholder", theirs, own)
			refused(spelling+" on both sides of it", own, theirs, own)
		}
		for _, sign := range place.joins {
			refused("before it in one line by "+sign, [2]string{ordinary, mine + sign + fake})
			refused("behind it in one line by "+sign, [2]string{ordinary, fake + sign + mine})
		}
	}
}

// TestBasicAuthentication: beside a placeholder that is the password there is whose it is, and
// beside one that is the user there is nothing, or what clients have there.
func TestBasicAuthentication(t *testing.T) {
	c := []Credential{swapping(Header, Basic)}
	for pair, passes := range map[string]bool{
		"x-access-token:" + fake: true, "oauth2:" + fake: true, "git:" + fake: true, "__token__:" + fake: true, "alice:" + fake: true, ":" + fake: true, "AWS:" + fake: true, "alice@corp.example/token:" + fake: true,
		"some-organisation-with-a-long-name-2026:" + fake: true, "robot$project+builder:" + fake: true, "00000000-0000-0000-0000-000000000000:" + fake: true, "4f8a7c2e91b04d3fae5566778899aabb:" + fake: true, // a client's id
		fake + ":": true, fake + ":x-oauth-basic": true, fake + ":x": true, fake + ":X": true, fake + ":api_token": true, fake + ":" + fake: true,
		fake + ":" + mine: false, fake + ":hunter2": false, fake + ":" + fake + mine: false, fake + ":" + mine + fake: false, mine + ":" + fake: false, "sk_live_" + mine + ":" + fake: false, mine + ":": false, "alice:" + mine: false,
		mine + fake + ":": false, "alice:" + fake + ":" + mine: false, "alice:" + fake + " " + mine: false, fake + "\n:" + fake: false, "no pair": false, mine: false,
	} {
		for _, scheme := range []string{"Basic ", "basic ", "BASIC "} {
			r := post(t, "/v1", "", "")
			r.Header.Set("Authorization", scheme+encode(pair))
			err := New(c, all(), &vault{}).Outgoing(r)
			user, password, _ := r.BasicAuth()
			if passes && (err != nil || user+":"+password != strings.ReplaceAll(pair, fake, truth)) || !passes && err == nil {
				t.Errorf("%s%s: %v, %s", scheme, pair, err, user+":"+password)
			}
		}
	}
	for name, values := range map[string][]string{
		"behind it": {"Basic " + encode("me:"+fake), "Basic " + encode("me:"+mine)}, "before it": {"Basic " + encode("me:"+mine), "Basic " + encode("me:"+fake)}, "another scheme": {"Basic " + encode("me:"+fake), "Bearer " + mine},
		"in one line": {"Basic " + encode("me:"+fake) + ", Basic " + encode("me:"+mine)}, "no base64": {"Basic me:" + fake},
	} {
		r := post(t, "/v1", "", "")
		r.Header["Authorization"] = values
		if err := New(c, all(), &vault{}).Outgoing(r); err == nil {
			t.Errorf("%s: it is sent: %v", name, r.Header)
		}
	}
}

// TestCompositeCredentials: places in which more than one thing is said of who asks.
func TestCompositeCredentials(t *testing.T) {
	aws := Credential{Secret: "one", Placeholder: fake, Manner: Manner{Sign: SigV4}}
	path := Credential{Secret: "one", Placeholder: fake, Manner: Manner{Where: []Place{Path}}}
	where := swapping(Header, Basic, Query)
	get := func(target string, fields ...string) *http.Request {
		r := post(t, target, "", "")
		for i := 0; i < len(fields); i += 2 {
			r.Header[fields[i]] = append(r.Header[fields[i]], fields[i+1])
		}
		return r
	}
	behind := func(name string, announced bool) *http.Request {
		r := post(t, "/v1", "text/plain", "")
		r.Trailer = http.Header{"X-Sum": nil}
		if announced {
			r.Trailer[name] = nil
		}
		r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader("text"), readerFunc(func([]byte) (int, error) {
			r.Trailer[name] = []string{mine}
			return 0, io.EOF
		})))
		return r
	}
	in := get("/v1")
	in.URL.User = url.UserPassword("me", mine)
	websocket := func(offers string) *http.Request { return get("/v1", "Sec-Websocket-Protocol", offers) }
	for name, c := range map[string]struct {
		credential Credential
		request    *http.Request
	}{
		"aws, a bearer": {aws, get("/v1", "Authorization", "Bearer "+mine)}, "aws, a lower one": {aws, get("/v1", "Authorization", "bearer "+mine)}, "aws, basic": {aws, get("/v1", "Authorization", "Basic "+encode("me:"+mine))},
		"aws, its scheme in small letters": {aws, get("/v1", "Authorization", "aws4-hmac-sha256 Credential="+mine+"/20260101/r/s/aws4_request, SignedHeaders=host, Signature=00")},
		"aws, folded":                      {aws, get("/v1", "Authorization_", signature)}, "aws, a token": {aws, get("/v1", "X-Amz-Security-Token", mine)}, "aws, a word": {aws, get("/v1", "Authorization", mine)},
		"aws, beside the signature": {aws, get("/v1", "Authorization", signature, "X-Api-Key", mine)}, "aws, a query": {aws, get("/v1?X%2DAmz-Security-Token="+mine, "Authorization", signature)},
		"digest": {where, get("/v1", "Authorization", `Digest username="me", realm="r", nonce="n", uri="/v", response="`+mine+`", x="`+fake+`"`)},
		"hawk":   {where, get("/v1", "Authorization", `Hawk id="me", ts="1", mac="`+mine+`", app="`+fake+`"`)}, "oauth": {where, get("/v1", "Authorization", `OAuth oauth_token="`+fake+`", oauth_signature="`+mine+`"`)},
		"in quotes": {where, get("/v1", "Authorization", `Foo x="a, Bearer `+mine+`, y=`+fake)}, "a scheme": {where, get("/v1", "Authorization", mine+" "+fake)}, "negotiate": {where, get("/v1", "Authorization", "Negotiate "+mine)},
		"a web token": {where, get("/v1", "Authorization", "Bearer eyJhbGciOi.eyJzdWIi."+mine)}, "another web token": {where, get("/v1", "X-Appwrite-Jwt", mine)}, "one for gRPC": {where, get("/v1", "Authorization-Bin", mine)},
		"no placeholder": {where, get("/v1", "Authorization", `MediaBrowser Client="a", Device="b"`)}, "no placeholder for a key": {where, get("/v1", "X-Api-Key", "user=me")},
		"a proxy's": {where, get("/v1", "Proxy-Authorization", "Basic "+encode("me:"+mine))}, "user in the URL": {where, in},
		"kubernetes": {where, websocket("base64url.bearer.authorization.k8s.io.TUlORQ, v4.channel.k8s.io")}, "a word for it": {where, websocket("token, " + mine)}, "a word for it, in lines": {where, get("/v1", "Sec-Websocket-Protocol", "bearer", "Sec-Websocket-Protocol", "MINE")},
		"beside the placeholder": {where, websocket("openai-insecure-api-key." + mine + ", openai-insecure-api-key." + fake)}, "a name before it": {where, websocket("realtime, openai-insecure-api-key." + mine)}, "AppSync's": {where, websocket("aws-appsync-event-ws, header-" + encode(`{"Authorization":"mine0123"}`))},
		"path": {where, get("/v1;jsessionid="+mine, "Authorization", "Bearer "+fake)}, "path, escaped": {where, get("/v1%3Bjsessionid%3D"+mine, "Authorization", "Bearer "+fake)}, "path, a token": {where, get("/v1;a=b;access_token="+mine+"/x", "Authorization", "Bearer "+fake)},
		"a session in a query": {where, get("/v1?PHPSESSID="+mine, "Authorization", "Bearer "+fake)}, "a path with no placeholder": {path, get("/bot" + mine + "/send")}, "a path with a number": {path, get("/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/send")},
		"a member": {where, get("/v1?user[token]="+mine, "Authorization", "Bearer "+fake)}, "a cookie with more": {where, get("/v1", "Cookie", "session="+mine+"&x="+fake)},
		"trailer": {where, behind("X-Api-Key", true)}, "trailer, not announced": {where, behind("X-Api-Key", false)}, "trailer, folded": {where, behind("x_api_key", true)}, "trailer, a cookie": {where, behind("Cookie", true)}, "trailer, one that is set": {Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "Fastly-Key", Format: "{secret}"}}, behind("Fastly_key", false)},
		"trailer, aws": {aws, behind("X-Amz-Security-Token", true)},
		"form, twice":  {swapping(Body), post(t, "/token", "application/x-www-form-urlencoded", "client_secret="+fake+"&client_id=me&client_secret="+mine)}, "form, another way": {swapping(Body), post(t, "/token", "application/x-www-form-urlencoded", "client_secret="+fake+"&client_assertion="+mine)},
		"form and basic": {swapping(Body), func() *http.Request {
			r := post(t, "/token", "application/x-www-form-urlencoded", "client_secret="+fake)
			r.Header.Set("Authorization", "Basic "+encode("me:"+mine))
			return r
		}()},
		"no JSON": {swapping(Body), post(t, "/token", "application/json", `{"client_secret": "`+fake+`", client_secret: "`+mine+`"}`)},
	} {
		if got, err := leaves(t, []Credential{c.credential}, c.request); err == nil {
			t.Errorf("%s: it leaves: %q", name, got)
		} else if _, is := errors.AsType[*Refused](err); !is {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := New([]Credential{where}, all(), &vault{}).Outgoing(behind("X-Api-Key", true)); err == nil {
		t.Error("a trailer that is announced is refused only when it has come")
	}
	for name, r := range map[string]*http.Request{ // what is taken out
		"a cookie behind a blank": get("/v1", "Cookie", "session="+mine+" x="+fake), "a cookie behind a comma": get("/v1", "Cookie", "session="+mine+", x="+fake), "a cookie": get("/v1", "Cookie", "session="+mine+"; x="+fake),
		"folded": get("/v1", "Cookie_", "session="+mine), "a session": get("/v1", "X-Session-Id", mine), "a session, folded": get("/v1", "session_id", mine), "cookies in quotes": get("/v1", "Cookie", `a="b; session=`+mine+`; c=d"; x=`+fake),
	} {
		r.Header.Set("Authorization", "Bearer "+fake)
		if got, err := leaves(t, []Credential{where}, r); err != nil || strings.Contains(got, mine) || !strings.Contains(got, "Bearer "+truth) || r.Header.Get("Cookie") != "" && r.Header.Get("Cookie") != "x="+truth {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestRealRequests: what the clients of services send with a placeholder arrives with the secret,
// and all else of it as it was.
func TestRealRequests(t *testing.T) {
	basic := func(pair string) string { return "Basic " + encode(pair) }
	anywhere := swapping(Header, Basic)
	for name, c := range map[string]struct {
		credential Credential
		url        string
		fields     []string
		kind, body string
	}{
		"OpenAI's SDK":    {anywhere, "/v1/responses", []string{"Authorization", "Bearer " + fake, "Openai-Organization", "org-1", "X-Stainless-Lang", "python", "Idempotency-Key", "stainless-python-retry-3f2b"}, "application/json", `{"model":"m","input":"password: token=x","max_tokens":3}`},
		"Anthropic's SDK": {anywhere, "/v1/messages?beta=true", []string{"X-Api-Key", fake, "Anthropic-Version", "2023-06-01", "X-Stainless-Retry-Count", "0"}, "application/json", `{"metadata":{"user_id":"me"}}`},
		"Google's":        {anywhere, "/v1beta/models/m:generate?alt=sse", []string{"X-Goog-Api-Key", fake, "X-Goog-Api-Client", "genai/1"}, "application/json", "{}"},
		"Azure's":         {anywhere, "/openai?api-version=2026-01-01", []string{"Api-Key", fake}, "application/json", "{}"},
		"git":             {anywhere, "/acme/app.git/git-upload-pack", []string{"Authorization", basic("x-access-token:" + fake), "Git-Protocol", "version=2"}, "application/x-git-upload-pack-request", "0011command=fetch"},
		"git, by user":    {anywhere, "/acme/app.git/info/refs?service=git-upload-pack", []string{"Authorization", basic(fake + ":")}, "", ""},
		"gh":              {anywhere, "/repos/acme/app/issues?per_page=30&page=2", []string{"Authorization", "token " + fake, "X-Github-Api-Version", "2022-11-28", "Time-Zone", "Europe/Berlin"}, "", ""},
		"npm":             {anywhere, "/-/whoami", []string{"Authorization", "Bearer " + fake, "Npm-Session", "0123456789abcdef", "Npm-Command", "whoami", "Npm-Auth-Type", "web"}, "", ""},
		"npm, by _auth":   {anywhere, "/pkg", []string{"Authorization", basic("me:" + fake)}, "", ""},
		"pip and twine":   {anywhere, "/legacy/", []string{"Authorization", basic("__token__:" + fake)}, "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"sha256_digest\"\r\n\r\n00\r\n--b--\r\n"},
		"docker login":    {anywhere, "/token?account=me&client_id=docker&offline_token=&service=registry.example&scope=repository%3Aa%2Fb%3Apull%2Cpush", []string{"Authorization", basic("me:" + fake)}, "", ""},
		"curl -u":         {anywhere, "/v1/charges", []string{"Authorization", basic(fake + ":")}, "application/x-www-form-urlencoded", "amount=1&source=tok_visa"},
		"a client's id":   {anywhere, "/oauth/token", []string{"Authorization", basic("4f8a7c2e91b04d3fae5566778899aabb:" + fake)}, "application/x-www-form-urlencoded", "grant_type=client_credentials"},
		"Jellyfin":        {anywhere, "/Items", []string{"Authorization", `MediaBrowser Client="Jellyfin Web", Device="a browser", DeviceId="TW96aWxsYS81LjAgKFgxMTsgTGludXg", Version="10.9", Token="` + fake + `"`}, "", ""},
		"Proxmox":         {anywhere, "/api2/json", []string{"Authorization", "PVEAPIToken=root@pam!ci=" + fake}, "", ""},
		"Kite":            {anywhere, "/orders", []string{"Authorization", "token apiid123:" + fake}, "", ""},
		"Discord":         {anywhere, "/api/v10", []string{"Authorization", "Bot " + fake}, "", ""},
		"Sentry":          {anywhere, "/api/1/store/", []string{"X-Sentry-Auth", "Sentry sentry_version=7, sentry_client=raven/1, sentry_key=" + fake}, "", ""},
		"a bare one":      {anywhere, "/graphql", []string{"Authorization", fake}, "", ""},
		"MCP":             {anywhere, "/mcp", []string{"Authorization", "Bearer " + fake, "Mcp-Session-Id", "1868a90c-1111-4222-8333-123456789abc", "Mcp-Protocol-Version", "2025-06-18"}, "application/json", "{}"},
		"a WebSocket":     {anywhere, "/v1/realtime", []string{"Sec-Websocket-Protocol", "realtime, openai-insecure-api-key." + fake + ", openai-beta.realtime-v1", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version", "13"}, "", ""},
		"Deepgram's":      {anywhere, "/v1/listen", []string{"Sec-Websocket-Protocol", "token, " + fake}, "", ""},
		"protocols":       {anywhere, "/v1", []string{"Authorization", "Bearer " + fake, "Sec-Websocket-Protocol", "graphql-transport-ws, v5.channel.k8s.io, mqttv3.1, wamp.2.json"}, "", ""},
		"a map's":         {swapping(Query), "/data?q=Berlin&appid=" + fake + "&page_token=ab12&sid=1&session_id=2&version=1;2", nil, "", ""},
		"Telegram":        {swapping(Path), "/bot" + fake + "/send;v=1?chat_id=1", nil, "application/json", `{"text":"x"}`},
		"OAuth, a form":   {swapping(Body), "/token", nil, "application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token=0123456789abcdefABCDEF&client_id=agents&client_secret=" + fake + "&code=x&code_verifier=y"},
		"OAuth, JSON":     {swapping(Body), "/token", nil, "application/json", `{"grant_type":"authorization_code","code":"0123456789abcdefABCDEF","client_id":"agents","client_secret":"` + fake + `"}`},
		"Jira's":          {anywhere, "/rest/api/3/issue/A-1/attachments", []string{"Authorization", basic("me@corp.example:" + fake), "X-Atlassian-Token", "no-check"}, "", ""},
		"Graph's pages":   {anywhere, "/v1.0/users?$top=5&$skiptoken=RFNwdAIAAQ&$deltatoken=ab12", []string{"Authorization", "Bearer " + fake}, "", ""},
		"pages":           {anywhere, "/2/tweets?pagination_token=7140dibdnow9c7btw&resumptionToken=ab12", []string{"Authorization", "Bearer " + fake}, "", ""},
		"S3, unsigned":    {signing(), "/b/public.txt?list-type=2&continuation-token=1abc", []string{"X-Amz-Date", "20260101T000000Z", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"}, "", ""},
	} {
		r := post(t, c.url, c.kind, c.body)
		for i := 0; i < len(c.fields); i += 2 {
			r.Header.Set(c.fields[i], c.fields[i+1])
		}
		swapped := []string{truth, url.QueryEscape(truth), url.PathEscape(truth), strings.ReplaceAll(truth, `"`, `\"`)}
		had := len(r.Header)
		got, err := leaves(t, []Credential{c.credential}, r)
		user, password, _ := r.BasicAuth()
		found := user == truth || password == truth || c.credential.Sign != ""
		for _, s := range swapped {
			found = found || strings.Contains(got, s)
		}
		if err != nil || !found || strings.Contains(got, fake) || len(r.Header) < had { // and one that asks for what can be read
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

// TestAPlaceholderAsTheMethod is an alarm, also where capitals were lost, and so is one before
// the host's name.
func TestAPlaceholderAsTheMethod(t *testing.T) {
	for where, change := range map[string]func(r *http.Request){
		"method": func(r *http.Request) { r.Method = fake }, "method in capitals": func(r *http.Request) { r.Method = strings.ToUpper(fake) }, "user in the URL": func(r *http.Request) { r.URL.User = url.User(fake) },
		"": func(r *http.Request) { r.Method = "PROPFIND" }, // the control
	} {
		v, r := &vault{}, post(t, "/v1", "", "")
		change(r)
		err := New(nil, all(), v).Outgoing(r)
		_, leaked := v.told()
		if where == "" && err != nil || where != "" && (err == nil || len(leaked) != 1 || leaked[0] != "one in "+strings.TrimSuffix(where, " in capitals")) {
			t.Errorf("%s: %v, %q", where, err, leaked)
		}
	}
}
