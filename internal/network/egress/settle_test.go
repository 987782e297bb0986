package egress_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// askSettled asks as the daemon does that all of a sandbox be put on record.
func askSettled(conn net.Conn, sandbox string) error {
	defer conn.Close()
	if err := channel.NewWriter(conn).WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox, Settle: true}); err != nil {
		return err
	}
	var r channel.Reply
	if err := channel.NewReader(conn).ReadJSON(channel.FrameReply, &r); err != nil {
		return err
	}
	if !r.OK {
		return fmt.Errorf("not settled: %s", r.Error)
	}
	return nil
}

// tellRefused tells of streams as the keeper does.
func tellRefused(t *testing.T, conn net.Conn, n int) (replies []channel.Reply) {
	t.Helper()
	defer conn.Close()
	if err := channel.NewWriter(conn).WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: "sb-1", Refused: n}); err != nil {
		t.Fatal(err)
	}
	frames := channel.NewReader(conn)
	for {
		var r channel.Reply
		if frames.ReadJSON(channel.FrameReply, &r) != nil {
			return replies
		}
		replies = append(replies, r)
	}
}

// lateDoor takes its time to judge a name, and to record a failure.
type lateDoor struct {
	*admission.Controller
	begun  chan struct{} // takes one for each
	onward chan struct{} // closed when it goes on
}

func (d lateDoor) Name(ctx context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	d.wait(ask.Name == "slow.example")
	return d.Controller.Name(ctx, ask)
}

func (d lateDoor) Failed(ctx context.Context, f door.Failure) (door.Answer, error) {
	d.wait(f.Rule == "")
	return d.Controller.Failed(ctx, f)
}

func (d lateDoor) wait(is bool) {
	if is {
		d.begun <- struct{}{}
		<-d.onward
	}
}

// TestWhatASandboxAskedAtLastIsOnRecordBeforeItsEnd, whatever that was and however soon the sandbox ends: what was refused
// unheard, by the gateway or by the keeper, and what is being judged, or recorded, for streams of which the guest waits for none. The
// control is the same sandbox when it lives on.
func TestWhatASandboxAskedAtLastIsOnRecordBeforeItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limits egress.Limits
		ask    func(t *testing.T, dial func() net.Conn, d lateDoor)
		want   string // in the reasons, or names, on record
		sum    int    // of what is said to be refused unheard
	}{
		"too many in a second": {limits: egress.Limits{Opens: 1}, sum: 36, ask: func(_ *testing.T, dial func() net.Conn, _ lateDoor) {
			for i := range 40 {
				streamIsOpened(dial(), channel.Open{Kind: channel.OpenDNS, Name: fmt.Sprintf("n%d.evil.example", i)})
			}
		}},
		"by the keeper": {sum: 1_000, ask: func(t *testing.T, dial func() net.Conn, _ lateDoor) {
			t.Helper()
			if got := tellRefused(t, dial(), 1_000); len(got) != 2 || got[0].OK || !got[1].OK {
				t.Errorf("the keeper is told %+v", got)
			}
		}},
		"a name that is being judged": {want: "slow.example", ask: func(t *testing.T, dial func() net.Conn, d lateDoor) {
			t.Helper()
			leave(t, dial(), channel.Open{Kind: channel.OpenTCP, Name: "slow.example", Port: 443}, d)
		}},
		"no kind": {want: "a stream of this kind does not exist", ask: func(t *testing.T, dial func() net.Conn, d lateDoor) {
			t.Helper()
			leave(t, dial(), channel.Open{Kind: "else"}, d)
		}},
	} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ends %v", name, ends), func(t *testing.T) {
				log, ended := &approvaltest.Log{}, make(chan struct{})
				var dial func() net.Conn
				controller := admission.New(admission.Config{Log: log, Settle: func(_ context.Context, sandbox string) error {
					close(ended)
					return askSettled(dial(), sandbox)
				}})
				p, err := policy.Parse("q", []byte("network_allowlist: [ api.example ]\n"))
				if err != nil {
					t.Fatal(err)
				}
				if err := controller.Register(admission.Run{Sandbox: "sb-1", Run: "run-1", Policy: p}); err != nil {
					t.Fatal(err)
				}
				c.limits.Look = 200 * time.Millisecond
				if ends {
					c.limits.Look = time.Hour // nothing comes on record by itself
				}
				d := lateDoor{controller, make(chan struct{}, 1), make(chan struct{})}
				dial = serveUplink(t, egress.Config{Door: d, Limits: c.limits, Now: new(handClock).now})
				c.ask(t, dial, d)
				var going sync.WaitGroup
				if ends {
					going.Go(func() { // as a sandbox's remover does
						if err := controller.SandboxEnded(t.Context(), "sb-1", "destroyed"); err != nil {
							t.Error(err)
						}
						controller.Unregister("sb-1")
					})
					<-ended
				}
				close(d.onward)
				going.Wait()
				onRecord(t, log, c.want, c.sum, ends)
			})
		}
	}
}

