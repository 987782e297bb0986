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

// TestAnIdleConnectionHoldsNoEndUp: whatever is spoken, the end of a sandbox does not wait until somebody looks after a
// connection that its host keeps open. The control is another sandbox's, whose client says no more and still listens.
func TestAnIdleConnectionHoldsNoEndUp(t *testing.T) {
	for protocol, port := range map[string]int{"tls": 443, "tcp": 5432} {
		t.Run(protocol, func(t *testing.T) {
			at := newPlace(t)
			d := &fakeDoor{allowed: map[string][]int{"api.example": {443, 5432}}, tcp: 5432}
			dial := uplinkTo(t, d, egress.Limits{Look: time.Hour}, pinned(t, at.Addr()))
			join := func(sandbox string) (guest, host net.Conn) {
				guest = dial()
				if r := open(t, guest, sandbox, channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: port}); !r.OK {
					t.Fatal(r.Error)
				}
				if _, err := io.WriteString(guest, firstHello(t, "api.example")); err != nil {
					t.Fatal(err)
				}
				host, err := at.Accept()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = host.Close() })
				if _, err := io.WriteString(host, "\x16\x03\x03\x00\x2c\x02\x00\x00\x28"+strings.Repeat("\x03", 40)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(guest, make([]byte, 49)); err != nil {
					t.Fatal(err)
				}
				return guest, host
			}
			listens, speaks := join("sb-2")
			if err := listens.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, speaks); err != nil {
				t.Fatal(err)
			}
			gone, host := join("sb-1")
			if _, err := io.WriteString(gone, "goodbye"); err != nil {
				t.Fatal(err)
			}
			if err := gone.Close(); err != nil {
				t.Fatal(err)
			}
			if err := askSettled(dial(), "sb-1"); err != nil {
				t.Error(err)
			}
			if said, err := io.ReadAll(host); err != nil || !strings.HasSuffix(string(said), "goodbye") {
				t.Errorf("the host heard %q, %v", said, err)
			}
			if _, err := io.WriteString(speaks, "late"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(listens, make([]byte, 4)); err != nil {
				t.Errorf("another sandbox's connection: %v", err)
			}
		})
	}
}

// TestManyOtherSandboxesTakeNothingOffTheRecord: a count that is on no record yet is kept however many others there have been since.
func TestManyOtherSandboxesTakeNothingOffTheRecord(t *testing.T) {
	d := &fakeDoor{}
	dial := serveUplink(t, egress.Config{Door: d, Limits: egress.Limits{Opens: 1, Look: time.Hour}, Now: new(handClock).now})
	for i := range 40 {
		streamIsOpened(dial(), channel.Open{Kind: channel.OpenDNS, Name: fmt.Sprintf("n%d.evil.example", i)})
	}
	d.until(t, "the first record", func() bool { return unheard(d.failed) > 0 })
	for i := range 4_200 {
		if err := askSettled(dial(), fmt.Sprintf("other-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := askSettled(dial(), "sb-1"); err != nil {
		t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := unheard(d.failed); n != 36 {
		t.Errorf("%d streams are on record: %q", n, d.failed)
	}
}
