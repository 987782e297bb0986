package upstream_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// shown is an upstream's configuration with a credential, and what of it must come back nowhere.
type shown struct {
	change func(*upstream.Config)
	texts  []string
}

const (
	theToken    = "the-token/of+this.gateway=="
	thePassword = "correct&horse<battery>"
)

func credentialsShown() map[string]shown {
	pair := "deploy:" + thePassword
	basic := base64.StdEncoding.EncodeToString([]byte(pair))
	return map[string]shown{
		"a token":              {func(c *upstream.Config) { c.Token = theToken }, []string{theToken, "Bearer " + theToken}},
		"a password":           {func(c *upstream.Config) { c.Username, c.Password = "deploy", thePassword }, []string{thePassword, pair, basic, "Basic " + basic}},
		"a user that is a key": {func(c *upstream.Config) { c.Username = theToken }, []string{theToken, base64.StdEncoding.EncodeToString([]byte(theToken + ":"))}},
		"a short password":     {func(c *upstream.Config) { c.Username, c.Password = "deploy", "pw" }, []string{"deploy:pw", base64.StdEncoding.EncodeToString([]byte("deploy:pw"))}},
		"a pair as a token":    {func(c *upstream.Config) { c.Token = basic }, []string{basic, thePassword}},
		"a proxy's password": {func(c *upstream.Config) {
			c.Proxy = "http://me:" + url.QueryEscape(thePassword) + "@proxy.example:3128"
		}, []string{thePassword}},
	}
}

// written are ways in which a registry writes what it was shown.
func written(text string) map[string]string {
	numbers := ""
	for _, c := range text {
		numbers += fmt.Sprintf("&#%d;", c)
	}
	return map[string]string{
		"plain": text, "JSON": strings.Trim(strings.ReplaceAll(fmt.Sprintf("%+q", text), "<", `\u003c`), `"`), "a URL": url.QueryEscape(text), "markup": numbers,
		"markup, without an end": strings.TrimSuffix(numbers, ";"),
		"base64":                 base64.URLEncoding.EncodeToString([]byte("you said: " + text)), "hexadecimal": fmt.Sprintf("%x", text),
	}
}

// head is an answer with anything in its head.
func head(status string, header http.Header, body string) liar.Reply {
	return func(_ *liar.Server, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: %d\r\n", status, len(body)) // the client may have gone
		_ = header.Write(conn)
		_, _ = io.WriteString(conn, "\r\n"+body)
	}
}

