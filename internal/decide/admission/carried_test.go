package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// TestCarriedBytes: what a sandbox's connections have carried is told to whoever counts
// them, also by a daemon that was not there. Others count the connections that go on.
func TestCarriedBytes(t *testing.T) {
	c, log := hosted(t, nil)
	ctx := t.Context()
	var begun []uint64
	for range 3 {
		a, err := c.Connect(ctx, connectTo("api.example", 443, "93.184.215.14"))
		must(t, err)
		begun = append(begun, a.Seq)
	}
	must(t, c.Disconnected(ctx, door.Disconnection{Sandbox: "sb1", Seq: begun[0], BytesOut: 5, BytesIn: 7}))
	must(t, c.Disconnected(ctx, door.Disconnection{Sandbox: "sb1", Seq: begun[1], BytesOut: 1 << 40, BytesIn: -1 << 50}))
	carried := func(c *Controller) int64 {
		t.Helper()
		a, err := c.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "api.example", Port: 443})
		must(t, err)
		return a.Carried
	}
	const want = 5 + 7 + 1<<40
	if got := carried(c); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	next := New(Config{Log: log})
	must(t, next.Restore(ctx, Run{Sandbox: "sb1", Run: "run-sb1", Policy: parse(t, "network_allowlist: [ api.example ]\n")}))
	if got := carried(next); got != want {
		t.Errorf("after a restart of the daemon: %d, want %d", got, want)
	}
	other := New(Config{Log: log})
	must(t, other.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: parse(t, "network_allowlist: [ api.example ]\n")}))
	if got := carried(other); got != 0 {
		t.Errorf("one that has carried nothing: %d", got)
	}
}
