package egress_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// sink is a host that speaks as much of HTTP/2 as it must to be sent requests, and keeps nothing
// of them.
func sink(conn net.Conn, requests *atomic.Int64) {
	defer conn.Close()
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
			requests.Add(1)
		case *http2.SettingsFrame:
			if !frame.IsAck() && f.WriteSettingsAck() != nil {
				return
			}
		case *http2.PingFrame:
			if !frame.IsAck() && f.WritePing(true, frame.Data) != nil {
				return
			}
		}
	}
}

// attack begins requests with long headers on a connection, whose bodies never end, and reads
// away what comes back, counting the answers.
func attack(conn net.Conn, streams int, answers *atomic.Int64) error {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSize(0)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: http.MethodPost}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/good/x"}, {Name: ":authority", Value: "api.example"},
	}
	for i := range 7 {
		fields = append(fields, hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("{", 2000)})
	}
	for _, field := range fields {
		if err := enc.WriteField(field); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	go func() {
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if _, is := frame.(*http2.HeadersFrame); is {
				answers.Add(1)
			}
		}
	}()
	piece := make([]byte, 8<<10)
	for i := range streams {
		id := uint32(2*i + 1)
		if block.Len() > 16<<10 {
			return fmt.Errorf("the header has %d bytes", block.Len())
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
			return err
		}
		if err := f.WriteData(id, false, piece); err != nil {
			return err
		}
	}
	return nil
}

// TestTheWorstGuest: whatever it has under way at a time, what the gateway has in memory for it
// is no more than its budget says. The guest and the host keep next to nothing, so that what is
// in this process is the gateway's. The control is that many of its requests are passed on.
func TestTheWorstGuest(t *testing.T) {
	const budget, connections, streams = 64 << 20, 60, 60
	e, pair := newEnd(t, egress.Limits{Memory: budget, Connects: 1000, Opens: 1000}, "api.example")
	var passed, answered atomic.Int64
	go func() {
		l := tls.NewListener(e.at, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go sink(conn, &passed)
		}
	}()
	before := inUse()
	config := e.tls.Clone()
	config.NextProtos = []string{"h2"}
	var guests sync.WaitGroup
	var refused, broken atomic.Int64
	open := make(chan net.Conn, connections)
	for range connections {
		conn, problem := e.opens(t, "sb-1")
		open <- conn
		if problem != "" {
			refused.Add(1)
			continue
		}
		guests.Go(func() {
			if attack(tls.Client(conn, config), streams, &answered) != nil {
				broken.Add(1)
			}
		})
	}
	guests.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last, same := int64(0), 0; same < 50; <-tick.C { // until nothing more comes
		if n := passed.Load() + answered.Load(); n != last || n == 0 {
			last, same = n, 0
		} else {
			same++
		}
	}
	took := inUse() - before
	t.Logf("%d requests passed on, %d answered, %d connections refused, %d broken; %d MiB in memory", passed.Load(), answered.Load(), refused.Load(), broken.Load(), took>>20)
	if passed.Load() < 200 {
		t.Errorf("INCONCLUSIVE: %d requests were passed on", passed.Load())
	}
	if took > budget {
		t.Errorf("the gateway has %d MiB for one sandbox, which may have %d", took>>20, budget>>20)
	}
	for range connections {
		_ = (<-open).Close()
	}
}

// inUse is what this process has in memory, of its heap and of its goroutines' stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
