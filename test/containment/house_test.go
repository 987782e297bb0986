package containment

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listedHost is a name that a policy has, and that leads to a server of the test's own.
const listedHost = "listed.example"

// house is that server, over TLS and plain HTTP. What it is sent for another host, or with
// a token, has got out. Whoever may come is known by a word.
type house struct {
	secure, plain *httptest.Server

	mu      sync.Mutex // guards welcome
	welcome []string   // the paths that were asked for
}

func newHouse(t *testing.T, s *stage) *house {
	t.Helper()
	h := &house{}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived of it
		if text := fmt.Sprint(r.Host, " ", r.RequestURI, " ", r.Header, " ", string(body)); r.Host != listedHost || strings.Contains(text, s.world.token) {
			s.seen.add("the listed host", "it was sent %s", text)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.welcome = append(h.welcome, r.URL.Path)
	})
	h.plain, h.secure = httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	h.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.secure.TLS = &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
		if i.ServerName != listedHost {
			s.seen.add("the listed host", "it was greeted as %q", i.ServerName)
		}
		return nil, nil
	}}
	h.secure.StartTLS()
	t.Cleanup(h.plain.Close)
	t.Cleanup(h.secure.Close)
	return h
}

// config is what the daemon's configuration says of it.
func (h *house) config() string {
	return fmt.Sprintf("network:\n  hosts:\n    - { name: %s, port: 443, address: %q }\n    - { name: %s, port: 80, address: %q }\n",
		listedHost, h.secure.Listener.Addr(), listedHost, h.plain.Listener.Addr())
}

func (h *house) welcomed(word string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.welcome, "/welcome/"+word)
}

// visit is what a law allows: the listed host is reached in every way that there is.
func (s *stage) visit(t *testing.T, b *sandbox) {
	t.Helper()
	var work [][]string
	words := map[string]string{}
	for name, args := range map[string][]string{
		"TLS":         {"hello", listedHost + ":443", listedHost, "welcome/WORD", "", listedHost},
		"HTTP":        {"proxy", listedHost + ":80", "host", listedHost, "welcome/WORD"},
		"CONNECT":     {"hello", listedHost + ":443", listedHost, "welcome/WORD", "connect", listedHost},
		"SOCKS":       {"hello", listedHost + ":443", listedHost, "welcome/WORD", "socks", listedHost},
		"a whole URL": {"proxy", "127.0.0.1:3128", "absolute", listedHost, "welcome/WORD"},
	} {
		words[name] = randomWord()
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "WORD", words[name])
		}
		work = append(work, args)
	}
	text, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	got := b.probe(t, manner{}, "batch", string(text))
	for name, word := range words {
		if !s.house.welcomed(word) {
			t.Errorf("INCONCLUSIVE: the listed host is not reached by %s either: %s", name, got.text)
		}
	}
	s.world.flush(t) // none of it is taken for what comes next
}
