package egress_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// TestAHangUpTakesNothingOffTheRecord: what a client has said is judged and on record though its sandbox's agent says
// at once that the client has gone, as it is when the client closes its connection, which is the control.
func TestAHangUpTakesNothingOffTheRecord(t *testing.T) {
	const half = "\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03aaaaaaaaaaaa"
	for said, c := range map[string]struct {
		port int
		want string // in the refusal's record
	}{
		half:               {443, "the ClientHello broke off before its end"},
		"\x00\x01":         {443, "speaks neither TLS nor HTTP"},
		"GET / HTTP/1.1\r": {80, "broke off in its header"},
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n": {80, "another authority"},
	} {
		for _, how := range []string{"closes", "hangs up", "hangs up before the rest has come"} {
			t.Run(fmt.Sprintf("%.8q %s", said, how), func(t *testing.T) {
				d := &fakeDoor{allowed: map[string][]int{"api.example": {80, 443}}}
				dial := uplink(t, d, egress.Limits{})
				conn := dial()
				r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: c.port})
				if !r.OK {
					t.Fatalf("%+v", r)
				}
				first, rest := said, ""
				if how == "hangs up before the rest has come" {
					first, rest = said[:1], said[1:]
				}
				if _, err := io.WriteString(conn, first); err != nil {
					t.Fatal(err)
				}
				if how != "closes" {
					hangUp(t, dial, r.Text)
				}
				_, _ = io.WriteString(conn, rest) // as the keeper passes it on; it may be refused by what came before
				_ = conn.Close()
				d.until(t, "the record", func() bool { return len(d.rejected) == 1 })
				if !strings.Contains(d.rejected[0], c.want) || len(d.failed) != 0 {
					t.Errorf("on record is %q, and as failed %q", d.rejected, d.failed)
				}
			})
		}
	}
}

// hangUp says that the client of a stream has gone.
func hangUp(t *testing.T, dial func() net.Conn, stream string) {
	t.Helper()
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenHangUp, Stream: stream}); !r.OK {
		t.Fatalf("%+v", r)
	}
}

// TestWhatComesTooLateAfterAHangUpIsOnRecord as not judged; in the control, where the client's end has come, nothing is.
func TestWhatComesTooLateAfterAHangUpIsOnRecord(t *testing.T) {
	for _, ends := range []bool{false, true} {
		d := &fakeDoor{allowed: map[string][]int{"api.example": {80}}}
		dial := uplink(t, d, egress.Limits{LastWords: 20 * time.Millisecond})
		conn := dial()
		r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 80})
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r"); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
		if ends {
			_ = conn.(*net.UnixConn).CloseWrite()
		}
		hangUp(t, dial, r.Text)
		d.until(t, "the record of what was said", func() bool { return len(d.rejected) == 1 })
		if !ends {
			d.until(t, "the record of what was not heard", func() bool { return len(d.failed) == 1 })
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil { // it may have been answered before it hung up
			t.Errorf("the connection goes on: %v", err)
		}
		d.mu.Lock()
		if ends != (len(d.failed) == 0) || !ends && !strings.Contains(d.failed[0], "not judged") {
			t.Errorf("the end has come %t: on record is %q", ends, d.failed)
		}
		d.mu.Unlock()
	}
}

// TestAHeldNameIsAskedForThoughItsClientHangsUp: a person is asked for a host that waits for one, whether the client
// closes its connection or its sandbox's agent says at once that it has gone.
func TestAHeldNameIsAskedForThoughItsClientHangsUp(t *testing.T) {
	for _, hungUp := range []bool{false, true} {
		d := &askingDoor{}
		dial := uplinkTo(t, &d.fakeDoor, egress.Limits{Look: 20 * time.Millisecond}, nil, d)
		conn := dial()
		r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 80})
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
		if hungUp {
			hangUp(t, dial, r.Text)
		}
		_ = conn.Close()
		d.until(t, "the question", func() bool { return len(d.asks) == 1 })
		d.until(t, "its end", func() bool { return d.gone == 1 })
	}
}
