package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	index = "index.example"
	files = "files.example"
)

// testLimits are patient with an answer, so that a machine that is busy is no slow upstream, and ask again soon.
func testLimits() upstream.Limits {
	return upstream.Limits{
		PageBytes: 8 << 20, PageTime: 20 * time.Second, Attempts: 3, Backoff: time.Millisecond, RetryAfter: time.Second,
		PaceWindow: 10 * time.Second, PaceBytes: 1 << 10, BreakAfter: 1000, HeaderWait: 10 * time.Second,
	}
}

func client(t *testing.T, s *liar.Server, change func(*upstream.Config, *upstream.Options)) *upstream.Client {
	t.Helper()
	cfg := upstream.Config{Ecosystem: "python", Index: s.URL(index, "/simple/"), CAPEM: s.CAPEM, FileHosts: []string{s.Host(files)}}
	o := upstream.Options{Version: "test", Resolver: s, Limits: testLimits(), Recorder: &ledger{}}
	if change != nil {
		change(&cfg, &o)
	}
	c, err := upstream.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hasty is a client's change for an upstream that is too slow.
func hasty(_ *upstream.Config, o *upstream.Options) {
	o.Limits.PageTime, o.Limits.PaceWindow, o.Limits.HeaderWait = 5*time.Second, 50*time.Millisecond, 300*time.Millisecond
}

// slowly is hasty for the replies that are slow, by what they are called.
func slowly(name string) func(*upstream.Config, *upstream.Options) {
	if slices.Contains([]string{"silence", "slow-loris", "head drips", "drips"}, name) {
		return hasty
	}
	return nil
}

// ledger is a Recorder that remembers, or refuses.
type ledger struct {
	mu      sync.Mutex
	asked   []upstream.Question
	refuses map[string]error // by sandbox
}

func (l *ledger) Asked(_ context.Context, q upstream.Question) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refuses[q.Sandbox]; err != nil {
		return err
	}
	l.asked = append(l.asked, q)
	return nil
}

// asking is for a sandbox, for which upstreams are asked.
func asking(t *testing.T) context.Context {
	t.Helper()
	return fairqueue.For(t.Context(), "sb-1")
}

func registry(t *testing.T) *liar.Server {
	t.Helper()
	return liar.New(t, index, files, "evil.example")
}

// sink is a Sink in memory.
type sink struct{ bytes.Buffer }

func (s *sink) Reset() error { s.Buffer.Reset(); return nil }

func TestHonest(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Gzip("text/x", []byte("page"), 1))
	s.Script("files.example/a.whl", liar.Body("application/zip", []byte("file")))
	c := client(t, s, nil)
	p, err := getPage(t, c, upstream.PageAsk{URL: s.URL(index, "/simple/a/"), Types: []string{"text/x"}})
	if err != nil || string(p.Body) != "page" || p.URL != s.URL(index, "/simple/a/") {
		t.Fatalf("Page = %+v, %v", p, err)
	}
	var b sink
	if err := c.File(asking(t), upstream.FileAsk{URL: s.URL(files, "/a.whl"), Size: 4}, &b); err != nil || b.String() != "file" {
		t.Fatalf("File = %q, %v", b.String(), err)
	}
	for _, r := range s.Requests() {
		if ua := r.Header.Get("User-Agent"); ua != "cofferdam/test" {
			t.Errorf("User-Agent %q", ua)
		}
	}
}

// fetched is a page with its bytes.
type fetched struct {
	upstream.Page
	Body []byte
}

func getPage(t *testing.T, c *upstream.Client, ask upstream.PageAsk) (fetched, error) {
	t.Helper()
	var m upstream.Memory
	p, err := c.Page(asking(t), ask, &m)
	return fetched{p, m.Bytes()}, err
}

