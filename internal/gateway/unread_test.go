package gateway_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/gateway"
)

// TestUnreadDownloadsEnd: a guest that reads nothing any more, and stays, is not waited for, and that
// is on record.
func TestUnreadDownloadsEnd(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.UnreadTime = 50 * time.Millisecond })
	big := pypitest.Wheel(t, "big", "1.0")
	big.Bytes = wheelOf(t, "big-1.0.dist-info/", [][2]string{
		{"big-1.0.dist-info/METADATA", string(big.Metadata)},
		{"big-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n"},
		{"noise", randomText(8 << 20)},
	})
	b.publish(big)
	resp, err := b.client(sandboxA).Get("https://files.example/p/" + big.File)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b.eventually("the abort is recorded", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.aborted) == 1 && b.door.aborted[0] < int64(len(big.Bytes))
	})
}

// crampedConn is of a sandbox that has so much memory left.
type crampedConn struct {
	net.Conn
	left *atomic.Int64
}

func (c crampedConn) Take(bytes int64) bool {
	if c.left.Add(-bytes) < 0 {
		c.left.Add(bytes)
		return false
	}
	return true
}

func (c crampedConn) Give(bytes int64) { c.left.Add(bytes) }

// TestAnswersTakeTheSandboxsMemory: a page for which there is no room is refused with that, and one
// for which there is gives it back.
func TestAnswersTakeTheSandboxsMemory(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "foo", "1.0"))
	for room, status := range map[int64]int{100: http.StatusServiceUnavailable, 1 << 20: http.StatusOK} {
		var left atomic.Int64
		left.Store(room)
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.gateway.ServeRegistry(crampedConn{far, &left}, sandboxA)
		}()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(b.door.caPEM)
		conn := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: "index.example", MinVersion: tls.VersionTLS12})
		if _, err := io.WriteString(conn, "GET /simple/foo/ HTTP/1.1\r\nHost: index.example\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || (status != http.StatusOK) != strings.Contains(string(body), "(rule quota.gateway_memory)") {
			t.Errorf("room for %d bytes: %d %s %v", room, answer.StatusCode, body, err)
		}
		_ = answer.Body.Close()
		_ = conn.Close()
		<-served
		if left.Load() != room {
			t.Errorf("of %d bytes %d are left", room, left.Load())
		}
	}
}
