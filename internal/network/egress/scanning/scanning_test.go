package scanning_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

const (
	token  = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	masked = "**************************"
	card   = "4242 4242 4242 4242"
)

var everything = sync.OnceValue(func() *dlp.Set { return dlp.NewSet(slices.Concat(secrets.Rules(), personal.Rules())...) })

// fakeDoor has a plan, and keeps what it is told.
type fakeDoor struct {
	door.Door
	mu           sync.Mutex // guards all below
	plan         dlp.Plan
	placeholders []string
	asked        int
	told         []door.FoundAsk
	enough       bool
	fail         error
}

func (d *fakeDoor) Scans(context.Context, door.ScansAsk) (door.ScansAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.asked == 1 && errors.Is(d.fail, errGone) {
		return door.ScansAnswer{}, d.fail
	}
	return door.ScansAnswer{Plan: d.plan, Placeholders: d.placeholders}, nil
}

func (d *fakeDoor) FoundInRequest(_ context.Context, ask door.FoundAsk) (door.FoundAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, ask)
	return door.FoundAnswer{RequestID: "r-1", Enough: d.enough}, d.fail
}

// lines are what the door was told.
func (d *fakeDoor) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, ask := range d.told {
		for _, f := range ask.Findings {
			all = append(all, fmt.Sprintf("%s %s %s %d+%d", ask.Where, f.Rule, f.Outcome, f.At, f.Length))
		}
		if ask.Unseen != "" {
			all = append(all, fmt.Sprintf("%s unseen %v: %s", ask.Where, ask.Refused, ask.Unseen))
		}
	}
	return all
}

var (
	errGone = errors.New("the daemon has gone")
	errFull = errors.New("the disk is full")
)

// numberHeader says which request of a test it is.
const numberHeader = "X-Request-Number"

// host keeps what it gets.
type host struct {
	*httptest.Server
	mu     sync.Mutex // guards all below
	sent   int        // requests, each of which says its number
	latest int        // the number of the one that is kept
	body   string
	whole  bool
	length int64
	seen   *http.Request
}

func newHost(t *testing.T, http2 bool) *host {
	t.Helper()
	h := &host{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		n, _ := strconv.Atoi(r.Header.Get(numberHeader))
		h.mu.Lock()
		if n >= h.latest { // one that was blocked may end behind the next
			h.latest, h.body, h.whole, h.length, h.seen = n, string(body), err == nil, r.ContentLength, r
		}
		h.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}))
	h.EnableHTTP2 = http2
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// send has a request see an exchange, and the host if that lets it.
func (h *host) send(e requests.Exchange, r *http.Request) error {
	u := *r.URL
	r.URL = &u
	r.URL.Scheme, r.URL.Host, r.RequestURI = "https", h.Listener.Addr().String(), ""
	h.mu.Lock()
	h.sent++
	r.Header.Set(numberHeader, strconv.Itoa(h.sent))
	h.mu.Unlock()
	if err := e.Outgoing(r); err != nil {
		return err
	}
	a, err := h.Client().Transport.RoundTrip(r)
	if err != nil {
		return err
	}
	return errors.Join(e.Incoming(a), a.Body.Close())
}

// got is what the host has of the last request.
func (h *host) got() (body string, whole bool, length int64, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.body, h.whole, h.length, h.seen
}

