package daemon

import (
	"bytes"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// counting is a wire that counts requests as all do, and answers.
type counting struct {
	underway *backend.Underway
	room     *backend.Room
}

func (c counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	leave, err := c.underway.Join("ann", r)
	if err != nil {
		refuseClient(w, http.StatusTooManyRequests, err.Error())
		return
	}
	defer leave()
	ctx, giveBack := c.room.Enter(r.Context(), "ann")
	defer giveBack()
	if err := backend.Buffered(ctx, r); err != nil {
		refuseClient(w, http.StatusTooManyRequests, err.Error())
		return
	}
	_ = backend.Take(ctx, 5<<20) // for itself: nobody has any of that when it returns
	named("an answer").ServeHTTP(w, r)
}

// free is how many more requests of a token may be under way, and how many bytes they may hold.
func (c counting) free(t *testing.T) (requests, bytes int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	must(t, err)
	for {
		leave, err := c.underway.Join("ann", r)
		if err != nil {
			break
		}
		defer leave()
		requests++
	}
	ctx, leave := c.room.Enter(t.Context(), "ann")
	defer leave()
	for backend.Take(ctx, 1<<10) == nil {
		bytes += 1 << 10
	}
	return requests, bytes
}

// TestRequestsCountUntilTheirAnswersAreTaken: over HTTP/2, on each wire, of a client that gives its streams no window.
// The server keeps what it has sent of its requests, and each is one that is under way, until the answer is taken.
func TestRequestsCountUntilTheirAnswersAreTaken(t *testing.T) {
	const asks = 10
	for name, field := range map[string]hpack.HeaderField{
		wireControl: {Name: ":path", Value: "/sandboxes"}, wireV1: {Name: ":path", Value: "/v1/sandboxes"},
		wireMCP: {Name: ":path", Value: mcpPath}, wireData: {Name: ":path", Value: "/files?path=a&signature=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := counting{backend.NewUnderway(), backend.NewRoom()}
			front := newFront(t, 1e6, 1e6)
			front.wires.control, front.wires.data, front.wires.v1 = wire, wire, wire
			// as openMCP has it, with the handler that joins
			front.wires.mcp = wire.underway.Handler(func(string) (token.Token, bool) { return token.Token{}, false }, wire)
			framer := framed(t, front.handler().ServeHTTP)
			must(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for i := range uint32(asks) {
				block.Reset()
				for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a.example"}, field} {
					must(t, encoder.WriteField(f))
				}
				must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block.Bytes(), EndHeaders: true}))
				must(t, framer.WriteData(2*i+1, false, make([]byte, 11<<10)))
			}
			await := func(is func(http2.Frame) bool) {
				t.Helper()
				for n := 0; n < asks; {
					f, err := framer.ReadFrame()
					must(t, err)
					if is(f) {
						n++
					}
				}
			}
			await(func(f http2.Frame) bool { // with which the last handler has returned
				head, ok := f.(*http2.MetaHeadersFrame)
				if ok && head.PseudoValue("status") != "200" {
					t.Errorf("answered %s", head.PseudoValue("status"))
				}
				return ok
			})
			requests, room := wire.free(t)
			if requests != backend.UnderwayEach-asks || room != backend.RoomEach-asks*backend.ReceiveBuffer {
				t.Errorf("%d requests and %d bytes are free while the server keeps %d requests, each with %d bytes", requests, room, asks, backend.ReceiveBuffer)
			}
			for i := range uint32(asks) {
				must(t, framer.WriteWindowUpdate(2*i+1, 1<<16))
			}
			await(func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream })
			for requests != backend.UnderwayEach || room != backend.RoomEach { // the last is given back in a moment
				requests, room = wire.free(t)
			}
		})
	}
}
