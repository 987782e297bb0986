package guest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestAClientThatGoesIsToldOf: the host is told of a client that closes its
// connection before it has all that is sent, and not of one that only has no
// more to say.
func TestAClientThatGoesIsToldOf(t *testing.T) {
	var asked atomic.Int64
	var mu sync.Mutex
	streams := map[string]*channel.Conn{}
	hungUp := make(chan string, 10)
	world := worldOf(map[string][]int{"endless.example": {8443}, "echo.example": {8443}}, &asked)
	a := startBare(t, func(open channel.Open, stream *channel.Conn) channel.Reply {
		switch {
		case open.Kind == channel.OpenHangUp:
			mu.Lock()
			defer mu.Unlock()
			if of := streams[open.Stream]; of != nil {
				_ = of.Raw().Close()
			}
			hungUp <- open.Stream
			return channel.Reply{OK: true}
		case open.Kind == channel.OpenTCP && open.Name == "endless.example":
			mu.Lock()
			streams["s-1"] = stream
			mu.Unlock()
			_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Text: "s-1"})
			for noise := make([]byte, 64<<10); ; {
				if _, err := stream.Raw().Write(noise); err != nil {
					return channel.Reply{}
				}
			}
		case open.Kind == channel.OpenTCP:
			return channel.Reply{OK: true, Text: "s-2"}
		}
		return world(open, stream)
	})
	dial := func(name string) *net.TCPConn {
		reply := a.query("udp", message(name, dns.TypeA))
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", reply.Answer[0].(*dns.A).A.String()+":8443")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.TCPConn)
	}
	polite := dial("echo.example")
	if _, err := polite.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := polite.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := polite.Read(make([]byte, 100)); n != 5 || err != nil {
		t.Fatalf("%d bytes came back: %v", n, err)
	}
	leaving := dial("endless.example")
	if _, err := leaving.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := leaving.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-hungUp:
		if id != "s-1" {
			t.Errorf("the host was told of %q", id)
		}
	case <-t.Context().Done():
		t.Fatal("the host was told nothing")
	}
	if len(hungUp) != 0 {
		t.Errorf("the host was also told of %q", <-hungUp)
	}
}