func begin(t *testing.T, d *fakeDoor, then requests.Exchanges) requests.Exchange {
	t.Helper()
	e, err := scanning.Exchanges{Door: d, Set: everything, Then: then}.Exchange(t.Context(), requests.Connection{
		Sandbox: "sb1", Name: "api.example", Port: 443, TLS: true, Searches: make(chan struct{}, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func post(body io.Reader) *http.Request {
	return httptest.NewRequest(http.MethodPost, "/v1/chat", body)
}

func refusalOf(t *testing.T, err error) *requests.Refusal {
	t.Helper()
	refusal, is := errors.AsType[*requests.Refusal](err)
	if !is {
		t.Fatalf("%v is no refusal", err)
	}
	return refusal
}

// TestABodyIsScannedHoweverItComes: in one piece or byte by byte, with its length told or
// without, over both versions. The length stays, and what is on record is not the value.
func TestABodyIsScannedHoweverItComes(t *testing.T) {
	text := `{"key": "` + token + `", "card": "` + card + `", "said": "` + strings.Repeat("a word ", 10_000) + `"}`
	clean := strings.NewReplacer(token, masked, card, strings.Repeat("*", len(card))).Replace(text)
	for _, http2 := range []bool{false, true} {
		h := newHost(t, http2)
		for plan, want := range map[dlp.Plan]string{
			{}: text, {Secrets: dlp.Report, Personal: dlp.Report}: text, {Secrets: dlp.Redact, Personal: dlp.Redact}: clean,
			{Secrets: dlp.Redact}: strings.Replace(text, token, masked, 1),
		} {
			for name, body := range map[string]io.Reader{"whole": strings.NewReader(text), "chunked": struct{ io.Reader }{strings.NewReader(text)}, "bytes": iotest.OneByteReader(strings.NewReader(text))} {
				d := &fakeDoor{plan: plan}
				r := post(body)
				if err := h.send(begin(t, d, nil), r); err != nil {
					t.Fatalf("%+v %s: %v", plan, name, err)
				}
				got, whole, length, _ := h.got()
				if got != want || !whole || length != r.ContentLength {
					t.Errorf("%+v %s over HTTP/2 %v: %d bytes of %d, %.60q", plan, name, http2, len(got), length, got)
				}
				var told []string
				for _, class := range []struct {
					outcome dlp.Outcome
					line    string
				}{{plan.Secrets, fmt.Sprintf("body gitlab-token %s 9+26", plan.Secrets)}, {plan.Personal, fmt.Sprintf("body payment-card %s 47+19", plan.Personal)}} {
					if class.outcome != dlp.Off {
						told = append(told, class.line)
					}
				}
				if !slices.Equal(d.lines(), told) {
					t.Errorf("%+v %s: told %q, want %q", plan, name, d.lines(), told)
				}
			}
		}
	}
}

// TestEachPlaceOfARequest: what is found in the head, and behind the body, is redacted where
// that can be sent, and else blocked.
func TestEachPlaceOfARequest(t *testing.T) {
	const escaped = "%3A%2F%2Fada%3Ahunter22ab%40db.example"
	places := map[string]struct {
		put  func(*http.Request)
		got  func(*http.Request) string
		was  string
		want string // "": it is not sent
		rule string
	}{
		"path": {func(r *http.Request) { r.URL.Path = "/x/" + token }, func(r *http.Request) string { return r.URL.Path }, "/x/" + token, "", "path gitlab-token"},
		"escaped path": {
			func(r *http.Request) {
				r.URL.Path, r.URL.RawPath = "/x/glpat-aB3dE6gH9kaB3dE6gH9k", "/x/glpat%2DaB3dE6gH9kaB3dE6gH9k"
			},
			func(r *http.Request) string { return r.URL.Path }, "/x/" + token, "", "path gitlab-token",
		},
		"query": {
			func(r *http.Request) { r.URL.RawQuery = "a=b&key=" + token },
			func(r *http.Request) string { return r.URL.RawQuery }, "a=b&key=" + token, "a=b&key=" + masked, "query gitlab-token",
		},
		"escaped query": {
			func(r *http.Request) { r.URL.RawQuery = "a=b&u=https" + escaped },
			func(r *http.Request) string { return r.URL.Query().Get("u") }, "https://ada:hunter22ab@db.example", "https://ada:**********@db.example", "query url-password",
		},
		"header": {
			func(r *http.Request) { r.Header.Set("X-Api-Key", token) },
			func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, token, masked, "header X-Api-Key gitlab-token",
		},
		"basic": {
			func(r *http.Request) { r.SetBasicAuth("oauth2", token) },
			func(r *http.Request) string { _, p, _ := r.BasicAuth(); return p }, token, masked, "header Authorization gitlab-token",
		},
		"trailer": {
			func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader("text")), -1
				r.Trailer = http.Header{"X-End": {token}}
			},
			func(r *http.Request) string { return r.Trailer.Get("X-End") }, token, masked, "trailer X-End gitlab-token",
		},
	}
	for _, http2 := range []bool{false, true} {
		h := newHost(t, http2)
		for name, c := range places {
			for _, outcome := range []dlp.Outcome{dlp.Report, dlp.Redact, dlp.Block} {
				d := &fakeDoor{plan: dlp.Plan{Secrets: outcome}}
				r := post(http.NoBody)
				c.put(r)
				err := h.send(begin(t, d, nil), r)
				done := outcome
				if done == dlp.Redact && c.want == "" {
					done = dlp.Block
				}
				if lines := d.lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], c.rule+" "+done.String()+" ") {
					t.Errorf("%s %s: told %q", name, outcome, lines)
				}
				if strings.Contains(d.told[0].Request.Path, token) {
					t.Errorf("%s: %q is on record", name, d.told[0].Request.Path)
				}
				if done == dlp.Block {
					if refusal := refusalOf(t, err); refusal.Rule != door.RuleScanning || !refusal.Recorded || !strings.HasSuffix(refusal.Reason, "; request r-1; see: cofferdam why") || strings.Contains(refusal.Reason, token) {
						t.Errorf("%s %s: %+v", name, outcome, refusal)
					}
					continue
				}
				want := c.was
				if done == dlp.Redact {
					want = c.want
				}
				if _, _, _, got := h.got(); err != nil || c.got(got) != want {
					t.Errorf("%s %s: %v, %q", name, outcome, err, c.got(got))
				}
			}
		}
	}
}

