package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
)

// TestACommandThatStartsWhileItsSSHClientGoesIsHungUp: the daemon's answer is on its way when the server's
// context ends, as it does when ssh ends its proxy. The command is returned all the same, so that the
// server hangs it up; else it would run on with nobody there. The control is a client that stays.
func TestACommandThatStartsWhileItsSSHClientGoesIsHungUp(t *testing.T) {
	for name, goes := range map[string]bool{"the client stays": false, "the client goes": true} {
		t.Run(name, func(t *testing.T) {
			asked, answered, signals := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
			mux := http.NewServeMux()
			mux.HandleFunc("POST /v1/sandboxes/sb1/commands", func(w http.ResponseWriter, _ *http.Request) {
				close(asked)
				<-answered
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(`{"id":"cmd-1","argv":["x"],"started":"2026-11-26T10:00:00Z"}`))
			})
			mux.HandleFunc("POST /v1/sandboxes/sb1/commands/cmd-1/signal", func(w http.ResponseWriter, _ *http.Request) {
				signals <- struct{}{}
				w.WriteHeader(http.StatusNoContent)
			})
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: mux}
			go func() { _ = server.Serve(listener) }()
			defer server.Close()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			go func() {
				<-asked
				if goes {
					leave()
				}
				close(answered)
			}()
			process, err := newSSHSandbox(client.New(socket), "sb1").Start(ctx, sshserver.Command{Argv: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatalf("the daemon has started the command, and nobody follows it or ends it: %v", err)
			}
			if !goes {
				return
			}
			in, _ := io.Pipe()
			if _, err := process.Follow(ctx, in, io.Discard, io.Discard); err == nil {
				t.Error("it is followed")
			}
			process.HangUp(ctx) // as the server does then
			<-signals
		})
	}
}
