package e2b

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestStreamsOfASandboxAreBounded: each stream that follows a command takes a connection, buffers and goroutines
// here and in the keeper, whose end is that of all sandboxes. So one sandbox's clients may have so many.
func TestStreamsOfASandboxAreBounded(t *testing.T) {
	s := newDataStage(t)
	s.server.Close()
	s.server = httptest.NewUnstartedServer(backend.Hurried(s.data))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(client *http.Client, call, message string) (status int, first map[string]any) {
		r := s.request(http.MethodPost, processService+call, bytes.NewReader(envelope(0, message)))
		r.Header.Set("Content-Type", typeStream)
		res, err := client.Do(r.WithContext(ctx))
		if err != nil {
			return 0, nil
		}
		context.AfterFunc(ctx, func() { _ = res.Body.Close() })
		if res.StatusCode != http.StatusOK {
			return res.StatusCode, nil
		}
		var head [envelopeSize]byte
		if _, err := io.ReadFull(res.Body, head[:]); err != nil {
			return 0, nil
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(res.Body, payload); err != nil || json.Unmarshal(payload, &first) != nil {
			return 0, nil
		}
		return res.StatusCode, first
	}
	status, first := open(s.server.Client(), "Start", `{"process":{"cmd":"/bin/sleep","args":["600"]},"stdin":false}`)
	event, _ := first["event"].(map[string]any)
	start, _ := event["start"].(map[string]any)
	pid, _ := start["pid"].(float64)
	if status != http.StatusOK || pid == 0 {
		t.Fatalf("%d %v", status, first)
	}
	follow, err := json.Marshal(map[string]any{"process": map[string]any{"pid": int(pid)}})
	if err != nil {
		t.Fatal(err)
	}
	const connections, streams = 25, 80 // one token may have 1,500 connections of 100 streams
	var mu sync.Mutex
	var all sync.WaitGroup
	opened, refused := 0, 0
	for range connections {
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		defer client.CloseIdleConnections()
		for range streams {
			all.Go(func() {
				status, first := open(client, "Connect", string(follow))
				event, _ := first["event"].(map[string]any)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case status == http.StatusOK && event["start"] != nil:
					opened++
				case status == http.StatusTooManyRequests:
					refused++
				default:
					t.Errorf("%d %v", status, first)
				}
			})
		}
	}
	all.Wait()
	if opened+refused != connections*streams || opened > backend.UnderwayEach || opened < backend.UnderwayEach-1 { // with the one that started it
		t.Errorf("the clients of one sandbox follow one command %d times at once, and %d were refused", opened, refused)
	}
}

// TestEveryRequestToASandboxIsCounted: whatever is asked for of a sandbox, none is served when so many are
// under way as a token may have; a refusal says so, in the protocol of what was asked for.
func TestEveryRequestToASandboxIsCounted(t *testing.T) {
	s := newDataStage(t)
	owner := "sandbox " + boxID
	if box, err := s.data.living(boxID); err == nil {
		owner = roomOf(box)
	}
	full := func(owner string) {
		for range backend.UnderwayEach {
			if _, err := s.data.cfg.Underway.Join(owner, s.request(http.MethodGet, "/", nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(route string) (int, string) {
		method, path, _ := bytes.Cut([]byte(route), []byte(" "))
		r := s.request(string(method), string(path), bytes.NewReader([]byte("{}")))
		r.Header.Set("Content-Type", typeUnary)
		return s.do(r)
	}
	routes := []string{"GET /files?path=f", "POST /files?path=f", "POST /files/compose", "GET /metrics", "GET /nothing"}
	for _, call := range []string{"Start", "Connect", "List", "SendInput", "StreamInput", "CloseStdin", "Update"} {
		routes = append(routes, "POST "+processService+call)
	}
	for _, call := range []string{"WatchDir", "CreateWatcher", "GetWatcherEvents", "Stat", "ListDir", "MakeDir", "Move", "Remove"} {
		routes = append(routes, "POST "+filesystemService+call)
	}
	for _, route := range routes { // the control
		if status, body := ask(route); status == http.StatusTooManyRequests {
			t.Errorf("%s: %d %s", route, status, body)
		}
	}
	full(owner)
	for _, route := range routes {
		status, body := ask(route)
		if status != http.StatusTooManyRequests || !bytes.Contains([]byte(body), []byte("1024 requests of this token are under way")) {
			t.Errorf("%s: %d %s", route, status, body)
		}
	}
	if status, body := ask("POST " + processService + "SendSignal"); status == http.StatusTooManyRequests {
		t.Errorf("a signal: %d %s", status, body)
	}
}

// TestVisitsLeaveTokensTheirRequests: strangers who visit published ports are counted by whose port it is, and
// leave no token fewer requests of its own than it has without them.
func TestVisitsLeaveTokensTheirRequests(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.serves(3000, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		box, err := s.data.living(boxID)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := s.do(s.port("3000", "/")); status != http.StatusTeapot {
			t.Fatalf("the control: %d %s", status, body)
		}
		late := time.Now().Add(10 * time.Second)
		for _, owner := range []string{roomOf(box), "tok-bob", "tok-eve", "tok-dan"} {
			for joined := 0; joined < backend.UnderwayEach; {
				_, err := s.data.cfg.Visits.Join(owner, s.request(http.MethodGet, "/", nil))
				switch {
				case err == nil:
					joined++
				case joined < backend.UnderwayEach-1 || time.Now().After(late):
					t.Fatal(err)
				default:
					runtime.Gosched() // the control's visit is counted until the server has done with it, of which its client can't know
				}
			}
		}
		if status, body := s.do(s.port("3000", "/")); status != http.StatusTooManyRequests {
			t.Errorf("one visit more: %d %s", status, body)
		}
		for i := range backend.UnderwaySure + 1 {
			if _, err := s.data.cfg.Underway.Join(roomOf(box), s.request(http.MethodGet, "/files?path=f", nil)); err != nil {
				t.Fatalf("the %dth request of a token whose ports are visited: %v", i+1, err)
			}
		}
	})
}