// TestABlockedBodyIsNeverWhole: the host gets none of the value, and no end of the request.
func TestABlockedBodyIsNeverWhole(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		h := newHost(t, http2)
		for _, body := range []io.Reader{strings.NewReader(strings.Repeat("a", 1<<20) + token + " and more"), struct{ io.Reader }{strings.NewReader(token)}} {
			d := &fakeDoor{plan: dlp.Plan{Secrets: dlp.Block}}
			refusal := refusalOf(t, h.send(begin(t, d, nil), post(body)))
			if refusal.Rule != door.RuleScanning || len(d.lines()) != 1 || !strings.HasPrefix(d.lines()[0], "body gitlab-token block ") {
				t.Errorf("%+v, %q", refusal, d.lines())
			}
			if got, whole, _, _ := h.got(); whole && got != "" || strings.Contains(got, "glpat-") {
				t.Errorf("the host got %.80q, whole %v", got, whole)
			}
		}
	}
}

// commented is nothing in gzip, with a file's name.
func commented(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name = name
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packed(t *testing.T, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEncodedBodies are looked into, and sent as they came or not at all. A body that can't be
// looked into is on record as that, and is not sent where anything would be kept back.
func TestEncodedBodies(t *testing.T) {
	h := newHost(t, false)
	noise := make([]byte, 5<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	cases := map[string]struct {
		coding string
		body   []byte
		told   string // without the outcome
		unseen bool
	}{
		"gzip":           {"gzip", packed(t, "gzip", "a "+token+" b"), "body gitlab-token %s 2+26", false},
		"deflate":        {"deflate", packed(t, "deflate", "a "+token+" b"), "body gitlab-token %s 2+26", false},
		"zstd":           {"zstd", packed(t, "zstd", "a "+token+" b"), "body gitlab-token %s 11+26", false},
		"nothing in it":  {"GZIP", packed(t, "gzip", "a b"), "", false},
		"identity":       {"identity", []byte("a " + token), "body gitlab-token %s 2+26", false},
		"in its chunks":  {"aws-chunked", []byte("1a;\r\n" + token + "\r\n"), "body gitlab-token %s 5+26", false},
		"in a comment":   {"gzip", commented(t, token), "body gitlab-token %s 10+26", false},
		"brotli":         {"br", []byte("\x0b\x02\x80ab\x03"), "body unseen %v: it is encoded (br)", true},
		"twice":          {"gzip, zstd", packed(t, "zstd", string(packed(t, "gzip", "a "+token+" b"))), "body gitlab-token %s 2+26", false},
		"twice, a lie":   {"gzip, zstd", []byte("x"), "body unseen %v: it is not the gzip, zstd that it says", true},
		"a lie":          {"gzip", []byte("a b"), "body unseen %v: it is not the gzip that it says", true},
		"cut":            {"gzip", packed(t, "gzip", "a b")[:15], "body unseen %v: it is not the gzip that it says", true},
		"too long":       {"gzip", noise, "body unseen %v: it is encoded and has more than 4 MiB", true},
		"too long, zstd": {"zstd", packed(t, "zstd", strings.Repeat(" ", 33<<20)), "body unseen %v: it says more than 32 MiB once it is decoded", true},
		"a bomb":         {"gzip", packed(t, "gzip", strings.Repeat(" ", 33<<20)), "body unseen %v: it says more than 32 MiB once it is decoded", true},
	}
	for name, c := range cases {
		for _, outcome := range []dlp.Outcome{dlp.Report, dlp.Redact, dlp.Block} {
			d := &fakeDoor{plan: dlp.Plan{Secrets: outcome}}
			r := post(bytes.NewReader(c.body))
			r.Header.Set("Content-Encoding", c.coding)
			err := h.send(begin(t, d, nil), r)
			plain := c.coding == "identity" || c.coding == "aws-chunked"
			done := outcome
			if done == dlp.Redact && !plain {
				done = dlp.Block
			}
			want := []string{}
			switch {
			case c.unseen:
				want = append(want, fmt.Sprintf(c.told, outcome > dlp.Report))
			case c.told != "":
				want = append(want, fmt.Sprintf(c.told, done))
			}
			if !slices.Equal(d.lines(), want) && len(d.lines())+len(want) > 0 {
				t.Errorf("%s %s: told %q, want %q", name, outcome, d.lines(), want)
			}
			if c.told != "" && done == dlp.Block {
				if refusal := refusalOf(t, err); refusal.Rule != door.RuleScanning || !refusal.Recorded {
					t.Errorf("%s %s: %+v", name, outcome, refusal)
				}
				continue
			}
			sent := string(c.body)
			if done == dlp.Redact {
				sent = strings.Replace(sent, token, masked, 1)
			}
			if got, whole, _, _ := h.got(); err != nil || got != sent || !whole {
				t.Errorf("%s %s: %v, the host got %d bytes, whole %v", name, outcome, err, len(got), whole)
			}
		}
	}
	for field, want := range map[string]string{"Grpc-Encoding": "body unseen true: its messages are encoded (gzip)", "Upgrade": "body unseen true: it goes on as a WebSocket"} {
		d := &fakeDoor{plan: dlp.Plan{Personal: dlp.Block}}
		r := post(strings.NewReader("text"))
		r.Header.Set(field, "gzip")
		refusal := refusalOf(t, h.send(begin(t, d, nil), r))
		if refusal.Status != http.StatusUnsupportedMediaType || !slices.Equal(d.lines(), []string{want}) {
			t.Errorf("%s: %+v, %q", field, refusal, d.lines())
		}
	}
}

// injecting puts a secret in, as credentials do.
type injecting struct{}

func (injecting) Exchange(context.Context, requests.Connection) (requests.Exchange, error) {
	return injecting{}, nil
}

func (injecting) Outgoing(r *http.Request) error {
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

func (injecting) Incoming(a *http.Response) error {
	a.Header.Set("X-Seen", "true")
	return nil
}

// TestWhatTheGatewayPutsInIsNoFinding, and what sees to requests behind the scan sees each,
// and each answer.
func TestWhatTheGatewayPutsInIsNoFinding(t *testing.T) {
	h, d := newHost(t, true), &fakeDoor{plan: dlp.Plan{Secrets: dlp.Block}}
	if err := h.send(begin(t, d, injecting{}), post(strings.NewReader("text"))); err != nil || len(d.lines()) > 0 {
		t.Fatalf("%v %q", err, d.lines())
	}
	if _, _, _, r := h.got(); r.Header.Get("Authorization") != "Bearer "+token {
		t.Errorf("%v", r.Header)
	}
}

// TestPlaceholdersAreNoFindings, in whatever form; another text of the same form is one.
func TestPlaceholdersAreNoFindings(t *testing.T) {
	h := newHost(t, false)
	const fake = "glpat-" + "ThisIsAPlaceholder00"
	fakes := []string{fake}
	for _, form := range placeholder.Forms() {
		fakes = append(fakes, form.New())
	}
	for _, f := range fakes {
		d := &fakeDoor{plan: dlp.Plan{Secrets: dlp.Block, Personal: dlp.Block}, placeholders: fakes}
		r := post(strings.NewReader(`{"a": "` + f + `", "b": "` + base64.StdEncoding.EncodeToString([]byte("user:"+f)) + `", "c": "https://ada:` + f + `@git.example"}`))
		r.SetBasicAuth("x-access-token", f)
		r.URL.RawQuery = "key=" + f
		r.Header.Set("X-Key", f)
		if err := h.send(begin(t, d, nil), r); err != nil || len(d.lines()) > 0 {
			t.Errorf("%s: %v %q", f, err, d.lines())
		}
	}
	d := &fakeDoor{plan: dlp.Plan{Secrets: dlp.Report}, placeholders: fakes}
	if err := h.send(begin(t, d, nil), post(strings.NewReader(fake+" "+token))); err != nil || len(d.lines()) != 1 || d.lines()[0] != "body gitlab-token report 27+26" {
		t.Errorf("%v %q", err, d.lines())
	}
}

// TestUnrecorded: what can't be put on record is not sent, and neither is anything if nobody
// knows what to look for.
func TestUnrecorded(t *testing.T) {
	h := newHost(t, false)
	for _, outcome := range []dlp.Outcome{dlp.Report, dlp.Redact, dlp.Block} {
		d := &fakeDoor{plan: dlp.Plan{Secrets: outcome}, fail: errFull}
		if refusal := refusalOf(t, h.send(begin(t, d, nil), post(strings.NewReader("a "+token)))); refusal.Status != http.StatusServiceUnavailable {
			t.Errorf("%+v", refusal)
		}
		if got, _, _, _ := h.got(); outcome > dlp.Report && strings.Contains(got, "glpat-") { // report holds nothing back
			t.Errorf("the host got %q", got)
		}
		h = newHost(t, false)
	}
	d := &fakeDoor{fail: errGone}
	if refusal := refusalOf(t, h.send(begin(t, d, nil), post(strings.NewReader("a")))); refusal.Status != http.StatusServiceUnavailable || refusal.Recorded {
		t.Errorf("%+v", refusal)
	}
}

// TestEachFindingIsToldOnce, and no more of them than anybody keeps.
func TestEachFindingIsToldOnce(t *testing.T) {
	h, d := newHost(t, false), &fakeDoor{plan: dlp.Plan{Secrets: dlp.Redact, Personal: dlp.Report}}
	e := begin(t, d, nil)
	for range 3 {
		if err := h.send(e, post(strings.NewReader("a "+token))); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.lines()) != 1 {
		t.Errorf("%q", d.lines())
	}
	var mails strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&mails, "ada%d@mail.host.org\n", i)
	}
	d.enough = true
	if err := h.send(e, post(strings.NewReader(mails.String()))); err != nil {
		t.Fatal(err)
	}
	if n := len(d.lines()); n < 2 || n > 1+door.MaxFindings {
		t.Errorf("%d were told of, although there are enough on record", n)
	}
}

// TestWhatWaitsGoes: whoever answers to the beginning of a body is not waited for by its
// end for ever; and what is looked for is what the policy says now.
func TestWhatWaitsGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDoor{plan: dlp.Plan{Secrets: dlp.Redact}}
		e := begin(t, d, nil)
		from, client := io.Pipe()
		r := post(from)
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(client, "a question glpat-aB3") }()
		began, buf := time.Now(), make([]byte, 100)
		n, err := r.Body.Read(buf)
		if string(buf[:n]) != "a question " || err != nil || time.Since(began) != 0 {
			t.Fatalf("%q %v after %s", buf[:n], err, time.Since(began))
		}
		if n, err = r.Body.Read(buf); string(buf[:n]) != "glpat-aB3" || err != nil || time.Since(began) != dlp.LongPatience {
			t.Fatalf("%q %v after %s", buf[:n], err, time.Since(began))
		}
		go func() {
			_, _ = io.WriteString(client, token[len("glpat-aB3"):]+"!")
			client.Close()
		}()
		rest, err := io.ReadAll(r.Body)
		if string(rest) != strings.Repeat("*", len(token)-len("glpat-aB3"))+"!" || err != nil {
			t.Fatalf("%q %v", rest, err)
		}
		if len(d.told) != 1 || !d.told[0].Findings[0].Late {
			t.Errorf("%+v", d.told)
		}

		d.plan = dlp.Plan{Secrets: dlp.Block}
		if err := e.Outgoing(post(strings.NewReader("a question"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r = post(http.NoBody)
		r.Header.Set("X-Key", token)
		if refusalOf(t, e.Outgoing(r)).Rule != door.RuleScanning || d.asked > 3 {
			t.Errorf("asked %d times", d.asked)
		}
	})
}

// TestAClosedBodyLeavesNobodyWaiting: the one who reads a body ends with it.
func TestAClosedBodyLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		from, client := io.Pipe()
		r := post(from)
		if err := begin(t, &fakeDoor{plan: dlp.Plan{Secrets: dlp.Block}}, nil).Outgoing(r); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(client, "text ") }()
		if _, err := r.Body.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Body.Read(make([]byte, 10)); err == nil {
			t.Error("a closed body is read")
		}
	})
}
