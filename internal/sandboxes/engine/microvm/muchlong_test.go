//go:build long

package microvm_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestMuchOverTheChannel: what a machine says arrives whole on a host that is busy, as often
// as it is asked. The agent used to poll its port in three places, of which the one that
// counts was not woken once in some gigabytes: the channel stood still until the host said
// something.
func TestMuchOverTheChannel(t *testing.T) {
	const rounds, lines, bytes = 20, 6_000_000, 46_888_896
	s := newSite(t)
	b := s.box(t, s.subject(t), s.spec("much"))
	var over atomic.Bool
	defer over.Store(true)
	for range runtime.NumCPU() {
		go func() {
			for work := uint(1); !over.Load(); work *= 3 { // for the processors
				runtime.KeepAlive(work)
			}
		}()
	}
	for round := range rounds {
		id := "much" + strconv.Itoa(round)
		err := b.Keeper.Exec(t.Context(), b.id, channel.Exec{ID: id, Argv: []string{"/bin/seq", strconv.Itoa(lines)}, Dir: "/"}, keeper.ExecOptions{AwaitReader: true})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := b.Keeper.Attach(t.Context(), b.id, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		frames, got := channel.NewReader(conn), 0
		for ended := false; !ended; {
			if err := conn.SetReadDeadline(time.Now().Add(mostSaid)); err != nil {
				t.Fatal(err)
			}
			kind, payload, err := frames.ReadFrame()
			if err != nil {
				t.Fatalf("round %d: after %d of %d bytes: %v", round, got, bytes, err)
			}
			if kind == channel.FrameStdout {
				got += len(payload)
			}
			ended = kind == channel.FrameExit
		}
		if got != bytes {
			t.Errorf("round %d: %d bytes instead of %d", round, got, bytes)
		}
		_ = conn.Close() // it has said all
	}
}
