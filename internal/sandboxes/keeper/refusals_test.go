package keeper

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestTheEndOfASandboxWaitsForItsRefusals: they are settled when nobody counts or tells any more, and if that takes too
// long whoever asks is told that there may be more.
func TestTheEndOfASandboxWaitsForItsRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  int64
		open  bool
	}{"in time": {time.Second, 2, false}, "too long": {time.Minute, 1, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRefusals()
				r.addRefusal() // whoever is to tell it is busy
				late := time.AfterFunc(c.takes, func() {
					r.addRefusal()
					r.endCount()
				})
				defer late.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), settleTime)
				defer cancel()
				if n, open := r.settleUntold(ctx); n != c.want || open != c.open {
					t.Errorf("%d, open %v", n, open)
				}
			})
		})
	}
}

// TestWhatAKeeperRefusedIsSettled: of a sandbox that has ended, whose gateway was not there, whoever asks is given how many
// streams were refused, once it has put them on record, and not again; also when the keeper has forgotten the sandbox. The control is a
// sandbox of which nothing was refused.
func TestWhatAKeeperRefusedIsSettled(t *testing.T) {
	s := newStage(t)
	s.listenUplink(func(c *channel.Conn) { // is told of what was refused, and does not put it on record
		var who StreamIdentity
		if err := c.ReadStrictJSON(channel.FrameOpen, &who); err == nil && who.Refused > 0 {
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{})
			return
		}
		_, _, _ = c.ReadFrame()
		_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
		_, _ = io.Copy(io.Discard, c.Raw())
	})
	s.launch("box", "guest")
	s.launch("other", "guest")
	s.run("box", "flood", ExecOptions{}, "many", "300")
	if o := s.result("box", "flood"); !strings.HasPrefix(o.out.String(), "[256,") {
		t.Fatalf("INCONCLUSIVE: served and refused: %s", &o.out)
	}
	for _, id := range []string{"box", "other"} {
		s.must(s.Kill(t.Context(), id))
		s.must(s.Forget(t.Context(), id))
	}
	var told []int
	takes := func(err error) func(int) error {
		return func(n int) error {
			told = append(told, n)
			return err
		}
	}
	full := errors.New("the disk is full")
	if _, err := s.Settle(t.Context(), "box", takes(full)); !errors.Is(err, full) {
		t.Error(err)
	}
	for _, id := range []string{"box", "box", "other", "unheard-of"} {
		if open, err := s.Settle(t.Context(), id, takes(nil)); err != nil || open {
			t.Error(id, open, err)
		}
	}
	if len(told) != 2 || told[0] != 44 || told[1] != 44 {
		t.Errorf("told of %d", told)
	}
}
