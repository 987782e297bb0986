package egress_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/egress"
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
		for _, hungUp := range []bool{false, true} {
			t.Run(fmt.Sprintf("%.8q %v", said, hungUp), func(t *testing.T) {
				d := &fakeDoor{allowed: map[string][]int{"api.example": {80, 443}}}
				dial := uplink(t, d, egress.Limits{})
				conn := dial()
				r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: c.port})
				if !r.OK {
					t.Fatalf("%+v", r)
				}
				if _, err := io.WriteString(conn, said); err != nil {
					t.Fatal(err)
				}
				if !hungUp {
					_ = conn.Close()
				} else if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenHangUp, Stream: r.Text}); !r.OK {
					t.Fatalf("%+v", r)
				}
				d.until(t, "the record", func() bool { return len(d.rejected) == 1 })
				if !strings.Contains(d.rejected[0], c.want) {
					t.Errorf("on record is %q", d.rejected)
				}
			})
		}
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
		if !hungUp {
			_ = conn.Close()
		} else if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenHangUp, Stream: r.Text}); !r.OK {
			t.Fatalf("%+v", r)
		}
		d.until(t, "the question", func() bool { return len(d.asks) == 1 })
		d.until(t, "its end", func() bool { return d.gone == 1 })
	}
}
