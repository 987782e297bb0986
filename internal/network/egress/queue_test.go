package egress_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// asker asks over HTTP/2, frame by frame.
type asker struct {
	t      *testing.T
	framer *http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
	stream uint32
}

func newAsker(t *testing.T, conn io.ReadWriter) *asker {
	t.Helper()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	a := &asker{t: t, framer: http2.NewFramer(conn, conn), stream: 1}
	a.enc = hpack.NewEncoder(&a.block)
	a.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := a.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return a
}

// ask makes a request. The error is that the connection is over.
func (a *asker) ask() error {
	a.block.Reset()
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: http.MethodGet}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/good/x"}, {Name: ":authority", Value: "api.example"},
	} {
		_ = a.enc.WriteField(field) // to memory
	}
	err := a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: a.stream, BlockFragment: a.block.Bytes(), EndHeaders: true, EndStream: true})
	a.stream += 2
	return err
}

// takeBack takes the last request back.
func (a *asker) takeBack() error {
	return a.framer.WriteRSTStream(a.stream-2, http2.ErrCodeCancel)
}

// TestRequestsThatWaitTakeMemory: requests that a client has made and taken back wait, heads and
// all, while the handlers of others are busy, and no handler is told of them. They come out of the
// sandbox's memory. With enough of it nothing happens, and what was taken is given back.
func TestRequestsThatWaitTakeMemory(t *testing.T) {
	for name, c := range map[string]struct {
		memory  int64
		refused bool
	}{
		"more than there is": {16 << 20, true},
		"less than there is": {128 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := endLimited(t, egress.Limits{Memory: c.memory, Connects: 1000, Opens: 1000}, judgedDocument, http.NotFoundHandler(), "api.example")
			gate := make(chan struct{})
			e.door.gate = gate
			config := e.tls.Clone()
			config.NextProtos = []string{"h2"}
			conn, problem := e.opens(t, "sb-1")
			if problem != "" {
				t.Fatal(problem)
			}
			defer conn.Close()
			a := newAsker(t, tls.Client(conn, config))
			var over error
			for range 200 { // fewer than net/http itself would end it for
				if over = a.ask(); over == nil {
					over = a.takeBack()
				}
				if over != nil {
					break
				}
			}
			if c.refused {
				waitUntil(t, "a refusal is on record", e.refusedMemory)
				close(gate)
			} else {
				close(gate)
				if over != nil {
					t.Fatal(over)
				}
				if err := a.ask(); err != nil {
					t.Fatal(err)
				}
				for last := a.stream - 2; ; {
					f, err := a.framer.ReadFrame()
					if err != nil {
						t.Fatal(err)
					}
					if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamID == last {
						break
					}
				}
				if e.refusedMemory() {
					t.Error("something was refused")
				}
			}
			waitUntil(t, "there is room again", func() bool {
				next, problem := e.opens(t, "sb-1")
				defer next.Close()
				return problem == ""
			})
		})
	}
}
