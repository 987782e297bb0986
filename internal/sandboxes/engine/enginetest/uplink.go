package enginetest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// uplinkOf is where a keeper brings guests' streams.
func uplinkOf(socket string) string { return filepath.Join(filepath.Dir(socket), "uplink") }

// uplink takes the streams that guests open, until the test ends: it agrees to
// each connection and hands it to the test, and refuses all else.
func (s *Subject) uplink(t *testing.T) <-chan net.Conn {
	t.Helper()
	path := uplinkOf(s.Socket)
	_ = os.Remove(path) // of an earlier test
	listener, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	streams := make(chan net.Conn, 8)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			go agreeOnWire(t, raw, streams)
		}
	}()
	return streams
}

func agreeOnWire(t *testing.T, raw net.Conn, streams chan<- net.Conn) {
	t.Helper()
	conn := channel.NewConn(raw)
	t.Cleanup(func() { _ = raw.Close() })
	if _, _, err := conn.ReadFrame(); err != nil { // the identity
		return
	}
	var open channel.Open
	if err := conn.ReadJSON(channel.FrameOpen, &open); err != nil {
		return
	}
	if open.Kind != channel.OpenTCP {
		_ = conn.WriteJSON(channel.FrameReply, channel.Reply{Error: "only connections here"})
		return
	}
	if conn.WriteJSON(channel.FrameReply, channel.Reply{OK: true}) == nil {
		streams <- raw
	}
}
