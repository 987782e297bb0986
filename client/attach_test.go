package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const attachRoute = "GET /v1/sandboxes/s/commands/c/attach"

// read collects an attachment's events as text.
func read(a *client.Attachment) (events []string, failure error) {
	for e, err := range a.Events() {
		switch {
		case err != nil:
			return events, err
		case e.Exit != nil:
			events = append(events, fmt.Sprintf("exit %d", e.Exit.Code))
		case e.Gap > 0:
			events = append(events, fmt.Sprintf("gap %d", e.Gap))
		case e.Stdout != nil:
			events = append(events, "out "+string(e.Stdout))
		default:
			events = append(events, "err "+string(e.Stderr))
		}
	}
	return events, nil
}

func TestAttachmentOutput(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(offset string, _ *channel.Reader, out *channel.Writer, _ net.Conn) {
		_ = out.WriteFrame(channel.FrameStarted, []byte(`{"pid":1}`)) // nothing to a client
		_ = out.WriteFrame(channel.FrameStdout, []byte("at "+offset))
		_ = out.WriteFrame(channel.FrameStderr, []byte("oops"))
		_ = out.WriteJSON(channel.FrameGap, channel.Gap{Bytes: 100})
		_ = out.WriteFrame(channel.FrameStdout, bytes.Repeat([]byte("x"), channel.MaxPayload))
		_ = out.WriteJSON(channel.FrameExit, channel.Exit{Code: 7})
	})})
	a, err := c.Attach(t.Context(), "s", "c", 42)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	got, err := read(a)
	want := []string{"out at 42", "err oops", "gap 100", "out " + strings.Repeat("x", channel.MaxPayload), "exit 7"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if want := int64(42 + 5 + 4 + 100 + channel.MaxPayload); a.Offset() != want {
		t.Errorf("offset %d, want %d", a.Offset(), want)
	}
}

func TestAttachmentInput(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(_ string, in *channel.Reader, out *channel.Writer, _ net.Conn) {
		for {
			kind, payload, err := in.ReadFrame()
			if err != nil {
				return
			}
			got <- fmt.Sprintf("%d %d %.40s", kind, len(payload), payload)
			if kind == channel.FrameSignal {
				_ = out.WriteJSON(channel.FrameExit, channel.Exit{})
			}
		}
	})})
	a, err := c.Attach(t.Context(), "s", "c", 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := a.Write(bytes.Repeat([]byte("i"), channel.MaxPayload+1))
	if n != channel.MaxPayload+1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := a.Write(nil); n != 0 || err != nil { // must not look like the end
		t.Fatal(n, err)
	}
	if err := errors.Join(a.CloseInput(), a.Resize(24, 80), a.Signal("INT")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 65536 " + strings.Repeat("i", 40), "3 1 i", "3 0 ", `7 21 {"rows":24,"cols":80}`, `8 14 {"name":"INT"}`,
	} {
		if line := <-got; line != want {
			t.Errorf("the daemon got %q, want %q", line, want)
		}
	}
	if events, err := read(a); err != nil || len(events) != 1 {
		t.Error(events, err)
	}
	_ = a.Close()
	if _, err := a.Write([]byte("late")); !errors.Is(err, client.ErrLost) {
		t.Errorf("after Close: %v", err)
	}
}

// TestAttachmentLost: whatever ends the connection before the command is
// ErrLost, and the offset is where to go on.
func TestAttachmentLost(t *testing.T) {
	t.Parallel()
	cut := make([]byte, channel.HeaderSize+3)
	cut[0] = byte(channel.FrameStdout)
	binary.BigEndian.PutUint32(cut[1:], 10)
	for name, tail := range map[string][]byte{"between frames": nil, "in a header": {4, 0}, "in a payload": cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(_ string, _ *channel.Reader, out *channel.Writer, conn net.Conn) {
				_ = out.WriteFrame(channel.FrameStdout, []byte("hello"))
				_, _ = conn.Write(tail)
			})})
			a, err := c.Attach(t.Context(), "s", "c", 0)
			if err != nil {
				t.Fatal(err)
			}
			if events, err := read(a); !errors.Is(err, client.ErrLost) || len(events) != 1 || a.Offset() != 5 {
				t.Errorf("%v, %v, offset %d", events, err, a.Offset())
			}
		})
	}
}

// TestAttachmentNonsense: what is no frame is an error, and no reason to try
// again.
func TestAttachmentNonsense(t *testing.T) {
	t.Parallel()
	frame := func(kind byte, size uint32, payload string) []byte {
		b := binary.BigEndian.AppendUint32([]byte{kind}, size)
		return append(b, payload...)
	}
	for name, bad := range map[string][]byte{
		"too long":         frame(4, channel.MaxPayload+1, ""),
		"a negative gap":   frame(9, 12, `{"bytes":-1}`),
		"a gap of nothing": frame(9, 1, `x`),
		"an exit of text":  frame(6, 4, `gone`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(_ string, in *channel.Reader, _ *channel.Writer, conn net.Conn) {
				_, _ = conn.Write(bad)
				_, _, _ = in.ReadFrame() // until the client is gone
			})})
			a, err := c.Attach(t.Context(), "s", "c", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			if events, err := read(a); err == nil || errors.Is(err, client.ErrLost) {
				t.Errorf("%v, %v", events, err)
			}
		})
	}
}

func TestAttachRefused(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{
		attachRoute: refusal(http.StatusNotFound, "there is no sandbox s"),
		"GET /v1/sandboxes/other/commands/c/attach": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Upgrade", "websocket")
			upgraded(func(string, *channel.Reader, *channel.Writer, net.Conn) {})(w, r)
		},
		"GET /v1/sandboxes/rude/commands/c/attach": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	})
	if _, err := c.Attach(t.Context(), "s", "c", 0); client.StatusOf(err) != http.StatusNotFound || err.Error() != "there is no sandbox s" {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := c.Attach(t.Context(), "other", "c", 0); err == nil || errors.Is(err, client.ErrLost) {
		t.Errorf("another protocol: %v", err)
	}
	if _, err := c.Attach(t.Context(), "rude", "c", 0); !errors.Is(err, client.ErrLost) {
		t.Errorf("no answer: %v", err)
	}
}

func TestContextEndsAnAttachment(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(_ string, in *channel.Reader, out *channel.Writer, _ net.Conn) {
		_ = out.WriteFrame(channel.FrameStdout, []byte("ready"))
		_, _, _ = in.ReadFrame()
	})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, err := c.Attach(ctx, "s", "c", 0)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range a.Events() {
		if err != nil {
			if !errors.Is(err, client.ErrLost) {
				t.Errorf("error: %v", err)
			}
			return
		}
		if string(e.Stdout) == "ready" {
			cancel()
		}
	}
}

// TestExitIsWhole: the wire's exit, as the keeper writes it, arrives in every
// field.
func TestExitIsWhole(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{attachRoute: upgraded(func(_ string, _ *channel.Reader, out *channel.Writer, _ net.Conn) {
		_ = out.WriteJSON(channel.FrameExit, channel.Exit{
			Code: 137, Signal: "KILL", TimedOut: true, Error: "e", StdoutBytes: 1, StderrBytes: 2, Truncated: true,
		})
	})})
	a, err := c.Attach(t.Context(), "s", "c", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := api.Exit{Code: 137, Signal: "KILL", TimedOut: true, Error: "e", StdoutBytes: 1, StderrBytes: 2, Truncated: true}
	for e, err := range a.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, e.Exit); diff != "" {
			t.Error(diff)
		}
	}
}
