package e2b

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestVisitorsLeaveASandboxItsCalls: whoever visits a published port shows nothing, and each connection
// is one of those that the keeper has for all ports of a sandbox. Visitors have 64 of these together, also
// when they were upgraded (a WebSocket), and on whichever ports; when some have left, others come in.
func TestVisitorsLeaveASandboxItsCalls(t *testing.T) {
	s := newDataStage(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for _, port := range []int{3000, 3001} {
		s.serves(port, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = io.Copy(io.Discard, conn)
			}()
			select {
			case <-over:
			case <-gone:
			}
		})
	}
	visit := func(port int) (net.Conn, int) {
		t.Helper()
		conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %d-sb01.box.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", port); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, res.StatusCode
	}
	var let []net.Conn
	for i := range maxVisits {
		conn, status := visit(3000 + i%2)
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("the control: visitor %d is told %d", i, status)
		}
		let = append(let, conn)
	}
	for _, port := range []int{3000, 3001} {
		if _, status := visit(port); status != http.StatusTooManyRequests {
			t.Errorf("one more, of port %d, is told %d", port, status)
		}
	}
	_ = let[0].Close()
	status := 0
	for status != http.StatusSwitchingProtocols && t.Context().Err() == nil { // until the one that has left is gone
		_, status = visit(3001)
	}
}
