package httphead_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// stingy is a client over HTTP/2 that gives its streams no window.
type stingy struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
	next   uint32
}

func newStingy(t *testing.T, address string) *stingy {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &stingy{t: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request with a body that does not end.
func (c *stingy) ask(path string) (id uint32) {
	c.t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"}, {":path", path}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	id, c.next = c.next, c.next+2
	if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		c.t.Fatal(err)
	}
	if err := c.framer.WriteData(id, false, make([]byte, 1<<10)); err != nil {
		c.t.Fatal(err)
	}
	return id
}

// await reads until a frame of a stream, and returns it.
func (c *stingy) await(id uint32, kind http2.FrameType) http2.Frame {
	c.t.Helper()
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if f.Header().StreamID == id && f.Header().Type == kind {
			return f
		}
	}
}

// TestWhatIsGivenBackBehindAHandler: over HTTP/2 not before its stream is over, which a client that takes nothing does
// not put off for longer than it may.
func TestWhatIsGivenBackBehindAHandler(t *testing.T) {
	var given atomic.Int64
	for name, test := range map[string]struct {
		within time.Duration
		then   func(c *stingy, id uint32)
	}{
		"it takes the answer at last": {time.Hour, func(c *stingy, id uint32) {
			if given.Load() != 0 {
				t.Error("given back while the server keeps the request")
			}
			if err := c.framer.WriteWindowUpdate(id, 1<<10); err != nil {
				t.Fatal(err)
			}
			if f, ok := c.await(id, http2.FrameRSTStream).(*http2.RSTStreamFrame); !ok || f.ErrCode != http2.ErrCodeNo {
				t.Errorf("the stream ended with %v", f)
			}
		}},
		"it takes its request back": {time.Hour, func(c *stingy, id uint32) {
			if given.Load() != 0 {
				t.Error("given back while the server keeps the request")
			}
			if err := c.framer.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
				t.Fatal(err)
			}
		}},
		"it never takes it": {within, func(c *stingy, id uint32) {
			if f, ok := c.await(id, http2.FrameRSTStream).(*http2.RSTStreamFrame); !ok || f.ErrCode == http2.ErrCodeNo {
				t.Errorf("the stream ended with %v", f)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			given.Store(0)
			back := make(chan struct{})
			url, _ := serving(t, httphead.Behind(test.within, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer httphead.WhenOver(r.Context(), func() {
					given.Add(1)
					close(back)
				})()
				_, _ = io.WriteString(w, "an answer")
			})).ServeHTTP)
			c := newStingy(t, url[len("http://"):])
			id := c.ask("/")
			c.await(id, http2.FrameHeaders) // that are sent when the handler has returned
			test.then(c, id)
			<-back
		})
	}
}

// TestAnswersThatNobodyIsCountedForEnd, although the client takes nothing of them: in their own time, which is shorter.
func TestAnswersThatNobodyIsCountedForEnd(t *testing.T) {
	url, _ := serving(t, httphead.Behind(within, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "show a token")
	})).ServeHTTP)
	c := newStingy(t, url[len("http://"):])
	id := c.ask("/")
	if f, ok := c.await(id, http2.FrameRSTStream).(*http2.RSTStreamFrame); !ok || f.ErrCode == http2.ErrCodeNo {
		t.Errorf("the stream ended with %v", f)
	}
}

// deadlines is a writer over HTTP/2 that notes for how long from when it may be written on.
type deadlines struct {
	http.ResponseWriter
	began time.Time
	last  time.Duration
}

// SetWriteDeadline serves http.ResponseController.
func (d *deadlines) SetWriteDeadline(until time.Time) error {
	d.last = until.Sub(d.began)
	return nil
}

// TestHowLongTheRestOfAnAnswerMayTake: as long as is counted for it, and what has a place that is everybody's as long as what has none.
func TestHowLongTheRestOfAnAnswerMayTake(t *testing.T) {
	const most = time.Hour
	for name, c := range map[string]struct {
		handle func(ctx context.Context)
		want   time.Duration
	}{
		"nobody is counted": {func(context.Context) {}, httphead.Uncounted},
		"somebody is":       {func(ctx context.Context) { httphead.WhenOver(ctx, func() {})() }, most},
		"it is anybody":     {func(ctx context.Context) { httphead.WhenSoonOver(ctx, func() {})() }, httphead.Uncounted},
		"anybody, and more": {func(ctx context.Context) {
			httphead.WhenSoonOver(ctx, func() {})()
			httphead.WhenOver(ctx, func() {})()
		}, httphead.Uncounted},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &deadlines{ResponseWriter: httptest.NewRecorder(), began: time.Now()}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.ProtoMajor = 2
			httphead.Behind(most, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.handle(r.Context()) })).ServeHTTP(w, r)
			if w.last != c.want {
				t.Errorf("%s: %s, not %s", name, w.last, c.want)
			}
		})
	}
}

// TestWhatIsGivenBackLate is given back at once, when the stream is over already; and so it is over HTTP/1.
func TestWhatIsGivenBackLate(t *testing.T) {
	late := make(chan func(), 1)
	url, framed := serving(t, httphead.Behind(time.Hour, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		late <- httphead.WhenOver(r.Context(), func() { late <- nil })
	})).ServeHTTP)
	for _, client := range []*http.Client{framed, http.DefaultClient} {
		answer, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		leave := <-late
		leave()
		if got := <-late; got != nil {
			t.Error("something else was given back")
		}
	}
}

// TestWhatBeginsHTTP2IsNotOverHTTP2: net/http hands what comes on a connection over HTTP/1 and begins HTTP/2 to the handler,
// as a request of that version.
func TestWhatBeginsHTTP2IsNotOverHTTP2(t *testing.T) {
	left := make(chan string, 1)
	server := httptest.NewServer(httphead.Behind(time.Hour, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		httphead.WhenOver(r.Context(), func() { left <- r.Proto })()
	})))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if proto := <-left; proto != "HTTP/2.0" { // and before the connection ends
		t.Errorf("it is of %s", proto)
	}
}

// TestNothingIsKeptOfARequestThatWasTakenBack: a client sends as much of a body as it may, and resets the stream before the
// handler returns. Nobody counts such a request any more, so the server must not keep its body, nor anything else of it,
// until the answer's time is over.
func TestNothingIsKeptOfARequestThatWasTakenBack(t *testing.T) {
	const frame = 16 << 10
	for name, test := range map[string]struct {
		next     func(w http.ResponseWriter)
		requests int
		frames   int   // of each body, beside 1 KiB
		most     int64 // bytes that may be kept of each
	}{
		"it says nothing": {func(http.ResponseWriter) {}, 256, 3, frame},
		"it has a time of its own": {func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
		}, 256, 3, frame},
		"it breaks off":    {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 256, 3, frame},
		"it has few bytes": {func(http.ResponseWriter) {}, 8_192, 0, 256},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			url, _ := serving(t, httphead.Behind(time.Hour, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer httphead.WhenOver(r.Context(), func() { over <- struct{}{} })()
				<-r.Context().Done()
				test.next(w)
			})).ServeHTTP)
			c := newStingy(t, url[len("http://"):])
			go func() { _, _ = io.Copy(io.Discard, c.conn) }() // ends with the connection
			before := heap()
			for range test.requests {
				id := c.ask("/")
				for range test.frames {
					if err := c.framer.WriteData(id, false, make([]byte, frame)); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.framer.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
				<-over
			}
			if kept := (heap() - before) / int64(test.requests); kept > test.most {
				t.Errorf("%d bytes are kept of each request", kept)
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