// TestLyingPages is G-IN-05, -07 and -08 for index pages.
func TestLyingPages(t *testing.T) {
	const mt = "application/x+json"
	for name, c := range map[string]struct {
		reply liar.Reply
		want  error
	}{
		"wrong type":       {liar.Body("text/plain", []byte("x")), fault.ErrInvalid},
		"no type":          {liar.Body("", []byte("x")), fault.ErrInvalid},
		"html":             {liar.Body("text/html", []byte("<html>")), fault.ErrInvalid},
		"206":              {liar.Partial(mt, []byte("page")), fault.ErrInvalid},
		"304 unasked":      {liar.Status(http.StatusNotModified), fault.ErrInvalid},
		"204":              {liar.Status(http.StatusNoContent), fault.ErrInvalid},
		"gzip bomb":        {liar.Bomb(mt, 7<<20), fault.ErrInvalid},
		"too large":        {liar.Body(mt, bytes.Repeat([]byte("0123456789abcdef"), 1<<20)), fault.ErrInvalid},
		"endless":          {liar.Stream(mt, func(int) []byte { return make([]byte, 1<<16) }), fault.ErrInvalid},
		"gzip twice":       {liar.Gzip(mt, []byte("x"), 2), fault.ErrInvalid},
		"not gzip":         {liar.With(200, http.Header{"Content-Type": {mt}, "Content-Encoding": {"gzip"}}, []byte("plain text")), fault.ErrInvalid},
		"brotli":           {liar.With(200, http.Header{"Content-Type": {mt}, "Content-Encoding": {"br"}}, []byte("x")), fault.ErrInvalid},
		"short body":       {liar.Claim(mt, 100, []byte("x")), fault.ErrUnavailable},
		"chunked, cut":     {liar.Chunked(mt, []byte("x")), fault.ErrUnavailable},
		"cut in order":     {liar.Unframed(http.Header{"Content-Type": {mt}}, []byte("pa")), fault.ErrInvalid},
		"packed, cut":      {liar.Unframed(http.Header{"Content-Type": {mt}, "Content-Encoding": {"gzip"}}, liar.Packed([]byte("page"))[:20]), fault.ErrUnavailable},
		"cut":              {liar.Cut(), fault.ErrUnavailable},
		"silence":          {liar.Silence(), fault.ErrUnavailable},
		"slow-loris":       {liar.Drip(mt, 1<<20, 5*time.Millisecond), fault.ErrUnavailable},
		"head drips":       {liar.HeadDrip(5 * time.Millisecond), fault.ErrUnavailable},
		"huge head":        {liar.With(200, http.Header{"X": {strings.Repeat("x", 1<<20)}}, nil), fault.ErrUnavailable},
		"500 storm":        {liar.Status(500), fault.ErrUnavailable},
		"503":              {liar.Status(503), fault.ErrUnavailable},
		"429 for an hour":  {liar.Busy(429, 3600), fault.ErrUnavailable},
		"401":              {liar.Status(401), fault.ErrForbidden},
		"403":              {liar.Status(403), fault.ErrForbidden},
		"404":              {liar.Status(404), fault.ErrNotFound},
		"redirect nowhere": {liar.Redirect(""), fault.ErrInvalid},
		"redirect loop":    {liar.Redirect("/simple/a/"), fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := registry(t)
			s.Script("index.example/simple/a/", c.reply)
			p, err := getPage(t, client(t, s, slowly(name)), upstream.PageAsk{URL: s.URL(index, "/simple/a/"), Types: []string{mt}})
			if !errors.Is(err, c.want) {
				t.Errorf("Page = %d bytes, %v; want %v", len(p.Body), err, c.want)
			}
			if name == "slow-loris" && err != nil && !strings.Contains(err.Error(), "too slowly") {
				t.Errorf("it is not its pace that ended it: %v", err)
			}
			if own := errors.Is(err, upstream.ErrFailed); own != (c.want == fault.ErrUnavailable) { //nolint:errorlint // a category itself
				t.Errorf("%v: the upstream's own failure: %t", err, own)
			}
			if n := s.Count("index.example/simple/a/"); n > 5 {
				t.Errorf("%d requests for one page", n)
			}
		})
	}
}

