package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// shortNames are so many names of fields, as short as they can be and differ.
func shortNames(n int) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var all []string
	for i := range n {
		all = append(all, string([]byte{letters[i/(36*36)%36], letters[i/36%36], letters[i%36]}))
	}
	return all
}

// shortFields are fields of HTTP/1 without values, of about so many bytes in all: what makes the
// most of them in memory.
func shortFields(bytes int) string {
	return strings.Join(shortNames(bytes/len("abc:\r\n")), ":\r\n") + ":\r\n"
}

// settled waits until a count has stopped to grow.
func settled(of *atomic.Int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last, same := int64(0), 0; same < 30; <-tick.C {
		if n := of.Load(); n != last || n == 0 {
			last, same = n, 0
		} else {
			same++
		}
	}
}

// sayingHost is a host whose connections are answered by say, over one protocol.
func sayingHost(e *end, pair tls.Certificate, protocol string, say func(conn net.Conn)) {
	l := tls.NewListener(e.at, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}})
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			say(conn)
		}()
	}
}

// saying answers each request over HTTP/1 with a text, and counts them.
func saying(text string, said *atomic.Int64) func(net.Conn) {
	return func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_ = r.Body.Close()
			said.Add(1)
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

// framing answers each request over HTTP/2 with a letter between two heads of many short fields,
// and counts them.
func framing(said *atomic.Int64) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		if f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000}) != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.HeadersFrame:
				said.Add(1)
				if writeHead(f, frame.StreamID, false) != nil || f.WriteData(frame.StreamID, false, []byte("x")) != nil || writeHead(f, frame.StreamID, true) != nil {
					return
				}
			case *http2.SettingsFrame:
				if !frame.IsAck() && f.WriteSettingsAck() != nil {
					return
				}
			}
		}
	}
}

// writeHead writes one with as many short fields as the gateway takes, before or behind a body.
func writeHead(f *http2.Framer, stream uint32, behind bool) error {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSize(0)
	if !behind {
		_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}) // to memory
	}
	for _, name := range shortNames(1800) {
		_ = enc.WriteField(hpack.HeaderField{Name: name}) // to memory
	}
	rest := block.Bytes()
	first := rest[:min(len(rest), 16_000)]
	rest = rest[len(first):]
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: behind, EndHeaders: len(rest) == 0})
	for err == nil && len(rest) > 0 {
		next := rest[:min(len(rest), 16_000)]
		rest = rest[len(next):]
		err = f.WriteContinuation(stream, len(rest) == 0, next)
	}
	return err
}

