package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scrape is the metrics' text.
func scrape(t *testing.T, tel *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func has(t *testing.T, tel *Telemetry, lines ...string) {
	t.Helper()
	text := scrape(t, tel)
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no %q in the metrics", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestRequestsAreCountedByRoute: what a client writes into a path is no label.
func TestRequestsAreCountedByRoute(t *testing.T) {
	t.Parallel()
	tel, _ := newTelemetry(t, Traces{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("id") {
		case "interim":
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusTeapot)
		case "silent":
		case "hijacked":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nbye")
			conn.Close()
		case "streamed":
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("b"))
		case "panics":
			panic(http.ErrAbortHandler)
		}
	})
	counted := tel.HTTP("v1", mux)
	var handled sync.WaitGroup // the server does not wait for what was hijacked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handled.Add(1)
		defer handled.Done()
		counted.ServeHTTP(w, r)
	}))
	defer s.Close()
	get := func(path string) string {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		must(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		all, err := io.ReadAll(bufio.NewReader(conn))
		must(t, err)
		return string(all)
	}
	for _, id := range []string{"interim", "silent", "hijacked", "streamed", "panics", "a%2Fb"} {
		get("/v1/things/" + id)
	}
	get("/nowhere/" + strings.Repeat("x", 30))
	if got := get("/v1/things/streamed"); !strings.Contains(got, "ab") && !strings.Contains(got, "1\r\na\r\n1\r\nb") {
		t.Errorf("%q", got)
	}
	s.Close()
	handled.Wait()
	route := `cofferdam_api_requests_total{route="GET /v1/things/{id}",status="%s",wire="v1"} %d`
	has(t, tel,
		fmt.Sprintf(route, "418", 1), fmt.Sprintf(route, "200", 4), fmt.Sprintf(route, "101", 1), fmt.Sprintf(route, "500", 1),
		`cofferdam_api_requests_total{route="other",status="404",wire="v1"} 1`, `cofferdam_api_requests_in_flight{wire="v1"} 0`,
	)
}