// TestUnframedPages: an answer that ends with its connection is a page if what is
// in it has an end mark.
func TestUnframedPages(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Unframed(http.Header{"Content-Encoding": {"gzip"}}, liar.Packed([]byte("page"))))
	if p, err := getPage(t, client(t, s, nil), upstream.PageAsk{URL: s.URL(index, "/simple/a/")}); err != nil || string(p.Body) != "page" {
		t.Errorf("Page = %q, %v", p.Body, err)
	}
}

// TestUnframedFiles: a file that ends with its connection is one if its size or
// its digest is known.
func TestUnframedFiles(t *testing.T) {
	s := registry(t)
	s.Script("files.example/f", liar.Unframed(nil, []byte("file")))
	c := client(t, s, nil)
	for _, ask := range []upstream.FileAsk{{Size: 4}, {Known: true}, {}} {
		ask.URL = s.URL(files, "/f")
		var b sink
		err := c.File(asking(t), ask, &b)
		if whole := ask.Size > 0 || ask.Known; whole && (err != nil || b.String() != "file") || !whole && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %q, %v", ask, b.String(), err)
		}
	}
}

// TestTheIndexKeepsItsClass: the index's own name may not lead to another class
// of addresses than it did first, nor take its file hosts there.
func TestTheIndexKeepsItsClass(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	s.Script("files.example/f", liar.Body("x/y", []byte("file")))
	c := client(t, s, nil)
	ask := upstream.PageAsk{URL: s.URL(index, "/simple/a/")}
	if _, err := getPage(t, c, ask); err != nil {
		t.Fatal(err)
	}
	for _, rebound := range []string{"10.0.0.1", "93.184.215.14", "203.0.113.1", "127.0.0.1 10.0.0.1", "169.254.169.254"} {
		c.Close() // a connection that is open stays where it is
		s.Resolve(index, strings.Fields(rebound)...)
		if _, err := getPage(t, c, ask); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("the index at %s: %v", rebound, err)
		}
		s.Resolve(files, "10.0.0.1")
		if err := c.File(asking(t), upstream.FileAsk{URL: s.URL(files, "/f")}, &sink{}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a file host at 10.0.0.1, the index at %s: %v", rebound, err)
		}
	}
	s.Resolve(index, "127.0.0.2", "127.0.0.1")
	if _, err := getPage(t, c, ask); err != nil {
		t.Errorf("another address of its class: %v", err)
	}
}

// TestRedirects is G-SS-01, -02 and -04 at the client: nothing but the index
// and its file hosts is dialled, on any hop.
func TestRedirects(t *testing.T) {
	for name, location := range map[string]string{
		"another host":      "https://evil.example/x",
		"another port":      "https://index.example:1/x",
		"plain http":        "http://index.example/x",
		"loopback":          "https://127.0.0.1/x",
		"loopback name":     "https://localhost/x",
		"metadata":          "http://169.254.169.254/latest/meta-data/",
		"metadata, decimal": "http://2852039166/",
		"metadata, v6":      "http://[fd00:ec2::254]/",
		"mapped":            "https://[::ffff:127.0.0.1]/",
		"file":              "file:///etc/passwd",
		"gopher":            "gopher://index.example/",
		"unix":              "unix:/run/x.sock",
		"credentials":       "https://u:p@index.example/",
		"userinfo trick":    "https://index.example@evil.example/",
		"no host":           "https:///x",
		"backslash":         "https://index.example\\@evil.example/",
		"unparsable":        "https://[::1/",
	} {
		t.Run(name, func(t *testing.T) {
			s := registry(t)
			location = strings.ReplaceAll(location, "evil.example/", s.Host("evil.example")+"/")
			s.Script("index.example/simple/a/", liar.Redirect(location))
			s.Script("evil.example/x", liar.Body("text/x", []byte("evil")))
			c := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { cfg.Username, cfg.Password = "user", "secret" })
			p, err := getPage(t, c, upstream.PageAsk{URL: s.URL(index, "/simple/a/")})
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("Page = %+v, %v; want fault.ErrInvalid", p, err)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests reached the registry, want only the first", n)
			}
		})
	}
}

