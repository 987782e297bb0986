package channel

import (
	"io"
	"net"
	"testing"
)

// tcpPair is a connection over loopback.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), other.Close() })
	return conn.(*net.TCPConn), other.(*net.TCPConn)
}

// TestSpliceTellsThatTheClientHasGone, and only then.
func TestSpliceTellsThatTheClientHasGone(t *testing.T) {
	for name, c := range map[string]struct {
		client func(*net.TCPConn) // after it has read a little
		gone   bool
	}{
		"closes with bytes unread": {func(c *net.TCPConn) { _ = c.Close() }, true},
		"resets": {func(c *net.TCPConn) {
			_ = c.SetLinger(0)
			_ = c.Close()
		}, true},
		"half-closes and reads on": {func(c *net.TCPConn) {
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, near := tcpPair(t)
			server, far := tcpPair(t)
			gone := make(chan struct{}, 2)
			done := make(chan struct{})
			go func() {
				defer close(done)
				Splice(NewConn(near), NewConn(far), func() {
					gone <- struct{}{}
					_ = server.Close() // as a host does that is told
				})
			}()
			go func() {
				_, _ = server.Write(make([]byte, 16<<20))
				_ = server.CloseWrite()
			}()
			if _, err := client.Read(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			c.client(client)
			if !c.gone {
				_ = client.Close()
				_ = server.Close()
			}
			<-done
			if got := len(gone) == 1; got != c.gone {
				t.Errorf("told %d times that the client has gone, want %v", len(gone), c.gone)
			}
		})
	}
}

// TestLargeBuffersAreBounded: one that is given back can be taken again.
func TestLargeBuffersAreBounded(t *testing.T) {
	t.Parallel()
	var m Memory
	var frees []func()
	for {
		free, ok := m.enlarge()
		if !ok {
			break
		}
		frees = append(frees, free)
	}
	if len(frees) != manySplices {
		t.Errorf("%d copies have large buffers", len(frees))
	}
	frees[0]()
	if _, ok := m.enlarge(); !ok {
		t.Error("what was given back can't be taken")
	}
}
