package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestWhatHostsSayIsNotLogged: a host that says more than it was asked, with a secret in
// it, is in the log without its words.
func TestWhatHostsSayIsNotLogged(t *testing.T) {
	const secret = "canary-of-the-operator"
	before, flags, to := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(to)
	})
	said := make(lines, 10)
	setDefault(slog.New(slog.NewTextHandler(said, nil)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi%s", secret)
	}))
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	logged := said.first(t)
	if !strings.Contains(logged, "Unsolicited response received") || strings.Contains(logged, secret) {
		t.Errorf("the log has %s", logged)
	}
}

// lines gives what is written to it.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func (l lines) first(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(time.Minute):
		t.Fatal("nothing was logged")
		return ""
	}
}
