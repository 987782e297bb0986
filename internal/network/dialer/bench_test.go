package dialer_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
)

// BenchmarkDial is what a connection costs on loopback, made by oneself and handed over.
func BenchmarkDial(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	ours, theirs, err := dialer.Pair()
	if err != nil {
		b.Fatal(err)
	}
	at := l.Addr().String()
	go func() {
		_ = dialer.Serve(b.Context(), ours, dialer.Allowed{Pins: []dialer.Pin{{At: netip.MustParseAddrPort(at)}}}, nil)
	}()
	c, err := dialer.NewClient(theirs)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.Run("itself", func(b *testing.B) {
		for b.Loop() {
			conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", at)
			if err != nil {
				b.Fatal(err)
			}
			_ = conn.Close()
		}
	})
	b.Run("handed", func(b *testing.B) {
		for b.Loop() {
			conn, err := c.DialContext(b.Context(), "tcp", at)
			if err != nil {
				b.Fatal(err)
			}
			_ = conn.Close()
		}
	})
}
