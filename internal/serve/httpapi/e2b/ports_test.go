package e2b

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// serves lets a handler be a server on a port of the box.
func (s *dataStage) serves(port int, h http.HandlerFunc) {
	s.t.Helper()
	server := httptest.NewServer(h)
	s.t.Cleanup(server.Close)
	s.box.Ports[port] = server.Listener.Addr().String()
}

func (s *dataStage) port(port, path string) *http.Request {
	r := s.request(http.MethodGet, path, nil)
	r.Header.Del(headerSandbox)
	r.Header.Del(headerPort)
	r.Header.Del("X-Access-Token")
	r.Host = port + "-" + boxID + ".box.example"
	return r
}

func TestPorts(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Path", r.URL.RequestURI())
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, r.Method+" "+r.Host)
		})
		s.box.Ports[3001] = "" // published, and nobody listens
		r := s.port("3000", "/a%2Fb?c=d;e")
		r.Method = "PROPFIND"
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusTeapot || res.Header.Get("X-Path") != "/a%2Fb?c=d;e" || string(body) != "PROPFIND 3000-sb01.box.example" {
			t.Errorf("%d %q %s", res.StatusCode, res.Header.Get("X-Path"), body)
		}
		if status, body := s.do(s.port("3001", "/")); status != http.StatusBadGateway || !strings.Contains(body, `"The sandbox is running but port is not open"`) || !strings.Contains(body, `"port":3001`) {
			t.Errorf("nobody listens: %d %s", status, body)
		}
		if status, body := s.do(s.port("4000", "/")); status != http.StatusForbidden || !strings.Contains(body, "published_ports: [4000]") {
			t.Errorf("not published: %d %s", status, body)
		}
		s.freezes("ap-1")
		s.box.AwaitState(t.Context(), "frozen")
		if status, body := s.do(s.port("4000", "/")); status != http.StatusConflict || !strings.Contains(body, "ap-1") {
			t.Errorf("frozen: %d %s", status, body)
		}
	})
}

func TestPortsThatAreNotPublic(t *testing.T) {
	s := newDataStage(t)
	s.access[boxID] = "traffic-secret"
	s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			all := strings.Join(values, " ")
			if strings.Contains(all, "secret") || strings.Contains(all, "token-") || strings.Contains(all, "e2b_") {
				t.Errorf("the server inside got %s: %s", name, all)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	for _, wrong := range []string{"", "traffic-secre", "traffic-secretx"} {
		r := s.port("3000", "/")
		r.Header.Set(headerTraffic, wrong)
		if status, body := s.do(r); status != http.StatusForbidden {
			t.Errorf("%q: %d %s", wrong, status, body)
		}
	}
	r := s.port("3000", "/")
	r.Header.Set(headerTraffic, "traffic-secret")
	r.Header.Set("X-Access-Token", "token-"+boxID)
	r.Header.Add("X-API-Key", "another")
	r.Header.Add("X-API-Key", "e2b_"+strings.Repeat("0", 40))
	r.Header.Set("Authorization", "bearer e2b_"+strings.Repeat("0", 40))
	if status, body := s.do(r); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
}

func TestUpgrades(t *testing.T) {
	s := newDataStage(t)
	s.serves(3000, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "echo of "+line)
	})
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 3000-sb01.box.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %+v", err, res)
	}
	defer res.Body.Close()
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := answer.ReadString('\n'); err != nil || line != "echo of hello\n" {
		t.Errorf("%v %q", err, line)
	}
}

// TestPortsTakeRoom: heads of answers that a server inside begins and never ends are its owner's
// visitors' room, and no more is in the daemon's memory. Others' visitors, and the owner itself,
// are served meanwhile.
func TestPortsTakeRoom(t *testing.T) {
	s := newDataStage(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var head strings.Builder
	head.WriteString("HTTP/1.1 200 OK\r\n")
	for i := range 8_000 {
		head.WriteString(strconv.FormatInt(int64(36*36*36+i), 36) + ":\r\n")
	}
	var open sync.WaitGroup
	over := make(chan struct{})
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, head.String()) // who hangs up needs no more
					<-over
				}
			})
		}
	})
	s.box.Ports[3000] = l.Addr().String()
	other := s.add("sb02")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(server.Close)
	other.Ports[3000] = server.Listener.Addr().String()
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	const visits = 60
	statuses := make(chan string, visits)
	var visitors sync.WaitGroup
	for range visits {
		visitors.Go(func() {
			r := s.port("3000", "/")
			r.Close = true
			status, body := s.do(r)
			statuses <- strconv.Itoa(status) + " " + body
		})
	}
	for range visits / 2 {
		if said := <-statuses; !strings.HasPrefix(said, "429 ") || !strings.Contains(said, "hold as much of the daemon's memory as they may (16 MiB") {
			t.Errorf("a visit for which there is no room: %s", said)
		}
	}
	if took := inUse() - before; took > 2*backend.RoomEach {
		t.Errorf("visits of one owner take %d MiB", took>>20)
	}
	r := s.port("3000", "/")
	r.Host = "3000-sb02.box.example"
	if status, body := s.do(r); status != http.StatusNoContent {
		t.Errorf("a visit of another's: %d %s", status, body)
	}
	s.got(filesystemService+"MakeDir", `{"path":"w"}`)
	close(over)
	_ = l.Close()
	visitors.Wait()
	open.Wait()
}

