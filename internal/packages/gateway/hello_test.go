package gateway_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
)

// TestAWholeClientHelloThatIsNotServedIsOnRecord, whatever else its client offers: what names another host is that
// host's refusal, and what names a registry and nothing that it speaks is no request. The control is served.
func TestAWholeClientHelloThatIsNotServedIsOnRecord(t *testing.T) {
	for offer, config := range map[string]*tls.Config{
		"all":              {},
		"only h2":          {NextProtos: []string{"h2"}},
		"only TLS 1.1":     {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"no common cipher": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}},
	} {
		for _, host := range []string{"evil.example", indexHost} {
			t.Run(offer+" to "+host, func(t *testing.T) {
				b := newBench(t, nil)
				near, far := net.Pipe()
				served := make(chan struct{})
				go func() {
					defer close(served)
					b.gateway.ServeRegistry(far, sandboxA)
				}()
				config := config.Clone()
				config.ServerName, config.InsecureSkipVerify = host, true
				err := tls.Client(near, config).Handshake()
				go func() { _, _ = io.Copy(io.Discard, near) }() // what else is said
				_ = near.Close()
				<-served
				_ = b.gateway.Close() // all is told by then
				b.door.mu.Lock()
				defer b.door.mu.Unlock()
				all := ""
				for _, f := range b.door.failures {
					all += f.Reason + "\n"
				}
				for _, e := range b.door.log {
					if !strings.HasPrefix(e, "failed ") { // which is one of those
						all += e + "\n"
					}
				}
				want := "offers nothing that it speaks"
				switch control := offer == "all" && host == indexHost; {
				case control != (err == nil):
					t.Fatalf("the handshake: %v", err)
				case control:
					return
				case host != indexHost:
					want = host
				}
				if strings.Count(all, "\n") != 1 || !strings.Contains(all, want) {
					t.Errorf("on record is %q, want one with %q", all, want)
				}
			})
		}
	}
}
