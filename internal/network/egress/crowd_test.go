package egress_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestStreamsThatAreRefusedUnheardAreOnRecord, whatever they are refused for: the first at once, and those of a while in one
// record, with their number. The control is a question that is heard, and a sandbox that asks for no more than it may.
func TestStreamsThatAreRefusedUnheardAreOnRecord(t *testing.T) {
	const many = 20
	ask := func(i int) channel.Open {
		return channel.Open{Kind: channel.OpenTCP, Name: fmt.Sprintf("n%d.evil.example", i), Port: 443}
	}
	const counted = " connections or questions were refused unheard"
	for name, c := range map[string]struct {
		limits  egress.Limits
		hold    int // streams that are open meanwhile
		refused func(i int) channel.Open
		told    keeper.StreamIdentity // is told in their place
		want    string
	}{
		"as many as may be":   {limits: egress.Limits{Streams: 2}, hold: 2, refused: ask, want: counted},
		"as many in a second": {limits: egress.Limits{Opens: 1}, hold: 4, refused: ask, want: counted},
		"no room for why": {limits: egress.Limits{Memory: 300 << 10}, hold: 1, want: counted, refused: func(int) channel.Open {
			return channel.Open{Kind: channel.OpenWhy}
		}},
		"no room for what is asked for": {limits: egress.Limits{Memory: 300 << 10}, hold: 1, want: counted, refused: func(int) channel.Open {
			return channel.Open{Kind: channel.OpenRequest, Request: &channel.Request{}}
		}},
		"by the keeper":   {told: keeper.StreamIdentity{Sandbox: "sb-1", Refused: many}, want: fmt.Sprint(many) + counted + ": the sandbox had as many under way, or had made as many in a second, as it may, or they did not say in time"},
		"no such kind":    {refused: func(int) channel.Open { return channel.Open{Kind: "else"} }, want: "a stream of this kind does not exist"},
		"none is refused": {},
	} {
		t.Run(name, func(t *testing.T) {
			c.limits.Look = 500 * time.Millisecond
			d := &fakeDoor{}
			dial := serveUplink(t, egress.Config{Door: d, Limits: c.limits, Now: new(handClock).now})
			for range c.hold {
				if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 443}); !r.OK {
					t.Fatalf("INCONCLUSIVE: %+v", r)
				}
			}
			if r := open(t, dial(), "sb-2", ask(0)); r.OK || d.asked() != 1 {
				t.Fatalf("INCONCLUSIVE: %+v, and the door was asked for %d names", r, d.asked())
			}
			if c.told.Refused > 0 {
				if err := channel.NewWriter(dial()).WriteJSON(channel.FrameOpen, c.told); err != nil {
					t.Fatal(err)
				}
			}
			for i := range many {
				if c.refused == nil {
					break
				}
				if conn := dial(); streamIsOpened(conn, c.refused(i)) {
					t.Errorf("stream %d is open", i)
				}
			}
			if c.want == "" {
				if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "index.example"}); !r.OK || len(d.failed) != 0 {
					t.Errorf("%+v, and on record is %q", r, d.failed)
				}
				return
			}
			d.until(t, "the record", func() bool {
				return strings.Contains(strings.Join(d.failed, "\n"), c.want) && (c.want != counted || unheard(d.failed) == many)
			})
			d.mu.Lock()
			defer d.mu.Unlock()
			if strings.Contains(c.want, counted) && len(d.failed) > 3 {
				t.Errorf("on record is %q", d.failed)
			}
		})
	}
}

// unheard is how many streams reasons say were refused unheard.
func unheard(reasons []string) (all int) {
	for _, reason := range reasons {
		n := 0
		if _, err := fmt.Sscanf(reason, "%d connections or questions were refused unheard", &n); err == nil {
			all += n
		}
	}
	return all
}

// streamIsOpened opens a stream that may be answered, and closed, before it has said all.
func streamIsOpened(conn net.Conn, o channel.Open) bool {
	defer conn.Close()
	w := channel.NewWriter(conn)
	_ = w.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: "sb-1"})
	_ = w.WriteJSON(channel.FrameOpen, o)
	var r channel.Reply
	return channel.NewReader(conn).ReadJSON(channel.FrameReply, &r) == nil && r.OK
}
