package egress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// sendFields sends one request of HTTP/2 with these fields on a connection whose TLS is ended
// outside, waits for what the server says to it, and closes the connection.
func sendFields(t *testing.T, e *end, fields []hpack.HeaderField) {
	t.Helper()
	conn, problem := e.opens(t, "sb-1")
	if problem != "" {
		t.Fatal(problem)
	}
	config := e.tls.Clone()
	config.NextProtos = []string{"h2"}
	c := tls.Client(conn, config)
	defer c.Close()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSize(0)
	for _, f := range fields {
		if err := enc.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	all := block.Bytes()
	n := min(len(all), 16_000)
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: all[:n], EndStream: true, EndHeaders: n == len(all)}); err != nil {
		t.Fatal(err)
	}
	for all = all[n:]; len(all) > 0; all = all[n:] {
		n = min(len(all), 16_000)
		if err := f.WriteContinuation(1, n == len(all), all[:n]); err != nil {
			t.Fatal(err)
		}
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame.(type) {
		case *http2.MetaHeadersFrame, *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return
		}
	}
}

// TestWhatHTTP2AnswersByItselfIsOnRecord: the server answers fields that it does not take, and
// hands nobody the request; the record says that there was one. The control is passed on, and
// has none.
func TestWhatHTTP2AnswersByItselfIsOnRecord(t *testing.T) {
	base := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/good/x"}, {Name: ":authority", Value: "api.example"}}
	var long []hpack.HeaderField
	for i := range 45 {
		long = append(long, hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("{", 2_000)})
	}
	for name, c := range map[string]struct {
		fields []hpack.HeaderField
		passes bool
	}{
		"control":           {base, true},
		"connection":        {append(slices.Clone(base), hpack.HeaderField{Name: "connection", Value: "close"}), false},
		"transfer-encoding": {append(slices.Clone(base), hpack.HeaderField{Name: "transfer-encoding", Value: "chunked"}), false},
		"upgrade":           {append(slices.Clone(base), hpack.HeaderField{Name: "upgrade", Value: "h2c"}), false},
		"te":                {append(slices.Clone(base), hpack.HeaderField{Name: "te", Value: "gzip"}), false},
		"too long":          {append(slices.Clone(base), long...), false},
		"upper case":        {append(slices.Clone(base), hpack.HeaderField{Name: "X-Upper", Value: "a"}), false},
		"no method":         {base[1:], false},
		"no path":           {slices.Concat(base[:2], base[3:]), false},
		"two paths":         {append(slices.Clone(base), base[2]), false},
		"a path of nothing": {append(slices.Clone(base[:2]), hpack.HeaderField{Name: ":path", Value: ""}, base[3]), false},
		"CONNECT":           {[]hpack.HeaderField{{Name: ":method", Value: "CONNECT"}, {Name: ":path", Value: "/"}, base[3]}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := &seen{}
			e := endAt(t, got, "api.example")
			sendFields(t, e, c.fields)
			if c.passes {
				e.door.until(t, "the end", func() bool { return len(e.door.ended) > 0 })
				if len(got.all()) != 1 || len(e.door.rejected) != 0 {
					t.Errorf("the host saw %q, on record is %q", got.all(), e.door.rejected)
				}
				return
			}
			e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })
			if len(got.all()) != 0 {
				t.Errorf("the host saw %q", got.all())
			}
		})
	}
}

// TestWhatHTTP1AnswersByItselfIsOnRecord: the same of HTTP/1, to hosts and to the tools' name.
func TestWhatHTTP1AnswersByItselfIsOnRecord(t *testing.T) {
	for name, said := range map[string]string{
		"garbage":              "\x00\x01\x02\r\n\r\n",
		"no version":           "GET /\r\n\r\n",
		"another version":      "GET / HTTP/9.9\r\nHost: api.example\r\n\r\n",
		"no host":              "GET / HTTP/1.1\r\n\r\n",
		"two hosts":            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"a field without name": "GET / HTTP/1.1\r\nHost: api.example\r\n: x\r\n\r\n",
		"an unknown encoding":  "POST / HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: x\r\n\r\n",
		"an expectation":       "GET / HTTP/1.1\r\nHost: api.example\r\nExpect: x\r\n\r\n",
		"too long":             "GET / HTTP/1.1\r\nHost: api.example\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"all of it":            "OPTIONS * HTTP/1.1\r\nHost: api.example\r\n\r\n",
		"half a head":          "DELETE /admin HTTP/1.1\r\nHost: api",
		"HTTP/2's preface":     http2.ClientPreface,
	} {
		t.Run(name, func(t *testing.T) {
			got := &seen{}
			e := endAt(t, got, "api.example")
			conn, problem := e.opens(t, "sb-1")
			if problem != "" {
				t.Fatal(problem)
			}
			config := e.tls.Clone()
			config.NextProtos = []string{"http/1.1"}
			sayAndClose(t, tls.Client(conn, config), said)
			e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })

			d := &toolDoor{}
			dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
			tools := dial()
			if r := open(t, tools, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: channel.ToolsHost, Port: 80}); !r.OK {
				t.Fatal(r.Error)
			}
			sayAndClose(t, tools, said)
			d.until(t, "the record of the tools' name", func() bool { return len(d.calls) > 0 })
		})
	}
}

// sayAndClose says something on a connection, and closes it once it is answered, or said.
func sayAndClose(t *testing.T, conn net.Conn, said string) {
	t.Helper()
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_, _ = io.WriteString(conn, said) // what is too long is answered before it is read
	}()
	if strings.HasSuffix(said, "Host: api") { // which nobody answers
		<-ctx.Done()
		return
	}
	_, _ = conn.Read(make([]byte, 1))
}
