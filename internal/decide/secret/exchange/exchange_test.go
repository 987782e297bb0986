package exchange

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
)

const (
	fake  = "sk-fake-AAAAAAAAAAAAAAAAAAAAAAAA"
	other = "ghp_BBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	truth = `tr"ue/se+cret<1>`
	token = "the-sessions/token+1"
)

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// vault is a Keeper of the test's own.
type vault struct {
	mu     sync.Mutex // guards all below
	locked bool
	used   []string
	leaked []string
	signed []sigv4.Request

	declined []string
}

func (v *vault) Declined(_ context.Context, secrets []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.declined = append(v.declined, secrets...)
}

func (v *vault) Secrets(_ context.Context, r Request, uses []Use) (Given, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.locked {
		return Given{}, &Refused{Sentence: "the vault is sealed"}
	}
	for _, u := range uses {
		v.used = append(v.used, fmt.Sprintf("%s %s %s %s", r.Method, r.Path, u.Secret, u.Where))
	}
	return v.given(uses), nil
}

// given are the secrets of uses, and a signature if one is asked for.
func (v *vault) given(uses []Use) Given {
	g := Given{Secrets: map[string]string{"one": truth}}
	for _, u := range uses {
		if u.Sign != nil {
			v.signed = append(v.signed, *u.Sign)
			g.Secrets["one"] = token
			g.Header = http.Header{"Authorization": {"the signature"}, "X-Amz-Date": {"the date"}, "X-Amz-Security-Token": {token}}
		}
	}
	return g
}

func (v *vault) Leaked(_ context.Context, _ Request, l Leak) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leaked = append(v.leaked, l.Secret+" in "+l.Where)
	return "a placeholder is left"
}

func (v *vault) told() (used, leaked []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.used), slices.Clone(v.leaked)
}

func setting() Credential {
	return Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "Authorization", Format: "Bearer {secret}"}}
}

func swapping(where ...Place) Credential {
	return Credential{Secret: "one", Placeholder: fake, Manner: Manner{Where: where}}
}

func all() map[string]string { return map[string]string{"one": fake, "two": other} }

func post(t *testing.T, url, kind, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	r.RequestURI = "" // as in one that leaves
	r.Header.Set("Content-Type", kind)
	return r
}

func bodyText(t *testing.T, r *http.Request) string {
	t.Helper()
	b, err := httputil.DumpRequest(r, true)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlaces: in each place the secret is put as that place writes it, once, and on record.
func TestPlaces(t *testing.T) {
	const form, json = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
	withHeader := func(r *http.Request, name, value string) *http.Request {
		r.Header.Set(name, value)
		return r
	}
	for name, c := range map[string]struct {
		credential Credential
		request    *http.Request
		want       string // in the request
		used       string
	}{
		"set":             {setting(), post(t, "/v1", "", ""), "Authorization: Bearer " + truth + "\r\n", "POST /v1 one header Authorization"},
		"set over it":     {setting(), withHeader(post(t, "/v1", "", ""), "Authorization", "Bearer "+fake), "Authorization: Bearer " + truth + "\r\n", "POST /v1 one header Authorization"},
		"set, basic auth": {Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "Authorization", User: "me"}}, post(t, "/v1", "", ""), "Authorization: Basic " + encode("me:"+truth) + "\r\n", "POST /v1 one header Authorization"},
		"header":          {swapping(Header), withHeader(post(t, "/v1", "", ""), "X-Key", "key="+fake+";"), "X-Key: key=" + truth + ";\r\n", "POST /v1 one header"},
		"one header":      {Credential{Secret: "one", Placeholder: fake, Manner: Manner{Header: "x-key", Where: []Place{Header}}}, withHeader(post(t, "/v1", "", ""), "X-Key", fake), "X-Key: " + truth + "\r\n", "POST /v1 one header"},
		"basic":           {swapping(Basic), withHeader(post(t, "/v1", "", ""), "Authorization", "Basic "+encode("x-token:"+fake)), "Authorization: Basic " + encode("x-token:"+truth) + "\r\n", "POST /v1 one basic"},
		"query":           {swapping(Query), post(t, "/v1?a=1&key="+fake+"&b=%2B", "", ""), "?a=1&key=" + url.QueryEscape(truth) + "&b=%2B ", "POST /v1 one query"},
		"escaped query":   {swapping(Query), post(t, "/v1?key="+strings.ReplaceAll(fake, "-", "%2d"), "", ""), "?key=" + url.QueryEscape(truth) + " ", "POST /v1 one query"},
		"path":            {swapping(Path), post(t, "/bot"+fake+"/send%20it", "", ""), "POST /bot" + url.PathEscape(truth) + "/send%20it ", "POST /bot" + fake + "/send%20it one path"},
		"form":            {swapping(Body), post(t, "/token", form, "a=b&client_secret="+fake), "\r\n\r\na=b&client_secret=" + url.QueryEscape(truth), "POST /token one body"},
		"json":            {swapping(Body), post(t, "/token", json, `{"key":"`+fake+`"}`), "\r\n\r\n" + `{"key":"tr\"ue/se+cret<1>"}`, "POST /token one body"},
	} {
		v := &vault{}
		e := New([]Credential{c.credential}, all(), v)
		if err := e.Outgoing(c.request); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := bodyText(t, c.request)
		if !strings.Contains(got, c.want) || strings.Contains(got, fake) || c.request.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s: %s", name, got)
		}
		if used, leaked := v.told(); !slices.Equal(used, []string{c.used}) || len(leaked) > 0 {
			t.Errorf("%s: %q, %q", name, used, leaked)
		}
		if c.credential.swapsIn(Body) && c.request.ContentLength != int64(len(got)-strings.Index(got, "\r\n\r\n")-4) {
			t.Errorf("%s: a length of %d", name, c.request.ContentLength)
		}
	}
}

// TestWhatAHostDeclines: a 401 to a request that got a secret is told, and no other answer.
func TestWhatAHostDeclines(t *testing.T) {
	plain := post(t, "/v1", "", "")
	with := post(t, "/v1?key="+fake, "", "")
	with.Header.Set("X-Key", fake)
	for _, c := range []struct {
		request *http.Request
		status  int
		want    []string
	}{
		{with, http.StatusUnauthorized, []string{"one"}},
		{with, http.StatusForbidden, nil},
		{with, http.StatusOK, nil},
		{plain, http.StatusUnauthorized, nil},
	} {
		v := &vault{}
		e, r := New([]Credential{swapping(Header, Query)}, all(), v), c.request.Clone(t.Context())
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		if err := e.Incoming(&http.Response{StatusCode: c.status, Header: http.Header{}, Body: http.NoBody, Request: r}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v.declined, c.want) {
			t.Errorf("%d to %q: %q is declined, not %q", c.status, r.URL, v.declined, c.want)
		}
	}
}

// TestLeftPlaceholders: one that is left anywhere is refused and told, and no secret is
// fetched for it. The first case is the control.
func TestLeftPlaceholders(t *testing.T) {
	with := func(name, value string) *http.Request {
		r := post(t, "/v1", "", "")
		r.Header.Set(name, value)
		return r
	}
	long := post(t, "/v1", "text/plain", strings.Repeat("a", 3<<20)+fake+strings.Repeat("b", 1<<20))
	large := swapping(Body)
	large.Own = true // else nothing so large is sent
	trailing := post(t, "/v1", "text/plain", "body")
	trailing.Trailer = http.Header{"X-End": {other}}
	for name, c := range map[string]struct {
		credentials []Credential
		request     *http.Request
		leak        string
	}{
		"none":                      {[]Credential{setting()}, with("X-A", "b"), ""},
		"another host, header":      {nil, with("Authorization", "Bearer "+fake), "one in header Authorization"},
		"another host, basic":       {nil, with("Authorization", "Basic "+encode("me:"+fake)), "one in header Authorization"},
		"another host, encoded":     {nil, with("Cookie", "a="+encode("ab"+fake)), "one in header Cookie"},
		"another host, name":        {nil, with(other, "1"), "two in a header's name"},
		"another's placeholder":     {[]Credential{setting()}, with("X-A", other), "two in header X-A"},
		"in another header":         {[]Credential{setting()}, with("X-A", fake), "one in header X-A"},
		"in a place that is not":    {[]Credential{swapping(Query)}, with("Authorization", fake), "one in header Authorization"},
		"in a header that is not":   {[]Credential{{Secret: "one", Placeholder: fake, Manner: Manner{Header: "x-key", Where: []Place{Header}}}}, with("X-Other", fake), "one in header X-Other"},
		"query":                     {[]Credential{setting()}, post(t, "/?a="+fake, "", ""), "one in query"},
		"the name of a parameter":   {[]Credential{swapping(Query)}, post(t, "/?"+fake+"=a", "", ""), "one in query"},
		"escaped in a query":        {[]Credential{setting()}, post(t, "/?a="+strings.ReplaceAll(fake, "-", "%2D"), "", ""), "one in query"},
		"escaped in a path":         {[]Credential{swapping(Path)}, post(t, "/"+strings.ReplaceAll(fake, "-", "%2D"), "", ""), "one in path"},
		"body":                      {nil, post(t, "/", "application/json", `{"a":"`+other+`"}`), "two in body"},
		"a body of another kind":    {[]Credential{swapping(Body)}, post(t, "/", "application/octet-stream", "a="+fake), "one in body"},
		"a form's name":             {[]Credential{swapping(Body)}, post(t, "/", "application/x-www-form-urlencoded", fake+"=1"), "one in body"},
		"escaped in a form":         {[]Credential{swapping(Body)}, post(t, "/", "application/x-www-form-urlencoded", strings.ReplaceAll(fake, "-", "%2D")+"=1"), "one in body"},
		"too large to be swapped":   {[]Credential{large}, post(t, "/", "application/json", `"`+strings.Repeat(" ", maxBody)+fake+`"`), "one in body"},
		"far inside of an upload":   {[]Credential{setting()}, long, "one in body"},
		"behind the body":           {nil, trailing, "two in trailer"},
		"a placeholder that is cut": {nil, with("X-A", fake[:len(fake)-1]), ""},
	} {
		v := &vault{}
		err := New(c.credentials, all(), v).Outgoing(c.request)
		sent := ""
		if err == nil {
			var b []byte
			b, err = io.ReadAll(c.request.Body)
			sent = string(b)
		}
		_, leaked := v.told()
		refused, is := errors.AsType[*Refused](err)
		switch {
		case c.leak == "" && (err != nil || len(leaked) > 0):
			t.Errorf("%s: %v, %q", name, err, leaked)
		case c.leak == "":
		case !is || refused.Sentence != "a placeholder is left" || !slices.Equal(leaked, []string{c.leak}):
			t.Errorf("%s: %v, %q", name, err, leaked)
		case strings.Contains(sent, fake[:hush]) || strings.Contains(sent, other[:hush]):
			t.Errorf("%s: %d bytes left, with the placeholder's beginning", name, len(sent))
		}
	}
}

// TestAnUploadIsCheckedHoweverItIsCut: the placeholder does not leave whole.
func TestAnUploadIsCheckedHoweverItIsCut(t *testing.T) {
	for cut := range len(fake) {
		r := post(t, "/", "text/plain", "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("before "+fake[:cut]), strings.NewReader(fake[cut:]+" after")))
		r.ContentLength = -1
		if err := New(nil, all(), &vault{}).Outgoing(r); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if err == nil || strings.Contains(string(b), fake[:hush]) {
			t.Errorf("cut at %d: %q, %v", cut, b, err)
		}
	}
}

// TestAnEncodedBody does not go to a host at which its placeholder would be swapped in it:
// nobody sees whether it has one. To others it goes as it is.
func TestAnEncodedBody(t *testing.T) {
	for _, c := range []struct {
		credential Credential
		codings    []string
		refused    bool
	}{
		{swapping(Body), nil, false}, // the control
		{swapping(Body), []string{"", "Identity"}, false},
		{swapping(Body), []string{"gzip"}, true},
		{swapping(Body), []string{"identity", "br"}, true},
		{swapping(Header, Body), []string{"gzip"}, true},
		{swapping(Header), []string{"gzip"}, false},
	} {
		v, r := &vault{}, post(t, "/token", "application/json", `{"key":"`+fake+`"}`)
		if !c.credential.swapsIn(Body) {
			r = post(t, "/token", "application/json", "of which nobody sees anything")
		}
		for _, coding := range c.codings {
			r.Header.Add("Content-Encoding", coding)
		}
		err := New([]Credential{c.credential}, all(), v).Outgoing(r)
		if refused := err != nil; refused != c.refused || refused && !strings.Contains(err.Error(), "encoded (Content-Encoding), so no credential can be put into it") {
			t.Errorf("%v %q: %v", c.credential.Where, c.codings, err)
		}
		if used, leaked := v.told(); len(leaked) > 0 || c.credential.swapsIn(Body) && (len(used) == 0) != c.refused {
			t.Errorf("%v %q: %q is used, and %q left", c.credential.Where, c.codings, used, leaked)
		}
	}
}

func TestNoSecretNoRequest(t *testing.T) {
	three := Credential{Secret: "three", Placeholder: other, Manner: Manner{Header: "A", Format: "{secret}"}}
	for _, c := range []Credential{setting(), swapping(Query), three} {
		e := New([]Credential{c}, all(), &vault{locked: c.Secret == "one"})
		if err := e.Outgoing(post(t, "/?a="+fake, "", "")); err == nil || c.Secret == "one" && c.setsCredential() == false && err.Error() != "the vault is sealed" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAHostThatGivesTheSecretBack in every form: it does not arrive, of a swap that the
// request did not even use, and the rest of the answer does.
func TestAHostThatGivesTheSecretBack(t *testing.T) {
	forms := formsOf(truth)
	for name, c := range map[string]Credential{"set": setting(), "swap": swapping(Query)} {
		e := New([]Credential{c}, all(), &vault{})
		if err := e.Outgoing(post(t, "/", "", "")); err != nil {
			t.Fatal(err)
		}
		body := "before " + strings.Join(forms, " ") + encode("Basic "+truth+"!") + " after"
		a := &http.Response{
			Status: "200 " + truth, Header: http.Header{"X-Echo": {"Bearer " + truth}, "Location": {"https://evil.example/?a=" + url.QueryEscape(truth)}},
			Trailer: http.Header{"X-End": {truth}, http.CanonicalHeaderKey(truth): nil}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		}
		if err := e.Incoming(a); err != nil {
			t.Fatal(err)
		}
		if _, kept := a.Trailer["X-End"]; len(a.Trailer) != 1 || !kept { // what is announced before the body
			t.Errorf("%s: %v is to come behind the body", name, a.Trailer)
		}
		b, err := io.ReadAll(a.Body)
		got := string(b)
		if err != nil || len(got) != len(body) || !strings.HasPrefix(got, "before xx") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %v, %q", name, err, got)
		}
		got += a.Status + fmt.Sprint(a.Header, a.Trailer)
		if containsAny(forms, got) {
			t.Errorf("%s: %q", name, got)
		}
		early := http.Header{"Link": {truth}}
		if e.Informational(t.Context(), early); early.Get("Link") == truth {
			t.Errorf("%s: before the answer: %v", name, early)
		}
	}
}

// TestAnswers: a host without credentials may encode; one with must not. A connection that
// goes on in another protocol can still be written to.
func TestAnswers(t *testing.T) {
	encoded := func() *http.Response {
		return &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: http.NoBody}
	}
	if err := New(nil, all(), &vault{}).Incoming(encoded()); err != nil {
		t.Error(err)
	}
	e := New([]Credential{setting()}, all(), &vault{})
	if err := e.Outgoing(post(t, "/", "", "")); err != nil {
		t.Fatal(err)
	}
	if err := e.Incoming(encoded()); err == nil {
		t.Error("an encoded answer of a host with a credential was let in")
	}
	var written strings.Builder
	said := "hi " + truth
	on := &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Body: both{strings.NewReader("\x81" + string(rune(len(said))) + said), &written}}
	if err := e.Incoming(on); err != nil {
		t.Fatal(err)
	}
	sent := "\x81\x84\x00\x00\x00\x00sent"
	if _, err := io.WriteString(on.Body.(io.Writer), sent); err != nil || written.String() != sent {
		t.Errorf("%q, %v", written.String(), err)
	}
	if line, err := bufio.NewReader(on.Body).ReadString('\n'); !errors.Is(err, io.EOF) || line[2:] != "hi "+strings.Repeat("x", len(truth)) {
		t.Errorf("%q, %v", line, err)
	}
}

type both struct {
	io.Reader
	io.Writer
}

func (both) Close() error { return nil }

// TestNoSecretIsKeptWhereNothingIsUnderWay: with the last request that got it, a connection
// forgets it. While one is under way, its answer is looked through.
func TestNoSecretIsKeptWhereNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New([]Credential{setting()}, all(), &vault{})
		begin := func() (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			if err := e.Outgoing(post(t, "/", "", "").WithContext(ctx)); err != nil {
				t.Fatal(err)
			}
			return func() { cancel(); synctest.Wait() }
		}
		first, second := begin(), begin()
		if first(); e.sought().findInText(truth) == "" {
			t.Error("it is forgotten while a request is under way")
		}
		if second(); len(e.sought().all) > 0 || len(e.runs.all) > 0 {
			t.Errorf("%v is kept", e.runs.all)
		}
		third := begin()
		if e.sought().findInText(truth) == "" {
			t.Error("the next request's is not known")
		}
		if third(); len(e.runs.all) > 0 {
			t.Errorf("%v is kept behind one alone", e.runs.all)
		}
	})
}