// TestNoAnswerHasTheCredential: wherever a registry says what it was shown to let the gateway in, in whichever
// writing, nothing of that is in what a caller gets: pages have it masked, unless their bytes are verified, and all
// else is an error that does not have it either.
func TestNoAnswerHasTheCredential(t *testing.T) {
	long := strings.Repeat("<a href=\"x-1.0.whl\">x</a>\n", 300)
	const mt = "text/html"
	places := map[string]struct {
		reply func(text string) liar.Reply
		page  string // what a page is: "masked", "as it is", "refused"
		file  string // and a file
	}{
		"a body":           {func(s string) liar.Reply { return liar.Body(mt, []byte(long+s+long)) }, "masked", "refused"},
		"a body's end":     {func(s string) liar.Reply { return liar.Body(mt, []byte(long+s)) }, "masked", "refused"},
		"a packed body":    {func(s string) liar.Reply { return liar.Gzip(mt, []byte(long+s+long), 1) }, "masked", "refused"},
		"a body in pieces": {func(s string) liar.Reply { return pieces(mt, s) }, "masked", "refused"},
		"a field": {func(s string) liar.Reply {
			return head("200 OK", http.Header{"Content-Type": {mt}, "X-You": {s}}, long)
		}, "as it is", "as it is"},
		"an ETag": {func(s string) liar.Reply {
			return head("200 OK", http.Header{"Content-Type": {mt}, "Etag": {`"` + s + `"`}}, long)
		}, "as it is", "as it is"},
		"a media type": {func(s string) liar.Reply {
			return head("200 OK", http.Header{"Content-Type": {mt + "; you=\"" + s + "\""}}, long)
		}, "as it is", "as it is"},
		"a status line":     {func(s string) liar.Reply { return head("200 "+s, http.Header{"Content-Type": {mt}}, long) }, "as it is", "as it is"},
		"an error":          {func(s string) liar.Reply { return head("403 "+s, http.Header{"X-You": {s}}, s) }, "refused", "refused"},
		"an error of its":   {func(s string) liar.Reply { return head("503 "+s, http.Header{"Retry-After": {s}}, s) }, "refused", "refused"},
		"a redirect":        {func(s string) liar.Reply { return liar.Redirect("/simple/b/?you=" + url.QueryEscape(s)) }, "refused", "refused"},
		"a redirect's host": {func(s string) liar.Reply { return liar.Redirect("https://u:" + url.QueryEscape(s) + "@evil.example/") }, "refused", "refused"},
		"no HTTP":           {func(s string) liar.Reply { return garbage("HTTP/9.9 " + s + "\r\n\r\n") }, "refused", "refused"},
		"no field":          {func(s string) liar.Reply { return garbage("HTTP/1.1 200 OK\r\n" + s + "\r\n\r\n") }, "refused", "refused"},
		"an encoding": {func(s string) liar.Reply {
			return head("200 OK", http.Header{"Content-Type": {mt}, "Content-Encoding": {s}}, long)
		}, "refused", "refused"},
		"no piece": {func(s string) liar.Reply {
			return garbage("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n" + s + "\r\n")
		}, "refused", "refused"},
	}
	for kind, c := range credentialsShown() {
		t.Run(kind, func(t *testing.T) {
			s := registry(t)
			s.Script("index.example/simple/b/", liar.Body(mt, []byte(long)))
			client := client(t, s, func(cfg *upstream.Config, o *upstream.Options) {
				c.change(cfg)
				o.Limits.Attempts = 1
				if cfg.Proxy != "" {
					s.Resolve("proxy.example", "127.0.0.1")
					o.Dial = throughProxy(t)
				}
			})
			found := exchange.Finder(c.texts...)
			for _, text := range c.texts {
				for writing, said := range written(text) {
					for place, p := range places {
						if writing != "plain" && writing != "base64" && place != "a body" && place != "a body's end" && place != "an error" && place != "a redirect" {
							continue
						}
						name := place + ", " + text + " as " + writing
						s.Script("index.example/simple/a/", p.reply(said))
						for _, exact := range []bool{false, true} {
							page, err := getPage(t, client, upstream.PageAsk{URL: s.URL(index, "/simple/a/"), Types: []string{mt}, Exact: exact, Most: 1 << 20})
							got := "refused"
							switch {
							case err != nil:
								page.Body = nil // what is in the sink is nothing then
							case page.Masked:
								got = "masked"
							default:
								got = "as it is"
							}
							want := p.page
							if exact && want == "masked" {
								want = "refused"
							}
							all := fmt.Sprint(page.URL, page.ContentType, page.ETag, string(page.Body), err)
							if got != want || found([]byte(all)) {
								t.Fatalf("%s (exact: %t): %s, want %s: %.300s %v", name, exact, got, want, all, err)
							}
							if err == nil && (len(page.Body) < len(long) || !strings.HasPrefix(string(page.Body), long[:1_000])) {
								t.Fatalf("%s: what is beside it: %.300q", name, page.Body)
							}
						}
						var b sink
						err := client.File(asking(t), upstream.FileAsk{URL: s.URL(index, "/simple/a/")}, &b)
						if (err != nil) != (p.file == "refused") || found([]byte(fmt.Sprint(err))) || err == nil && (found(b.Bytes()) || b.String() != long) {
							t.Fatalf("%s: the file is %.300q, %v", name, b.String(), err)
						}
					}
				}
			}
		})
	}
}