// TestCredentialsStayWithTheIndex is the second half of G-SS-02, with its
// positive control: the permitted redirect is followed.
func TestCredentialsStayWithTheIndex(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Redirect(s.URL(index, "/simple/b/")))
	s.Script("index.example/simple/b/", liar.Redirect(s.URL(files, "/b")))
	s.Script("files.example/b", liar.Body("text/x", []byte("page")))
	c := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { cfg.Username, cfg.Password = "user", "secret" })
	p, err := getPage(t, c, upstream.PageAsk{URL: s.URL(index, "/simple/a/")})
	if err != nil || string(p.Body) != "page" {
		t.Fatalf("Page = %+v, %v", p, err)
	}
	for _, r := range s.Requests() {
		if got := r.Header.Get("Authorization") != ""; got != (r.Host == index) {
			t.Errorf("request to %s%s with credentials: %v", r.Host, r.Path, got)
		}
	}
}

// TestAddresses: names are checked by what they resolve to, each time.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		name, index, files string
		want               error
	}{
		{"all loopback", "127.0.0.1", "127.0.0.1", nil},
		{"file host at the metadata service", "127.0.0.1", "169.254.169.254", fault.ErrInvalid},
		{"file host rebound in part", "127.0.0.1", "127.0.0.1 169.254.169.254", fault.ErrInvalid},
		{"file host private, index loopback", "127.0.0.1", "10.0.0.1", fault.ErrInvalid},
		{"file host loopback, index public", "93.184.215.14", "127.0.0.1", fault.ErrInvalid},
		{"file host loopback as NAT64, index public", "93.184.215.14", "64:ff9b::7f00:1", fault.ErrInvalid},
		{"file host set aside for tests, index public", "93.184.215.14", "203.0.113.1", fault.ErrInvalid},
		{"file host unspecified", "127.0.0.1", "0.0.0.0", fault.ErrInvalid},
		{"file host unresolvable", "127.0.0.1", "", fault.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := registry(t)
			s.Script("files.example/f", liar.Body("x/y", []byte("file")))
			s.Resolve(index, strings.Fields(c.index)...)
			s.Resolve(files, strings.Fields(c.files)...)
			cl := client(t, s, nil)
			var b sink
			if err := cl.File(asking(t), upstream.FileAsk{URL: s.URL(files, "/f")}, &b); !errors.Is(err, c.want) {
				t.Errorf("File: %v, want %v", err, c.want)
			}
			fresh := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { cfg.FileHosts = nil })
			if err := fresh.Learn(t.Context(), s.Host(files)); !errors.Is(err, c.want) {
				t.Errorf("Learn: %v, want %v", err, c.want)
			}
			if c.want != nil && len(s.Requests()) != 0 {
				t.Error("a request was sent")
			}
		})
	}
	s := registry(t)
	s.Resolve(index, "169.254.169.254")
	if _, err := getPage(t, client(t, s, nil), upstream.PageAsk{URL: s.URL(index, "/simple/a/")}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an index that resolves to the metadata service: %v", err)
	}
}

// TestLyingFiles is G-IN-05 and -07 for artifacts. That the bytes are those of
// the index is verified by the cache.
func TestLyingFiles(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1000)
	for name, c := range map[string]struct {
		reply liar.Reply
		want  error
	}{
		"honest":        {liar.Body("x/y", body), nil},
		"shorter":       {liar.Body("x/y", body[:999]), fault.ErrInvalid},
		"longer":        {liar.Body("x/y", append([]byte("x"), body...)), fault.ErrInvalid},
		"longer stream": {liar.Claim("x/y", 2000, body), fault.ErrInvalid},
		"packed":        {liar.Gzip("x/y", body, 1), fault.ErrInvalid},
		"206":           {liar.Partial("x/y", body), fault.ErrInvalid},
		"cut":           {liar.Claim("x/y", 1000, body[:500]), fault.ErrUnavailable},
		"chunked, cut":  {liar.Chunked("x/y", body[:500]), fault.ErrUnavailable},
		"drips":         {liar.Drip("x/y", 1000, 10*time.Millisecond), fault.ErrUnavailable},
		"redirect":      {liar.Redirect("https://127.0.0.1/x"), fault.ErrInvalid},
		"404":           {liar.Status(404), fault.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := registry(t)
			s.Script("files.example/f", c.reply)
			var b sink
			err := client(t, s, slowly(name)).File(asking(t), upstream.FileAsk{URL: s.URL(files, "/f"), Size: 1000}, &b)
			if !errors.Is(err, c.want) {
				t.Errorf("File = %d bytes, %v; want %v", b.Len(), err, c.want)
			}
		})
	}
}

