package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"
)

// TestAConnectionIsOverWhenItsRecordIsMade: who waits for the end of a sandbox's connections waits for what is recorded of
// them as well, which the server does after it has closed one.
func TestAConnectionIsOverWhenItsRecordIsMade(t *testing.T) {
	for range 20 {
		b := newBench(t, nil)
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.gateway.ServeRegistry(slowToClose{far}, sandboxA)
		}()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(b.door.caPEM)
		session := tls.Client(near, &tls.Config{ServerName: indexHost, RootCAs: roots, MinVersion: tls.VersionTLS12})
		go func() {
			_, _ = io.WriteString(session, "GET /simple/")
			_ = session.Close()
			_ = near.Close()
		}()
		<-served
		if all := b.door.Failures(); len(all) != 1 {
			t.Fatalf("on record is %+v", all)
		}
	}
}

// slowToClose is a connection that takes its time to close.
type slowToClose struct{ net.Conn }

// Close implements net.Conn.
func (c slowToClose) Close() error {
	err := c.Conn.Close()
	<-time.After(time.Millisecond)
	return err
}