// TestWhatOnlyLooksLikeACredential comes as it was sent, and so does all from an upstream that was shown none.
func TestWhatOnlyLooksLikeACredential(t *testing.T) {
	s := registry(t)
	text := "deploy " + thePassword[2:] + " " + theToken[:20] + " you%2Fsaid &lt; \\u0041 " + base64.StdEncoding.EncodeToString([]byte("user:another-password"))
	for name, c := range map[string]struct {
		change func(*upstream.Config)
		body   string
	}{
		"another":   {func(c *upstream.Config) { c.Username, c.Password = "deploy", thePassword }, text},
		"a part":    {func(c *upstream.Config) { c.Token = theToken }, text + theToken[:9]},
		"a token":   {func(c *upstream.Config) { c.Token = theToken }, text},
		"none":      {func(*upstream.Config) {}, text + thePassword + theToken},
		"too short": {func(c *upstream.Config) { c.Token = "package" }, text + "package"},
	} {
		s.Script("index.example/simple/a/", liar.Body("text/html", []byte(c.body)))
		client := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { c.change(cfg) })
		for _, exact := range []bool{false, true} {
			page, err := getPage(t, client, upstream.PageAsk{URL: s.URL(index, "/simple/a/"), Exact: exact})
			if err != nil || string(page.Body) != c.body || page.Masked {
				t.Errorf("%s (exact: %t): %q, %v", name, exact, page.Body, err)
			}
		}
		var b sink
		if err := client.File(asking(t), upstream.FileAsk{URL: s.URL(index, "/simple/a/")}, &b); err != nil || b.String() != c.body {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
	}
}

// TestNeighboursCredentials: two registries at one host are one to it, and what one was shown may come from the
// other. The control: one at another host has not got it.
func TestNeighboursCredentials(t *testing.T) {
	s := registry(t)
	for path, name := range map[string]string{"/simple/": index, "/": files} {
		at := s.URL(name, path)
		s.Script(name+path+"a/", liar.Body("text/html", []byte("you said "+theToken)))
		client := client(t, s, func(cfg *upstream.Config, o *upstream.Options) {
			cfg.Index = at
			o.Beside = []upstream.Config{*cfg, {Index: s.URL(index, "/npm/"), Token: theToken}}
		})
		page, err := getPage(t, client, upstream.PageAsk{URL: at + "a/"})
		if err != nil || page.Masked != (name == index) || strings.Contains(string(page.Body), theToken) != (name != index) {
			t.Errorf("%s: %q, %v", at, page.Body, err)
		}
	}
}

// TestAHostsOtherCredential: files may lie at the host of another upstream, which knows what that one shows it.
// The control: the index's own host does not.
func TestAHostsOtherCredential(t *testing.T) {
	s := registry(t)
	text := "you said " + theToken
	for name, path := range map[string]string{index: "/simple/a", files: "/a"} {
		s.Script(name+path, liar.Body("text/html", []byte(text)))
		client := client(t, s, func(_ *upstream.Config, o *upstream.Options) {
			at := strings.Replace(s.URL(files, "/npm/"), files, strings.ToUpper(files)+".", 1) // the same name
			o.Beside = []upstream.Config{{Index: at, Token: theToken}}
		})
		var b sink
		if err := client.File(asking(t), upstream.FileAsk{URL: s.URL(name, path)}, &b); (err != nil) != (name == files) || err == nil && b.String() != text {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
	}
}

// TestWhatEverybodyKnowsIsNoCredential: what the index's URL says, which sandboxes are told, and the user that is
// everybody come as they are, though a registry is shown them as a user or a password. The control is a token.
func TestWhatEverybodyKnowsIsNoCredential(t *testing.T) {
	s := registry(t)
	for text, c := range map[string]struct {
		change func(*upstream.Config)
		comes  bool
	}{
		"organization": {func(c *upstream.Config) { c.Index, c.Username = s.URL(index, "/simple/organization/"), "organization" }, true},
		"artifacts": {func(c *upstream.Config) {
			c.Index, c.Username, c.Password = s.URL(index, "/simple/artifacts/"), "reader", "artifacts"
		}, true},
		"Anonymous": {func(c *upstream.Config) { c.Username = "Anonymous" }, true},
		"anonymous": {func(c *upstream.Config) { c.Username, c.Password = "anonymous", "anonymous" }, true},
		theToken:    {func(c *upstream.Config) { c.Token = theToken }, false},
	} {
		body := "<a href=\"/simple/" + text + "/a.whl\">"
		s.Script("index.example/simple/a/", liar.Body("text/html", []byte(body)))
		client := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { c.change(cfg) })
		page, err := getPage(t, client, upstream.PageAsk{URL: s.URL(index, "/simple/a/")})
		if err != nil || page.Masked == c.comes || (string(page.Body) == body) != c.comes {
			t.Errorf("%s: %q, %v", text, page.Body, err)
		}
	}
}

