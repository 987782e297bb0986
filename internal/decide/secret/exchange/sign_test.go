package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const signature = "AWS4-HMAC-SHA256 Credential=" + fake + "/20261123/eu-west-1/dynamodb/aws4_request, SignedHeaders=accept-encoding;content-length;host;x-amz-date;x-amz-target, Signature=00ff"

func signing() Credential {
	return Credential{Secret: "one", Placeholder: fake, Manner: Manner{Sign: SigV4}}
}

// signed is a request that a client has signed.
func signed(t *testing.T, url, authorization, body string) *http.Request {
	t.Helper()
	r := post(t, url, "application/x-amz-json-1.0", body)
	for name, value := range map[string]string{
		"Authorization": authorization, "X-Amz-Date": "20200101T000000Z", "X-Amz-Security-Token": "the-clients-own", "X-Amz-Target": "List", "Accept-Encoding": "gzip", "X-Other": "1",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// TestARequestIsSignedAnew: of the client's signature nothing leaves, what it signed is
// signed, as it will leave, and the session's token does not come back.
func TestARequestIsSignedAnew(t *testing.T) {
	v := &vault{}
	e := New([]Credential{signing()}, all(), v)
	r := signed(t, "/a%20b?c=d", signature, `{"a":1}`)
	if err := e.Outgoing(r); err != nil {
		t.Fatal(err)
	}
	got := bodyText(t, r)
	for _, want := range []string{"Authorization: the signature\r\n", "X-Amz-Date: the date\r\n", "X-Amz-Security-Token: " + token + "\r\n", "Accept-Encoding: identity\r\n", "\r\n\r\n{\"a\":1}"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(got, fake) || strings.Contains(got, "the-clients-own") || strings.Contains(got, "00ff") || strings.Contains(got, truth) {
		t.Error(got)
	}
	if used, leaked := v.told(); !slices.Equal(used, []string{"POST /a%20b one signature dynamodb eu-west-1"}) || len(leaked) > 0 {
		t.Errorf("%q, %q", used, leaked)
	}
	to := v.signed[0]
	if to.Method != "POST" || to.Path != "/a%20b" || to.Query != "c=d" || to.Host != r.Host || to.Length != 7 || to.Service != "dynamodb" || to.Region != "eu-west-1" ||
		to.Payload != "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862" || len(to.Header) != 2 || to.Header.Get("Accept-Encoding") != "identity" || to.Header.Get("X-Amz-Target") != "List" {
		t.Errorf("%+v", to)
	}
	a := &http.Response{Header: http.Header{"X-Echo": {token}}, Body: io.NopCloser(strings.NewReader("it is " + token))}
	if err := e.Incoming(a); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(a.Body); err != nil || strings.Contains(string(b), token) || a.Header.Get("X-Echo") == token {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWhatIsNotSignedAnew is refused, with a reason, and no key is used for it; what has no
// credential at all passes as it is, and another one where the policy says so.
func TestWhatIsNotSignedAnew(t *testing.T) {
	with := func(name, value string) *http.Request {
		r := signed(t, "/", signature, "body")
		r.Header.Set(name, value)
		return r
	}
	twice := with("A", "b")
	twice.Header.Add("Authorization", signature)
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"unsigned":          {post(t, "/", "", ""), ""},
		"a bearer":          {with("Authorization", "Bearer of-its-own"), "credential of its own (header Authorization)"},
		"signed":            {signed(t, "/", signature, ""), ""},
		"another key":       {signed(t, "/", strings.ReplaceAll(signature, fake, "AKIAOTHER"), ""), "signed with a key that is none of the sandbox's placeholders"},
		"in its URL":        {post(t, "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+fake+"%2F20261123%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=00", "", ""), "a presigned URL can't be used from inside"},
		"in its URL, 2":     {post(t, "/?AWSAccessKeyId="+fake+"&Signature=00&Expires=1", "", ""), "a presigned URL can't be used from inside"},
		"chunks":            {with("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), "signs each chunk of its body (STREAMING-AWS4-HMAC-SHA256-PAYLOAD)"},
		"no hash":           {with("X-Amz-Content-Sha256", "none"), "neither a hash nor a word"},
		"four A":            {with("Authorization", strings.Replace(signature, "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", 1)), "a scheme other than AWS4-HMAC-SHA256"},
		"version 2":         {with("Authorization", "AWS "+fake+":c2ln"), "a scheme other than AWS4-HMAC-SHA256"},
		"twice":             {twice, "signed twice"},
		"no scope":          {with("Authorization", "AWS4-HMAC-SHA256 Credential="+fake), "no credential scope"},
		"a strange service": {with("Authorization", strings.Replace(signature, "dynamodb", "dyn.example", 1)), "other characters than"},
		"not over the host": {with("Authorization", strings.Replace(signature, "host;", "", 1)), "not over its host"},
		"too large":         {signed(t, "/", signature, strings.Repeat("a", maxBody+1)), "more bytes than are read for that"},
	} {
		v := &vault{}
		err := New([]Credential{signing()}, all(), v).Outgoing(c.request)
		used, leaked := v.told()
		refused, is := errors.AsType[*Refused](err)
		switch {
		case c.want == "" && (err != nil || len(leaked) > 0):
			t.Errorf("%s: %v, %q", name, err, leaked)
		case c.want != "" && (!is || !strings.Contains(refused.Sentence, c.want) || len(used) > 0 || len(leaked) > 0):
			t.Errorf("%s: %v, %q, %q", name, err, used, leaked)
		}
	}
	allowed, v, r := signing(), &vault{}, with("Authorization", "Bearer of-its-own")
	allowed.Own = true
	if err := New([]Credential{allowed}, all(), v).Outgoing(r); err != nil || r.Header.Get("Authorization") != "Bearer of-its-own" {
		t.Error(err)
	}
}

// TestAPlaceholderOfAKeyElsewhere is an alarm: at a host that gets none, in another place,
// and beside the signature.
func TestAPlaceholderOfAKeyElsewhere(t *testing.T) {
	beside := signed(t, "/", signature, "")
	beside.Header.Set("X-Other", fake)
	for name, c := range map[string]struct {
		credentials []Credential
		request     *http.Request
		leak        string
	}{
		"another host":       {nil, signed(t, "/", signature, ""), "one in header Authorization"},
		"another scheme":     {[]Credential{signing()}, signed(t, "/", "Bearer "+fake, ""), "one in header Authorization"},
		"beside a signature": {[]Credential{signing()}, beside, "one in header X-Other"},
		"in a signed body":   {[]Credential{signing()}, signed(t, "/", signature, `{"a":"`+fake+`"}`), "one in body"},
	} {
		v := &vault{}
		err := New(c.credentials, all(), v).Outgoing(c.request)
		if err == nil {
			_, err = io.ReadAll(c.request.Body)
		}
		if used, leaked := v.told(); err == nil || !slices.Equal(leaked, []string{c.leak}) || len(used) > 0 {
			t.Errorf("%s: %v, %q, %q", name, err, used, leaked)
		}
	}
}

// signer is a Keeper that signs with a key, which may have a session's token, and may be given another secret's text.
type signer struct {
	vault

	session bool
	others  map[string][]string
}

func (s *signer) Secrets(_ context.Context, _ Request, uses []Use) (Given, error) {
	g := Given{Secrets: map[string]string{}, Header: http.Header{"Authorization": {"the signature"}}, Others: s.others}
	for _, u := range uses {
		if u.Sign == nil {
			g.Secrets[u.Secret] = truth
		} else if s.session {
			g.Secrets[u.Secret] = token
			g.Header.Set("X-Amz-Security-Token", token)
		}
	}
	return g, nil
}

// TestAPartIsAskedForOnlyWhereAHostGetsNoText: a host that gets the text of a secret would give it back in parts, in none of which it
// can be found. A range that was signed can't be left out, so its request is refused; another one is left out, and a part that comes all the same
// does not arrive. The control: of a key without a session the host gets signatures alone, so its ranges stay.
func TestAPartIsAskedForOnlyWhereAHostGetsNoText(t *testing.T) {
	key := Credential{Secret: "key", Placeholder: fake, Manner: Manner{Sign: SigV4}}
	beside := Credential{Secret: "beside", Manner: Manner{Header: "X-Api-Key", Format: Variable}}
	overRange := strings.Replace(signature, "host;", "host;range;", 1)
	for name, c := range map[string]struct {
		credentials   []Credential
		keeper        *signer
		elsewhere     []Credential // of the host's other ports
		kept          []string
		authorization string
		parts         bool
		refused       bool
	}{
		"the control":               {[]Credential{key}, &signer{}, nil, nil, signature, true, false},
		"the control, signed":       {[]Credential{key}, &signer{}, nil, nil, overRange, true, false},
		"another host's secret":     {[]Credential{key}, &signer{others: map[string][]string{"other": {truth}}}, nil, nil, overRange, true, false},
		"a session":                 {[]Credential{key}, &signer{session: true}, nil, nil, signature, false, false},
		"a session, signed":         {[]Credential{key}, &signer{session: true}, nil, nil, overRange, false, true},
		"another run's session":     {[]Credential{key}, &signer{others: map[string][]string{"key": {token}}}, nil, nil, overRange, false, true},
		"a secret beside it":        {[]Credential{key, beside}, &signer{}, nil, nil, signature, false, false},
		"a secret beside, signed":   {[]Credential{key, beside}, &signer{}, nil, nil, overRange, false, true},
		"one of another port":       {[]Credential{key}, &signer{others: map[string][]string{"beside": {truth}}}, []Credential{beside}, nil, overRange, false, true},
		"one that it has of a run":  {[]Credential{key}, &signer{others: map[string][]string{"kept": {truth}}}, nil, []string{"kept"}, overRange, false, true},
		"one that it had of no run": {[]Credential{key}, &signer{}, nil, []string{"kept"}, overRange, true, false},
	} {
		e := New(c.credentials, map[string]string{"key": fake}, c.keeper).OfHost(c.elsewhere).Kept(c.kept)
		r := signed(t, "/a", c.authorization, `{"a":1}`)
		r.Header.Set("Range", "bytes=0-2")
		err := e.Outgoing(r)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if asked := r.Header.Get("Range") != ""; asked != c.parts {
			t.Errorf("%s: a part is asked for: %v", name, asked)
		}
		a := &http.Response{StatusCode: http.StatusPartialContent, Request: r, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(token[:3])), ContentLength: 3, ProtoMajor: 1}
		if err := e.Incoming(a); (err == nil) != c.parts {
			t.Errorf("%s: a part comes: %v", name, err)
		}
	}
}

// TestAPartEndsOnceTheHostHasAText: the host gets the text of a secret while it sends a part of what it has, by another request, or for
// another run. The control: nobody brings it one.
func TestAPartEndsOnceTheHostHasAText(t *testing.T) {
	key := Credential{Secret: "key", Placeholder: fake, Manner: Manner{Sign: SigV4}}
	for _, brought := range []bool{false, true} {
		keeper := &signer{}
		e := New([]Credential{key}, map[string]string{"key": fake}, keeper)
		r := signed(t, "/a", signature, "")
		r.Header.Set("Range", "bytes=0-2")
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		in, out := io.Pipe()
		a := &http.Response{StatusCode: http.StatusPartialContent, Request: r, Header: http.Header{"Content-Type": {"text/plain"}}, Body: in, ContentLength: 3, ProtoMajor: 1}
		if err := e.Incoming(a); err != nil {
			t.Fatal(err)
		}
		keeper.session = brought
		if err := e.Outgoing(signed(t, "/b", signature, "")); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(out, token[:3]); _ = out.Close() }()
		b, err := io.ReadAll(a.Body)
		if brought && (err == nil || len(b) > 0) || !brought && (err != nil || string(b) != token[:3]) {
			t.Errorf("brought %t: %q, %v", brought, b, err)
		}
	}
}
