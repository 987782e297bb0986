package attest_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
)

// TestCanariesHearTheirToken: over a connection and by a datagram; who says something
// else was not there.
func TestCanariesHearTheirToken(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "udp"} {
		c, err := attest.Listen(t.Context(), "the-token")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, word := range []string{"something-else", "the-token"} {
			conn, err := net.Dial(network, c.At()[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
			if word != "the-token" {
				if network == "tcp" { // it has been heard when the canary hangs up
					_, _ = conn.Read(make([]byte, 1))
				}
				if got := c.Visits(); len(got) > 0 {
					t.Errorf("%s: somebody else was taken for the probe, at %v", network, got)
				}
			}
			_ = conn.Close()
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for len(c.Visits()) == 0 {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				t.Fatalf("%s: nobody was heard", network)
			}
		}
		if got := c.Visits(); !slices.Equal(got, c.At()[:1]) {
			t.Errorf("%s: visits at %v of %v", network, got, c.At())
		}
	}
}