// TestAMaskedPageHasNoETag: it would be asked for by its ETag, and stay masked when its upstream has
// another credential. The control is the same page to who shows another one.
func TestAMaskedPageHasNoETag(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", head("200 OK", http.Header{"Content-Type": {"text/html"}, "Etag": {`"1"`}}, "you said "+theToken))
	for token, etag := range map[string]string{theToken: "", thePassword: `"1"`} {
		client := client(t, s, func(cfg *upstream.Config, _ *upstream.Options) { cfg.Token = token })
		page, err := getPage(t, client, upstream.PageAsk{URL: s.URL(index, "/simple/a/")})
		if err != nil || page.ETag != etag || page.Masked != (etag == "") {
			t.Errorf("%s: %+v, %v", token, page.Page, err)
		}
	}
}

// TestEachWayToASink is in the tests above: what a client fetches into a sink, it looks through.
func TestEachWayToASink(t *testing.T) {
	sinks := reflect.TypeFor[upstream.Sink]()
	var ways []string
	for m := range reflect.TypeFor[*upstream.Client]().Methods() {
		for in := range m.Type.Ins() {
			if in == sinks || in.Kind() == reflect.Interface && in.Implements(reflect.TypeFor[io.Writer]()) {
				ways = append(ways, m.Name)
			}
		}
		for out := range m.Type.Outs() {
			if out.Implements(reflect.TypeFor[io.Reader]()) || out == reflect.TypeFor[*http.Response]() {
				t.Errorf("%s gives what was not looked through", m.Name)
			}
		}
	}
	if slices.Sort(ways); !slices.Equal(ways, []string{"File", "Page"}) {
		t.Errorf("%v: give a new one its rows in TestNoAnswerHasTheCredential", ways)
	}
}

// pieces is a body that comes byte by byte.
func pieces(contentType, text string) liar.Reply {
	all := strings.Repeat("<a href=\"x-1.0.whl\">x</a>\n", 2_000)
	return liar.Stream(contentType, func(i int) []byte {
		switch at := i - 1; {
		case i == 0:
			return []byte(all)
		case at < len(text):
			return []byte(text[at : at+1])
		}
		return nil
	})
}

// throughProxy connects to a proxy, wherever it is said to be, which leads to this machine alone.
func throughProxy(t *testing.T) func(ctx context.Context, network, _ string) (net.Conn, error) {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth(); r.Method != http.MethodConnect || password != thePassword {
			t.Errorf("the proxy gets %s %s with %v", r.Method, r.Host, r.Header)
		}
		_, port, _ := net.SplitHostPort(r.Host)
		there, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(there, here); _ = there.Close() })
		both.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
		both.Wait()
	}))
	t.Cleanup(proxy.Close)
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxy.Listener.Addr().String())
	}
}

// garbage answers with anything.
func garbage(text string) liar.Reply {
	return func(_ *liar.Server, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text) // the client may have gone
		_ = conn.Close()
	}
}
