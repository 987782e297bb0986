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

// TestRefusedRequestsWhoseAnswersNobodyTakes: a guest gives its streams no window, and does not end its bodies. The server
// keeps each of its requests behind the refusal, and so does the sandbox's budget. A request that the guest takes back makes room.
func TestRefusedRequestsWhoseAnswersNobodyTakes(t *testing.T) {
	const streams = 30 // of 96 KiB and more each
	e := endLimited(t, egress.Limits{Memory: 2 << 20}, judgedDocument, http.NotFoundHandler(), "api.example")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config := e.tls.Clone()
	config.NextProtos = []string{"h2"}
	conn := tls.Client(to(t, e.dial(), "api.example", 443), config)
	_, err := io.WriteString(conn, http2.ClientPreface)
	must(err)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	next := uint32(1)
	// ask asks once, and returns the status.
	ask := func() string {
		block.Reset()
		for _, field := range []hpack.HeaderField{{Name: ":method", Value: http.MethodPost}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/bad/x"}, {Name: ":authority", Value: "api.example"}} {
			must(enc.WriteField(field))
		}
		must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: next, BlockFragment: block.Bytes(), EndHeaders: true}))
		must(f.WriteData(next, false, make([]byte, 1<<10)))
		next += 2
		for {
			frame, err := f.ReadFrame()
			must(err)
			if head, is := frame.(*http2.MetaHeadersFrame); is {
				return head.PseudoValue("status")
			}
		}
	}
	for range streams {
		if ask(); e.refusedMemory() {
			break
		}
	}
	if !e.refusedMemory() {
		t.Fatalf("%d requests are kept, and the budget has no more than 2 MiB", streams)
	}
	if next < 10 {
		t.Errorf("the control: %d requests are too many", next/2)
	}
	for id := uint32(1); id < next; id += 2 {
		must(f.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	waitUntil(t, "there is room again", func() bool { return ask() == "403" })
}
