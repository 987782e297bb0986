package firecracker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// speaks makes a client of a monitor that answers each connection with what says writes to it.
func speaks(t *testing.T, says func(conn net.Conn)) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			says(conn)
			_ = conn.Close()
		}
	}()
	c, err := Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = listener.Close()
		<-over
	})
	return c
}

// answering reads a request's head, and writes a fixed answer.
func answering(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 4096)); err == nil {
			_, _ = io.WriteString(conn, text)
		}
	}
}

func answer(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// TestAnswersThatAreNone: whatever comes instead of an answer is an error that says so, and
// costs no memory.
func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"nothing":               {"", "EOF"},
		"no HTTP":               {"hello\r\n\r\n", "malformed HTTP"},
		"cut off":               {"HTTP/1.1 400 x\r\nContent-Length: 100\r\n\r\n{\"fault", "unexpected EOF"},
		"too much":              {answer(400, strings.Repeat("x", mostAnswer+1)), "more than"},
		"an endless head":       {"HTTP/1.1 204 x\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "headers exceeded"},
		"a refusal without why": {answer(400, `{"error": "no"}`), "none of Firecracker's"},
		"a refusal of no form":  {answer(500, `<html>`), "none of Firecracker's"},
		"another success":       {answer(200, `{}`), "none of Firecracker's"},
		"a redirect":            {"HTTP/1.1 302 x\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n", "none of Firecracker's"},
		"a refusal":             {answer(400, `{"fault_message": "Not so."}`), "PUT /snapshot/create: Not so."},
	} {
		t.Run(name, func(t *testing.T) {
			client := speaks(t, answering(c.says))
			err := client.Save(t.Context(), "/s", "/m")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want it to say %q", err, c.want)
			}
			refused, ok := errors.AsType[*Fault](err)
			if ok != (name == "a refusal") {
				t.Errorf("%v is a %T", err, refused)
			}
			if name == "a refusal" && (refused.Status != http.StatusBadRequest || !errors.Is(err, fault.ErrUnavailable)) {
				t.Errorf("%+v", refused)
			}
		})
	}
	t.Run("a state that is none", func(t *testing.T) {
		if _, err := speaks(t, answering(answer(200, `[]`))).State(t.Context()); err == nil || !strings.Contains(err.Error(), "can't be read") {
			t.Error(err)
		}
	})
	t.Run("a good one", func(t *testing.T) {
		if err := speaks(t, answering("HTTP/1.1 204 x\r\n\r\n")).Pause(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAMonitorThatNeverAnswers keeps nobody longer than he waits.
func TestAMonitorThatNeverAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan struct{})
	client := speaks(t, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 4096)); err == nil {
			close(heard)
			_, _ = io.Copy(io.Discard, conn)
		}
	})
	go func() {
		<-heard
		cancel()
	}()
	if err := client.Pause(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNobodyListens(t *testing.T) {
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a monitor that is not there is spoken with")
	}
}
