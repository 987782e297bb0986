package e2b

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		if status, body := s.do(s.port("3001", "/")); status != http.StatusBadGateway || !strings.Contains(body, "port 3001 is not open") {
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
