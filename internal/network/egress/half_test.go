package egress_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// sayBothAndLeave says a request, with something behind it in the same write, waits until the request is answered, and
// closes the connection.
func sayBothAndLeave(t *testing.T, conn net.Conn, request, behind string) {
	t.Helper()
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request+behind) }()
	said := make([]byte, 0, 4096)
	for !bytes.Contains(said, []byte("\r\n\r\n")) {
		n, err := conn.Read(said[len(said):cap(said)])
		if said = said[:len(said)+n]; err != nil {
			t.Fatalf("INCONCLUSIVE: the request was answered with %q (%v)", said, err)
		}
	}
	if !bytes.HasPrefix(said, []byte("HTTP/1.1 200")) {
		t.Fatalf("INCONCLUSIVE: the request was answered with %q", said)
	}
}

// TestHalfAHeadBehindARequestIsOnRecord: wherever HTTP/1 is spoken, and however the request before it is framed. The
// controls are the requests alone.
func TestHalfAHeadBehindARequestIsOnRecord(t *testing.T) {
	const half = "DELETE /adm" // at more than its first line net/http answers, though nobody is there any more
	requests := map[string]string{
		"no body": "GET /good/x HTTP/1.1\r\nHost: api.example\r\n\r\n",
		"length":  "POST /good/x HTTP/1.1\r\nHost: api.example\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
		"chunks":  "POST /good/x HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
	}
	reads := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for name, request := range requests {
		for _, behind := range []string{"", half} {
			t.Run("to a host over TLS, "+name+" "+behind, func(t *testing.T) {
				e := endAt(t, reads, "api.example")
				conn, problem := e.opens(t, "sb-1")
				if problem != "" {
					t.Fatal(problem)
				}
				config := e.tls.Clone()
				config.NextProtos = []string{"http/1.1"}
				sayBothAndLeave(t, tls.Client(conn, config), request, behind)
				brokenOff(t, e.door.fakeDoor, behind != "")
			})
			t.Run("to a host, "+name+" "+behind, func(t *testing.T) {
				at := newPlace(t)
				server := httptest.NewUnstartedServer(reads)
				_ = server.Listener.Close() // another takes its place
				server.Listener = at
				server.Start()
				t.Cleanup(server.Close)
				d := &fakeDoor{allowed: hosts()}
				dial := uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()), d)
				sayBothAndLeave(t, to(t, dial(), "api.example", 80), request, behind)
				brokenOff(t, d, behind != "")
			})
		}
	}
	t.Run("to the tools' name", func(t *testing.T) {
		d := &toolDoor{}
		dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
		conn := dial()
		if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: channel.ToolsHost, Port: 80}); !r.OK {
			t.Fatal(r.Error)
		}
		sayBothAndLeave(t, conn, "GET /tools HTTP/1.1\r\nHost: tools\r\n\r\n", half)
		d.until(t, "the record", func() bool { return len(d.calls) > 0 })
		if len(d.calls) != 1 || !strings.Contains(d.calls[0].Malformed, "broke off") {
			t.Errorf("on record is %+v", d.calls)
		}
	})
}

// TestHalfAHeadOfAClientThatLeavesIsOnRecord: one that does not wait for the answer to the request before it. The server
// gives the connection up where it can't write that, and does not look at what came behind.
func TestHalfAHeadOfAClientThatLeavesIsOnRecord(t *testing.T) {
	for _, behind := range []string{"", "D", "DELETE /admin HTTP/1.1\r\nHost: api"} {
		at := newPlace(t)
		gone := make(chan struct{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
		_ = server.Listener.Close() // another takes its place
		server.Listener = at
		server.Start()
		t.Cleanup(server.Close)
		d := &fakeDoor{allowed: hosts()}
		dial := uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()), d)
		conn := to(t, dial(), "api.example", 80)
		if _, err := io.WriteString(conn, "GET /good/x HTTP/1.1\r\nHost: api.example\r\n\r\n"+behind); err != nil {
			t.Fatal(err)
		}
		d.until(t, "the connection to the host", func() bool { return len(d.begun) > 0 })
		_ = conn.Close()
		close(gone)
		d.until(t, "the end", func() bool { return len(d.ended) > 0 && (behind == "" || len(d.rejected) > 0) })
		if (len(d.rejected) == 1) != (behind != "") {
			t.Errorf("behind %q: on record is %q", behind, d.rejected)
		}
	}
}

// brokenOff waits until the connection has ended, and tells whether its records have half a request.
func brokenOff(t *testing.T, d *fakeDoor, is bool) {
	t.Helper()
	d.until(t, "the end", func() bool { return len(d.ended) > 0 })
	if is && (len(d.rejected) != 1 || !strings.Contains(d.rejected[0], "broke off in its header")) || !is && len(d.rejected) != 0 {
		t.Errorf("on record is %q", d.rejected)
	}
}

// TestHalfAHeadOverHTTP2IsOnRecord: wherever in its frame it breaks off. The control is a whole one.
func TestHalfAHeadOverHTTP2IsOnRecord(t *testing.T) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/good/x"}, {Name: ":authority", Value: "api.example"}} {
		if err := enc.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	f := http2.NewFramer(&said, nil)
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{said.Len(), 1, 5, 9, said.Len() - 1} {
		e := endAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "api.example")
		conn, problem := e.opens(t, "sb-1")
		if problem != "" {
			t.Fatal(problem)
		}
		config := e.tls.Clone()
		config.NextProtos = []string{"h2"}
		c := tls.Client(conn, config)
		if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		frames := http2.NewFramer(c, c)
		if err := frames.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(said.Bytes()[:n]); err != nil {
			t.Fatal(err)
		}
		for answered := false; !answered; { // the whole one's answer, or that the settings were read
			frame, err := frames.ReadFrame()
			if err != nil {
				t.Fatalf("INCONCLUSIVE: %v", err)
			}
			settings, is := frame.(*http2.SettingsFrame)
			answered = frame.Header().Type == http2.FrameHeaders || n != said.Len() && is && settings.IsAck()
		}
		_ = c.Close()
		if n == said.Len() {
			e.door.until(t, "the end", func() bool { return len(e.door.ended) > 0 })
			if len(e.door.rejected) != 0 {
				t.Errorf("a whole head: %q", e.door.rejected)
			}
			continue
		}
		e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })
		if len(e.door.rejected) != 1 {
			t.Errorf("%d bytes of a head: %q", n, e.door.rejected)
		}
	}
}

// TestHalfAClientHelloIsOnRecord: of a client that has begun to say which host it means. The control has said nothing.
func TestHalfAClientHelloIsOnRecord(t *testing.T) {
	for _, n := range []int{0, 1, 20} {
		at := newPlace(t)
		d := &fakeDoor{allowed: hosts()}
		dial := uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()), d)
		conn := to(t, dial(), "api.example", 443)
		if _, err := conn.Write([]byte("\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaa")[:n]); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if n == 0 { // another connection's record comes behind its own, if it has one
			other := to(t, dial(), "api.example", 443)
			if _, err := other.Write([]byte("\x00")); err != nil {
				t.Fatal(err)
			}
			_ = other.Close()
		}
		d.until(t, "the record", func() bool { return len(d.rejected) > 0 })
		if got := d.rejected[0]; len(d.rejected) != 1 || strings.Contains(got, "broke off") != (n > 0) {
			t.Errorf("%d bytes: %q", n, d.rejected)
		}
	}
}
