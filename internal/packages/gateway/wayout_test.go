package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// naive is a package cache as many are: it fetches what it is asked for, follows where it
// is led, keeps what it is given, passes on who one says that one is, and lists what it has.
// It is what agents without a network have got out through, and the control here.
type naive struct {
	registry *liar.Server
	client   *http.Client
	server   *httptest.Server

	mu   sync.Mutex // guards kept
	kept map[string]string
}

func newNaive(t *testing.T, registry *liar.Server) *naive {
	t.Helper()
	n := &naive{registry: registry, kept: map[string]string{}}
	n.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			if host, port, err := net.SplitHostPort(at); err == nil && strings.HasSuffix(host, ".example") {
				at = net.JoinHostPort("127.0.0.1", port)
			}
			return (&net.Dialer{}).DialContext(ctx, network, at)
		},
	}}
	n.server = httptest.NewTLSServer(n)
	t.Cleanup(n.server.Close)
	return n
}

// target is where a request leads in the eyes of the naive.
func (n *naive) target(r *http.Request) string {
	switch wish := r.URL.Query().Get("url"); {
	case r.Method == http.MethodConnect:
		return "http://" + r.Host + "/"
	case r.URL.IsAbs():
		return r.URL.String()
	case wish != "":
		return wish
	case strings.HasSuffix(r.Host, ".example"):
		return n.registry.URL(r.Host, r.URL.Path)
	}
	return "http://" + r.Host + r.URL.Path
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n.mu.Lock()
	defer n.mu.Unlock()
	to := n.target(r)
	switch text, known := n.kept[to]; {
	case r.Method == http.MethodPut:
		n.kept[to] = string(body)
	case strings.HasSuffix(to, "/simple/"):
		for name := range n.kept {
			_, _ = fmt.Fprintln(w, name)
		}
	case known:
		_, _ = io.WriteString(w, text)
	default:
		n.kept[to] = n.fetch(r, to)
		for _, link := range regexp.MustCompile(`"(http://[^"]+)"`).FindAllStringSubmatch(n.kept[to], -1) {
			n.fetch(r, link[1])
		}
		_, _ = io.WriteString(w, n.kept[to])
	}
}

func (n *naive) fetch(r *http.Request, at string) string {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, at, nil)
	if err != nil {
		return ""
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Accept-Encoding")
	resp, err := n.client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// say sends the naive a request, and is its answer.
func (n *naive) say(_, _, request string) string {
	conn, err := net.Dial("tcp", n.server.Listener.Addr().String())
	if err != nil {
		return err.Error()
	}
	return exchange(tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), request)
}

// say sends the gateway a request of a sandbox over a connection to a name, and is its answer.
func (b *bench) say(sandbox, host, request string) string {
	near, far := net.Pipe()
	go b.gateway.ServeRegistry(far, sandbox)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.door.caPEM)
	return exchange(tls.Client(near, &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}), request)
}

func exchange(conn *tls.Conn, request string) string {
	defer conn.NetConn().Close()                         // and not the connection over it: its farewell waits 5 s where nobody reads any more
	go func() { _, _ = io.WriteString(conn, request) }() // the answer may come before all is read
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.Status + "\n" + string(body)
}

// canary is a place of the host's network to which nothing may lead.
type canary struct {
	*httptest.Server

	mu      sync.Mutex // guards visited
	visited []string
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.visited = append(c.visited, r.URL.Path)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *canary) saw(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.visited, path)
}

const (
	sandboxB = "sb-b"
	// word is what must not come through: a message, or a token.
	word = "the-message-of-another"
)

// way is one that agents took, or tried, out of a package cache.
type way struct {
	what string
	// take walks it, and is what may be read at its end: by another run, or of a service's.
	take func(say func(sandbox, host, request string) string) string
	// leads is where on the canary it leads, if it leads there.
	leads string
}