// leave opens a stream, and goes when it is being judged or recorded.
func leave(t *testing.T, conn net.Conn, o channel.Open, d lateDoor) {
	t.Helper()
	w := channel.NewWriter(conn)
	for _, frame := range []any{keeper.StreamIdentity{Sandbox: "sb-1"}, o} {
		if err := w.WriteJSON(channel.FrameOpen, frame); err != nil {
			t.Fatal(err)
		}
	}
	<-d.begun
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// onRecord looks for what is said to be refused, and of a sandbox that has ended for all of it before its end, which
// says no more than why.
func onRecord(t *testing.T, log *approvaltest.Log, want string, sum int, ends bool) {
	t.Helper()
	holds := func() string {
		all := log.All()
		if ends && (len(all) == 0 || all[len(all)-1].Kind != audit.KindSandbox || all[len(all)-1].Reason != "destroyed") {
			return "its end is not the last"
		}
		total := 0
		for _, r := range all {
			total += unheard([]string{r.Reason}) * max(r.Count, 1)
		}
		if total != sum {
			return fmt.Sprintf("%d streams are on record, not %d", total, sum)
		}
		if !slices.ContainsFunc(all, func(r audit.Record) bool { return strings.Contains(r.Reason+r.Detail["name"], want) }) {
			return fmt.Sprintf("nothing tells of %s", want)
		}
		return ""
	}
	late := time.Now().Add(10 * time.Second)
	for again := time.NewTicker(10 * time.Millisecond); ; <-again.C {
		problem := holds()
		if problem == "" {
			return
		}
		if ends || time.Now().After(late) {
			for _, r := range log.All() {
				t.Logf("%s %s %s %d %s", r.Kind, r.Outcome, r.Rule, r.Count, r.Reason)
			}
			t.Error(problem)
			return
		}
	}
}

// TestTheFirstRefusalOfASecondIsOnRecordAtOnce: the gateway itself may end before the second is over. The others follow at
// the sandbox's end: in one record those that were counted by then, and in one of its own each that is counted later.
func TestTheFirstRefusalOfASecondIsOnRecordAtOnce(t *testing.T) {
	d := &fakeDoor{}
	dial := serveUplink(t, egress.Config{Door: d, Limits: egress.Limits{Opens: 1, Look: time.Hour}, Now: new(handClock).now})
	for i := range 10 {
		streamIsOpened(dial(), channel.Open{Kind: channel.OpenDNS, Name: fmt.Sprintf("n%d.evil.example", i)})
	}
	d.until(t, "the first record", func() bool { return len(d.failed) == 1 })
	if err := askSettled(dial(), "sb-1"); err != nil {
		t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if unheard(d.failed) != 6 || len(d.failed) < 2 {
		t.Errorf("on record is %q", d.failed)
	}
}

// TestAStreamOfNoKindIsOnRecordPastTheNames: it takes none of the names of which each is told of.
func TestAStreamOfNoKindIsOnRecordPastTheNames(t *testing.T) {
	for _, names := range []int{0, 3, 5} {
		d := &fakeDoor{}
		dial := uplink(t, d, egress.Limits{Names: 3})
		for i := range names {
			open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: string(rune('a'+i)) + ".evil.example"})
		}
		for range 5 {
			if r := open(t, dial(), "sb-1", channel.Open{Kind: "else"}); r.OK {
				t.Fatal("INCONCLUSIVE: it is open")
			}
			if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "Evil.Example"}); r.DNS.Exists {
				t.Fatal("INCONCLUSIVE: it exists")
			}
		}
		if err := askSettled(dial(), "sb-1"); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		if !slices.Contains(d.failed, "a stream of this kind does not exist") || !slices.Contains(d.failed, "a name asked for: the name is not in lower case") {
			t.Errorf("%d names before: on record is %q", names, d.failed)
		}
		d.mu.Unlock()
	}
}