// TestWhatIsNoHTTP: a port that is open is not told to be closed.
func TestWhatIsNoHTTP(t *testing.T) {
	s := newDataStage(t)
	long := strings.Repeat("x", 70<<10)
	s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Header().Set("X-Long", long)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "SSH-2.0-x\r\n")
		_ = conn.Close()
	})
	for _, path := range []string{"/long", "/other"} {
		status, body := s.do(s.port("3000", path))
		if status != http.StatusBadGateway || strings.Contains(body, "is not open") || !strings.Contains(body, "gave no whole answer of HTTP with a header of at most 64 KiB") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestNoServerInsideGetsATokenOfTheDaemon: wherever in the head of a visit a client has one, and however it is
// written there. The controls: all else comes as it was sent, and so does what only looks like one.
func TestNoServerInsideGetsATokenOfTheDaemon(t *testing.T) {
	key := "e2b_" + strings.Repeat("0a", 20)
	s := newDataStage(t)
	s.access[boxID] = "the-traffic-token-of-the-box"
	own := s.access.Token(boxID)
	gets := make(chan *http.Request, 1)
	s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
		gets <- r
		w.WriteHeader(http.StatusNoContent)
	})
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, token := range []string{key, own, s.access[boxID]} {
		found := exchange.Finder(token)
		for name, put := range map[string]func(r *http.Request){
			"X-Api-Key":          func(r *http.Request) { r.Header["X-Api-Key"] = []string{"another", token} },
			"X-Access-Token":     func(r *http.Request) { r.Header["X-Access-Token"] = []string{"another", token} },
			"in a list":          func(r *http.Request) { r.Header.Set("X-Access-Token", "another, "+token) },
			"Bearer":             func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) },
			"bearer, blanks":     func(r *http.Request) { r.Header.Set("Authorization", "bearer   "+token) },
			"another scheme":     func(r *http.Request) { r.Header.Set("Authorization", "token "+token) },
			"Basic, user":        func(r *http.Request) { r.Header.Set("Authorization", basic(token, "")) },
			"Basic, password":    func(r *http.Request) { r.Header.Set("Authorization", basic("x", token)) },
			"another header":     func(r *http.Request) { r.Header.Set("X-Supabase-Token", token) },
			"a cookie":           func(r *http.Request) { r.Header.Set("Cookie", "a=1; session="+token+"; b=2") },
			"a subprotocol":      func(r *http.Request) { r.Header.Set("Sec-Websocket-Protocol", "bearer, "+token) },
			"a URL before":       func(r *http.Request) { r.Header.Set("Referer", "https://h.example/?key="+token) },
			"the query":          func(r *http.Request) { r.URL.RawQuery = "access_token=" + token + "&a=b" },
			"the query, escaped": func(r *http.Request) { r.URL.RawQuery = "t=%" + fmt.Sprintf("%02x", token[0]) + token[1:] },
			"the path":           func(r *http.Request) { r.URL.Path = "/a/" + token + "/b" },
		} {
			if token == own && strings.HasPrefix(name, "Basic") {
				continue // a stand-in's token is too short to be found in base64
			}
			r := s.port("3000", "/")
			r.Header.Set(headerTraffic, s.access[boxID])
			r.Header.Set("X-Other", "stays")
			put(r)
			if status, body := s.do(r); status != http.StatusNoContent {
				t.Fatalf("%s: %d %s", name, status, body)
			}
			got := <-gets
			head := fmt.Sprint(got.RequestURI, got.Header)
			if found([]byte(head)) || strings.Contains(head, token) {
				t.Errorf("%s: the server inside gets %s", name, head)
			}
			if got.Header.Get("X-Other") != "stays" || name == "a cookie" && !strings.Contains(got.Header.Get("Cookie"), "a=1; session=") {
				t.Errorf("%s: what is beside it: %s", name, head)
			}
		}
	}
	r := s.port("3000", "/a%2Fb?c=d;e&k=e2b_0a")
	r.Header.Set(headerTraffic, s.access[boxID])
	r.Header.Set("Authorization", "Bearer e2b_short")
	r.Header.Set("X-Access-Token", "another")
	if status, body := s.do(r); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, body)
	}
	if got := <-gets; got.RequestURI != "/a%2Fb?c=d;e&k=e2b_0a" || got.Header.Get("Authorization") != "Bearer e2b_short" || got.Header.Get("X-Access-Token") != "another" {
		t.Errorf("the control: %s %v", got.RequestURI, got.Header)
	}
}