// request is one of HTTP with nothing that its lines don't say.
func request(line, host string, fields ...string) string {
	return line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

// ways are those of the incident: to the network behind the cache, by what one asks and by
// what the registry says; to more rights; and to other agents.
func ways(at string) []way {
	asks := func(line, host string, fields ...string) func(func(string, string, string) string) string {
		return func(say func(string, string, string) string) string {
			return say(sandboxA, indexHost, request(line, host, fields...))
		}
	}
	upload := fmt.Sprintf("Content-Length: %d", len(word))
	return []way{
		{"an absolute URI", asks("GET http://"+at+"/absolute", at), "/absolute"},
		{"CONNECT", asks("CONNECT "+at, at), "/"},
		{"a parameter", asks("GET /simple/foo/?url=http://"+at+"/parameter", indexHost), "/parameter"},
		{"another host", asks("GET /host", at), "/host"},
		{"a link of a page", asks("GET /simple/linked/", indexHost, "Accept: "+pypitest.TypeJSON), "/linked-1.0-py3-none-any.whl"},
		{"a page that moved", asks("GET /simple/led/", indexHost), "/led"},
		{"a file that moved", func(say func(string, string, string) string) string {
			say(sandboxA, indexHost, request("GET /simple/moved/", indexHost))
			return say(sandboxA, filesHost, request("GET /p/moved-1.0-py3-none-any.whl", filesHost))
		}, "/moved"},
		{"a token of somebody's making", asks("GET /api/token", indexHost, "Authorization: Bearer forged"), ""},
		{"a service that is none of the registry's", asks("GET /api/keys", indexHost), ""},
		{"an upload", func(say func(string, string, string) string) string {
			say(sandboxA, filesHost, request("PUT /p/note-1.0-py3-none-any.whl", filesHost, upload)+word)
			return say(sandboxB, filesHost, request("GET /p/note-1.0-py3-none-any.whl", filesHost))
		}, ""},
		{"a list of what others asked for", func(say func(string, string, string) string) string {
			say(sandboxA, indexHost, request("GET /simple/"+word+"/", indexHost))
			return say(sandboxB, indexHost, request("GET /simple/", indexHost))
		}, ""},
	}
}

// hostile is a registry whose pages and files lead to the canary, and which has services
// that are not for sandboxes.
func (b *bench) hostile(at string) {
	b.publish(pypitest.Wheel(b.t, "foo", "1.0"), pypitest.Wheel(b.t, "foo", "2.0"))
	linked := pypitest.Wheel(b.t, "linked", "1.0")
	linked.URL = "http://" + at + "/" + linked.File
	b.page("linked", liar.Body(pypitest.TypeJSON, pypitest.Page(b.t, "linked", linked)))
	b.page("led", liar.Redirect("http://"+at+"/led"))
	moved := pypitest.Wheel(b.t, "moved", "1.0")
	b.publish(moved)
	b.registry.Script(filesHost+"/p/"+moved.File, liar.Redirect("http://"+at+"/moved"))
	for _, service := range []string{"/api/token", "/api/keys"} {
		b.registry.Script(indexHost+service, liar.Body("text/plain", []byte(word)))
	}
}

// TestThePackageCacheIsNoWayOut replays how agents without a network got out through their
// package cache, and passed messages through it: each way that leads out of a naive cache
// ends at the gateway, and who installs beside it installs.
func TestThePackageCacheIsNoWayOut(t *testing.T) {
	b, out := newBench(t, nil), newCanary(t)
	at := out.Listener.Addr().String()
	b.hostile(at)
	for _, w := range ways(at) {
		if read := w.take(b.say); strings.Contains(read, word) || w.leads != "" && out.saw(w.leads) {
			t.Errorf("ESCAPED: by %s: %s", w.what, read)
		}
	}
	out.mu.Lock()
	visited := slices.Clone(out.visited)
	out.mu.Unlock()
	if len(visited) > 0 {
		t.Errorf("ESCAPED: the gateway went to %v", visited)
	}
	for _, r := range b.registry.Requests() {
		if strings.HasPrefix(r.Path, "/api/") || strings.Contains(fmt.Sprint(r), "forged") {
			t.Errorf("ESCAPED: the registry was sent %+v", r)
		}
	}
	b.installs("foo")

	control := newNaive(t, b.registry)
	for _, w := range ways(at) {
		if read := w.take(control.say); !strings.Contains(read, word) && (w.leads == "" || !out.saw(w.leads)) {
			t.Errorf("INCONCLUSIVE: %s leads out of no cache at all: %s", w.what, read)
		}
	}
}
