package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httpqueue"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// framed is a client's connection over HTTP/2 to a server with a handler, as the daemon has it.
func framed(t *testing.T, handler http.HandlerFunc) *http2.Framer {
	t.Helper()
	d := withConfig(t, config.Listen{Address: "127.0.0.1:0", TLS: config.TLS{Auto: true}, Names: []string{"api.example"}})
	config, err := d.serverTLS(t.Context())
	must(t, err)
	ca, err := os.ReadFile(d.opts.Paths.APICA())
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	l := listen(t)
	start(t, secure(l, config, quiet()), handler)
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "api.example", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it may have been ended already
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	must(t, framer.WriteSettings())
	return framer
}

// TestAClientOverHTTP2SendsNoMoreThanIsCounted: a server grants each request as much of a body that nobody reads as
// its request takes of its token's room, and no more.
func TestAClientOverHTTP2SendsNoMoreThanIsCounted(t *testing.T) {
	framer := framed(t, func(http.ResponseWriter, *http.Request) {})
	window := int64(1<<16 - 1) // unless it is said
	for {
		f, err := framer.ReadFrame()
		must(t, err)
		settings, ok := f.(*http2.SettingsFrame)
		if !ok {
			continue
		}
		if said, ok := settings.Value(http2.SettingInitialWindowSize); ok {
			window = int64(said)
		}
		if window > backend.ReceiveBuffer || window < 16<<10 {
			t.Errorf("it grants %d bytes, and %d are counted", window, backend.ReceiveBuffer)
		}
		return
	}
}

// TestRequestsThatAreTakenBackHaveAnEnd: a client without a token asks and takes it back, while the
// handlers of that are still busy. The frames that then wait are bounded: the connection ends. One that stays
// within the bound is served on; and TLS is known to the handler as before.
func TestRequestsThatAreTakenBackHaveAnEnd(t *testing.T) {
	const fits = waitingRoom / httpqueue.HeadCost
	for name, c := range map[string]struct {
		asks int
		ends bool
	}{
		"within": {maxStreams + fits - 10, false},
		"beyond": {maxStreams + fits + 50, true}, // the server itself would end it at 4 times maxStreams
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			framer := framed(t, func(w http.ResponseWriter, r *http.Request) {
				<-gate
				if r.TLS == nil || r.ProtoMajor != 2 {
					w.WriteHeader(http.StatusTeapot)
				}
			})
			var block bytes.Buffer
			for _, field := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "a.example"}} {
				must(t, hpack.NewEncoder(&block).WriteField(field))
			}
			stream, over := uint32(1), error(nil)
			ask := func() {
				over = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
			}
			for i := 0; i < c.asks && over == nil; i++ {
				if ask(); over == nil {
					over = framer.WriteRSTStream(stream, http2.ErrCodeCancel)
				}
				stream += 2
			}
			if c.ends {
				for over == nil {
					_, over = framer.ReadFrame()
				}
				close(gate)
				return
			}
			close(gate)
			must(t, over)
			ask()
			must(t, over)
			for {
				f, err := framer.ReadFrame()
				must(t, err)
				if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamID == stream {
					if status := h.PseudoValue("status"); status != "200" {
						t.Errorf("answered %s", status)
					}
					return
				}
			}
		})
	}
}