func TestRetriesMendWhatCanBeMended(t *testing.T) {
	s := registry(t)
	s.Script("files.example/f", liar.Cut(), liar.Claim("x/y", 4, []byte("fi")), liar.Body("x/y", []byte("file")))
	s.Script("index.example/simple/a/", liar.Status(500), liar.Busy(503, 0), liar.Body("text/x", []byte("page")))
	c := client(t, s, nil)
	var b sink
	if err := c.File(asking(t), upstream.FileAsk{URL: s.URL(files, "/f"), Size: 4}, &b); err != nil || b.String() != "file" {
		t.Errorf("File = %q, %v", b.String(), err)
	}
	if p, err := getPage(t, c, upstream.PageAsk{URL: s.URL(index, "/simple/a/")}); err != nil || string(p.Body) != "page" {
		t.Errorf("Page = %q, %v", p.Body, err)
	}
}

// full is a sink that takes few bytes.
type full struct{ sink }

func (f *full) Write(p []byte) (int, error) {
	if f.Len()+len(p) > 3 {
		return 0, fault.New(fault.ErrForbidden, "the sink is full")
	}
	return f.sink.Write(p)
}

// TestPageSinks: another attempt begins anew, a sink's refusal is final, and an
// ask may take less than the client's limit but not more.
func TestPageSinks(t *testing.T) {
	s := registry(t)
	page := liar.Body("text/x", []byte("page"))
	s.Script("index.example/simple/a/", liar.Claim("text/x", 4, []byte("pa")), liar.Chunked("text/x", []byte("pag")), page)
	c := client(t, s, nil)
	ask := upstream.PageAsk{URL: s.URL(index, "/simple/a/")}
	if p, err := getPage(t, c, ask); err != nil || string(p.Body) != "page" {
		t.Errorf("Page = %q, %v", p.Body, err)
	}
	s.Script("index.example/simple/a/", page)
	if _, err := c.Page(asking(t), ask, &full{}); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a full sink: %v", err)
	}
	if n := s.Count("index.example/simple/a/"); n != 4 {
		t.Errorf("%d requests, want three attempts and one for the full sink", n)
	}
	c = client(t, s, nil)
	s.Script("index.example/simple/a/", liar.Bomb("text/x", 4<<20), liar.Body("text/x", bytes.Repeat([]byte("x"), 9<<20)))
	ask.Most = 4
	if _, err := getPage(t, c, ask); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("more than the ask takes: %v", err)
	}
	ask.Most = 16 << 20
	if _, err := getPage(t, c, ask); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("more than the client takes: %v", err)
	}
}

func TestExpiredCertificate(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	s.UseCertificate(s.Certify(t, -time.Hour, index))
	if p, err := getPage(t, client(t, s, nil), upstream.PageAsk{URL: s.URL(index, "/simple/a/")}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Page = %+v, %v", p, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, bad := range []string{"", "index.example/simple/", "ftp://index.example/", "https:///simple/", "https://index.example/simple", "https://u:p@index.example/", "https://index.example/?q=1", "https://index.example/#f"} {
		if _, err := upstream.New(upstream.Config{Index: bad}, upstream.Options{Recorder: &ledger{}}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v, want fault.ErrInvalid", bad, err)
		}
	}
	for _, bad := range []string{"a/b", "u@h", "h:x", "", "h?q"} {
		if _, err := upstream.New(upstream.Config{Index: "https://index.example/", FileHosts: []string{bad}}, upstream.Options{Recorder: &ledger{}}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("file host %q: %v, want fault.ErrInvalid", bad, err)
		}
	}
}
