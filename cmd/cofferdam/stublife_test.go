package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// stubManager is what the real API speaks to in the tests: boxes whose inside is
// processes and files of this machine, and a few events.
type stubManager struct{ *backendtest.Life }

func (stubManager) Settle(context.Context, string) error { return nil }

// Prove has a control that failed, of which the probe wrote to the terminal.
func (m stubManager) Prove(_ context.Context, id string) (attest.Report, error) {
	if _, err := m.Get(id); err != nil {
		return attest.Report{}, err
	}
	return attest.Report{Sandbox: id, Twin: "sb-twin", Engine: "stub", Template: "plain", Controls: []attest.Control{
		{Name: "clock", Outcome: attest.Proved, Tried: "set it", Says: "operation not permitted"},
		{Name: "memory limit", Outcome: attest.NotApplicable, Tried: "use more", Says: "it is not enforced here: no groups"},
		{Name: "raw sockets", Outcome: attest.Failed, Tried: "make some", Says: "a raw\x1b[2J socket was made"},
	}}, nil
}

func (stubManager) PolicyText(digest string) ([]byte, error) {
	return nil, fault.New(fault.ErrNotFound, "the policy %s is not kept", digest)
}

// Events implements backend.Sandboxes: three of a sandbox that is no more.
func (stubManager) Events(ctx context.Context, after int64) (<-chan sandbox.Event, error) {
	out := make(chan sandbox.Event)
	go func() {
		defer close(out)
		for i, to := range []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Destroyed} {
			e := sandbox.Event{Seq: int64(i) + 1, Time: time.Unix(1_800_000_000, 0), Sandbox: "sb0", Run: "r0", To: to, Reason: "why\x1b[31m"}
			if e.Seq <= after {
				continue
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
		<-ctx.Done()
	}()
	return out, nil
}

// life is the real API over that, on the Unix socket and, with tokens, over TCP.
func (d *stubDaemon) life() (http.Handler, error) {
	book, err := token.Open(context.Background(), tokentest.NewMemory(), nil)
	if err != nil {
		return nil, err
	}
	named, err := namedpolicy.Open(filepath.Join(d.paths.State, "named"), book.Users)
	if err != nil {
		return nil, err
	}
	over, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	inside := filepath.Join(d.paths.State, "inside")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		return nil, err
	}
	h := httpapi.New(httpapi.Config{
		Sandboxes: stubManager{backendtest.NewLife(inside)}, Log: &approvaltest.Log{}, Tokens: book, Policies: named,
		Version: api.Version{Version: "stub", PID: os.Getpid(), State: "STATE", URL: "http://" + over.Addr().String()},
		Stop: func(bool) error {
			time.AfterFunc(100*time.Millisecond, func() { os.Exit(0) }) // when the answer is out
			return nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	go func() { _ = (&http.Server{Handler: h}).Serve(over) }()
	return h, nil
}

// Attach implements backend.Sandboxes: what the client sends reaches the process.
func (m stubManager) Attach(ctx context.Context, id, command string, offset int64) (net.Conn, error) {
	conn, err := m.Life.Attach(ctx, id, command, offset)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		for frames := channel.NewReader(r); ; {
			kind, payload, err := frames.ReadFrame()
			if err != nil {
				return
			}
			_ = m.Send(context.Background(), id, command, kind, payload) // it may have ended
		}
	}()
	return &stubAttachment{Conn: conn, input: w}, nil
}

type stubAttachment struct {
	net.Conn

	input *io.PipeWriter
}

func (a *stubAttachment) Write(p []byte) (int, error) { return a.input.Write(p) }

func (a *stubAttachment) CloseWrite() error { return a.input.Close() }

func (a *stubAttachment) Close() error {
	_ = a.input.Close()
	return a.Conn.Close()
}
