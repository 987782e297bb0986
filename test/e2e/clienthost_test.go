package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// clientHost is a host that real clients ask, as a model's API, over gRPC and otherwise.
// The first part of a path is the client's name. Requests without the secret get nothing,
// and what comes is written down.
type clientHost struct {
	*httptest.Server
	name    string
	secrets map[string]string // by their names in the configuration
	caFile  string

	mu     sync.Mutex // guards all below
	came   map[string][]string
	goOn   map[string]chan struct{} // closed when a client has the first event of its stream
	wrong  []string                 // requests with something else than the secret
	change chan struct{}
}

// serveClients starts one for a name.
func serveClients(t *testing.T, name string) *clientHost {
	t.Helper()
	h := &clientHost{
		name: name, came: map[string][]string{}, goOn: map[string]chan struct{}{}, change: make(chan struct{}),
		secrets: map[string]string{"openai": "live-" + rand.Text() + rand.Text(), "anthropic": "live-" + rand.Text() + rand.Text()},
	}
	cert, ca, err := certified(name)
	if err != nil {
		t.Fatal(err)
	}
	h.caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(h.caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.EnableHTTP2, h.TLS = true, &tls.Config{Certificates: []tls.Certificate{cert}}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// config is for an installation that knows the host and its secrets, and a name that
// nobody answers for.
func (h *clientHost) config(t *testing.T, nobody string) string {
	t.Helper()
	text := fmt.Sprintf("network:\n  hosts:\n    - { name: %q, port: 443, address: %q, ca_file: %q }\n    - { name: %q, address: \"127.0.0.1:1\" }\nlog: { level: debug }\nsecrets:\n",
		h.name, h.Listener.Addr(), h.caFile, nobody)
	for secret, value := range h.secrets {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("  - { name: %s, hosts: [%q], file: %q, placeholder: %s }\n", secret, h.name, file, secret)
	}
	return text
}

// requests are those of a client, in the order in which they came, with their protocol.
func (h *clientHost) requests(client string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.came[client])
}

// strangers are requests that had no secret, or another.
func (h *clientHost) strangers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.wrong)
}

// hasSecret tells whether a request has one of the secrets, as its client sends keys.
func (h *clientHost) hasSecret(r *http.Request) bool {
	for _, secret := range h.secrets {
		if r.Header.Get("Authorization") == "Bearer "+secret || r.Header.Get("X-Api-Key") == secret {
			return true
		}
	}
	return false
}

func (h *clientHost) serve(w http.ResponseWriter, r *http.Request) {
	client, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	line := fmt.Sprintf("%s %s /%s", r.Proto, r.Method, path)
	h.mu.Lock()
	if !h.hasSecret(r) || strings.TrimSuffix(r.Host, ":443") != h.name {
		h.wrong = append(h.wrong, fmt.Sprintf("%s %s %s %v", client, line, r.Host, r.Header))
		h.mu.Unlock()
		http.Error(w, "no secret", http.StatusUnauthorized)
		return
	}
	h.came[client] = append(h.came[client], line)
	if h.goOn[client] == nil {
		h.goOn[client] = make(chan struct{})
	}
	next := h.goOn[client]
	h.mu.Unlock()
	switch path {
	case "plain":
		fmt.Fprintf(w, "%s %s%s", r.Proto, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
	case "go-on":
		h.mu.Lock()
		defer h.mu.Unlock()
		close(next)
		delete(h.goOn, client)
	case "v1/chat/completions", "v1/messages":
		streamAnswer(w, r, next, path == "v1/messages")
	case "upload":
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d %x %v%s", n, sum.Sum(nil), err, r.Header.Get("Expect"))
	case "trailers":
		w.Header().Set("Trailer", "X-Sum")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s then %s", body, r.Trailer.Get("X-After"))
		w.Header().Set("X-Sum", fmt.Sprint(len(body)))
	case "too-much":
		sayTooMuch(w, h.secrets["openai"])
	case "socket":
		serveSocket(w, r)
	case "Unary", "Many", "Sum", "Both", "Fails":
		serveGRPC(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// sayTooMuch answers with more than it says, and ends: what comes behind is nobody's answer.
func sayTooMuch(w http.ResponseWriter, more string) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi%s", more)
	_ = both.Flush()
}

// streamAnswer answers as a model does, in events. It says the second only when the client
// has told that it has the first: an answer that is held back never ends.
func streamAnswer(w http.ResponseWriter, r *http.Request, next <-chan struct{}, messages bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		fmt.Fprint(w, text)
		w.(http.Flusher).Flush()
	}
	word := func(s string) string {
		return fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":null}]}\n\n", s)
	}
	end := "data: [DONE]\n\n"
	if messages {
		say("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
		word = func(s string) string {
			return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", s)
		}
		end = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	}
	say(word("one"))
	select {
	case <-next:
	case <-r.Context().Done():
		return
	}
	say(word(" two"))
	say(end)
}