// askUnread asks on a connection as often as it says, and reads none of the answers.
func askUnread(conn net.Conn, protocol string, times int) error {
	if protocol == "http/1.1" {
		_, err := io.WriteString(conn, strings.Repeat("GET /good/x HTTP/1.1\r\nHost: api.example\r\n\r\n", times))
		return err
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := range times {
		block.Reset()
		for _, field := range []hpack.HeaderField{
			{Name: ":method", Value: http.MethodGet}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/good/x"}, {Name: ":authority", Value: "api.example"},
		} {
			if err := enc.WriteField(field); err != nil {
				return err
			}
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
			return err
		}
	}
	return nil
}

// TestHeadsOfAnswersTakeMemory: a host and a guest that work together have the gateway keep as many
// heads of answers as they can, before and behind bodies, whole or not. It keeps no more for them
// than the sandbox may have. The control is that it passes many requests on.
func TestHeadsOfAnswersTakeMemory(t *testing.T) {
	const connections, streams = 60, 50
	const begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
	fields := shortFields(60_000)
	for name, c := range map[string]struct {
		protocol string
		budget   int64
		say      func(said *atomic.Int64) func(net.Conn)
	}{
		"whole":     {"http/1.1", 24 << 20, func(n *atomic.Int64) func(net.Conn) { return saying(begin+fields+"\r\n", n) }},
		"not whole": {"http/1.1", 24 << 20, func(n *atomic.Int64) func(net.Conn) { return saying(begin+fields, n) }},
		"informative": {"http/1.1", 24 << 20, func(n *atomic.Int64) func(net.Conn) {
			return saying("HTTP/1.1 103 Early Hints\r\n"+fields+"\r\n"+begin+fields, n)
		}},
		"over HTTP/2": {"h2", 64 << 20, framing},
	} {
		t.Run(name, func(t *testing.T) {
			e, pair := newEnd(t, egress.Limits{Memory: c.budget, Connects: 1000, Opens: 1000}, "api.example")
			var said atomic.Int64
			go sayingHost(e, pair, c.protocol, c.say(&said))
			config := e.tls.Clone()
			config.NextProtos = []string{c.protocol}
			before := inUse()
			var all []net.Conn
			for range connections {
				conn, problem := e.opens(t, "sb-1")
				all = append(all, conn)
				if problem == "" {
					_ = askUnread(tls.Client(conn, config), c.protocol, streams) // what finds no room is ended
				}
			}
			settled(&said)
			took := inUse() - before
			t.Logf("the host has answered %d requests; %d MiB in memory", said.Load(), took>>20)
			if said.Load() < 10 {
				t.Error("INCONCLUSIVE: fewer than ten requests were passed on")
			}
			if took > c.budget {
				t.Errorf("the gateway has %d MiB for one sandbox, which may have %d", took>>20, c.budget>>20)
			}
			if !e.refusedMemory() {
				t.Error("no refusal is on record")
			}
			for _, conn := range all {
				_ = conn.Close()
			}
		})
	}
}

// TestHeadsOfRequestsTakeMemory: heads that never end are counted while they come, over TLS and
// plainly, and what was refused so is on record. A connection that has ended gives all back.
func TestHeadsOfRequestsTakeMemory(t *testing.T) {
	const budget, connections = 24 << 20, 80
	e := endLimited(t, egress.Limits{Memory: budget, Connects: 1000, Opens: 1000}, judgedDocument, http.NotFoundHandler(), "api.example")
	head := "GET /good/x HTTP/1.1\r\nHost: api.example\r\n" + shortFields(60_000)
	before := inUse()
	var all []net.Conn
	for range connections {
		conn, problem := e.opens(t, "sb-1")
		all = append(all, conn)
		if problem == "" {
			_, _ = io.WriteString(tls.Client(conn, e.tls), head) // what finds no room is ended
		}
	}
	waitUntil(t, "one is refused", e.refusedMemory)
	var none atomic.Int64
	none.Add(1)
	settled(&none)
	if took := inUse() - before; took > budget {
		t.Errorf("the gateway has %d MiB for one sandbox, which may have %d", took>>20, budget>>20)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	waitUntil(t, "there is room again", func() bool {
		conn, problem := e.opens(t, "sb-1")
		defer conn.Close()
		if problem != "" {
			return false
		}
		c := tls.Client(conn, e.tls)
		if _, err := io.WriteString(c, head+"\r\n"); err != nil {
			return false
		}
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		return a.StatusCode == http.StatusNotFound
	})
}

// longDoor has a tool that answers with as much as tools may by default.
type longDoor struct {
	fakeDoor
	answered atomic.Int64
}

func (d *longDoor) CallTool(context.Context, door.ToolAsk) (door.ToolAnswer, error) {
	d.answered.Add(1)
	return door.ToolAnswer{Outcome: door.ToolAnswered, Result: jsontext.Value(`"` + strings.Repeat("x", 1<<20-2) + `"`)}, nil
}

// TestToolAnswersTakeMemory: those that a client does not read are the sandbox's, and one that finds
// no room is told so, on record.
func TestToolAnswersTakeMemory(t *testing.T) {
	const budget, connections = 24 << 20, 60
	d := &longDoor{}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{Memory: budget, Connects: 1000, Opens: 1000}, nil, d)
	before := inUse()
	n := int64(0)
	var last net.Conn
	for range connections {
		conn := dial()
		if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: channel.ToolsHost, Port: 80}); !r.OK {
			continue
		}
		n, last = n+1, conn
		if _, err := io.WriteString(conn, posted(`{"tool": "long"}`)); err != nil {
			t.Fatal(err)
		}
	}
	waitUntil(t, "all were called", func() bool { return d.answered.Load() == n })
	settled(&d.answered)
	if took := inUse() - before; took > budget {
		t.Errorf("the gateway has %d MiB for one sandbox, which may have %d", took>>20, budget>>20)
	}
	a, err := http.ReadResponse(bufio.NewReader(last), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "as much in the gateway's memory as it may") {
		t.Errorf("the last: %d %.300s %v", a.StatusCode, text, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !strings.Contains(fmt.Sprint(d.rejected), memoryRule+" "+channel.ToolsHost) {
		t.Errorf("on record: %q", d.rejected)
	}
}
