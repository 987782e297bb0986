package commands

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// starting is a keeper that is asked for processes, and does with each what a test says.
type starting struct {
	exec   func(conn *channel.Conn) // has been asked for a process
	attach func(conn *channel.Conn) // is attached to, and was agreed to
	asked  atomic.Int64             // how many were asked for
	kills  chan struct{}            // one for each kill
	deaf   atomic.Int64             // so many kills it does not confirm
}

// table is one whose keeper it is. When the test ends so does the daemon.
func (s *starting) table(t *testing.T) *Table {
	t.Helper()
	s.kills = make(chan struct{}, 2*maxStarting)
	socket := filepath.Join(t.TempDir(), "k")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving, group sync.WaitGroup
	serving.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer raw.Close()
				s.serve(channel.NewConn(raw))
			})
		}
	})
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		group.Wait()
		_ = l.Close()
		serving.Wait()
	})
	return NewRunner(life, &group, Config{Keeper: keeper.Dial(socket), Log: slog.New(slog.DiscardHandler)}).
		In(Place{Info: journal.Info{ID: "sb1"}, State: func() journal.State { return journal.Running }})
}

func (s *starting) serve(conn *channel.Conn) {
	var req keeper.Request
	if conn.ReadJSON(channel.FrameOpen, &req) != nil {
		return
	}
	r := keeper.Response{OK: true}
	switch req.Verb { //nolint:exhaustive // the others are just agreed to
	case keeper.VerbExec:
		if _, _, err := conn.ReadFrame(); err != nil {
			return
		}
		s.asked.Add(1)
		s.exec(conn)
		return
	case keeper.VerbSend:
		if _, _, err := conn.ReadFrame(); err != nil {
			return
		}
		s.kills <- struct{}{}
		if s.deaf.Add(-1) >= 0 {
			r = keeper.Response{Category: "unavailable", Error: "the agent did not confirm"}
		}
	case keeper.VerbGet:
		r.Sandbox, r.More = &keeper.Sandbox{ID: "sb1"}, true
		_ = conn.WriteJSON(channel.FrameReply, r)
		r = keeper.Response{OK: true, Command: &keeper.Command{ID: "cmd-1"}}
	}
	_ = conn.WriteJSON(channel.FrameReply, r)
	if req.Verb == keeper.VerbAttach {
		s.attach(conn)
	}
}

// TestWhatBeganIsFollowedOrKilled: only a keeper that refuses a process says that there is none. Neither
// a caller who leaves nor a connection that breaks does; then it counts as begun, and is killed until
// that is confirmed.
func TestWhatBeganIsFollowedOrKilled(t *testing.T) {
	t.Parallel()
	agrees := func(conn *channel.Conn) { _ = conn.WriteJSON(channel.FrameReply, keeper.Response{OK: true}) }
	for name, c := range map[string]struct {
		exec         func(conn *channel.Conn)
		leaves       bool
		fails, began bool
	}{
		"it agrees":                      {exec: agrees, began: true},
		"it refuses":                     {exec: func(conn *channel.Conn) { _ = conn.WriteJSON(channel.FrameReply, keeper.Response{Category: "invalid"}) }, fails: true},
		"the connection breaks":          {exec: func(*channel.Conn) {}, began: true, fails: true},
		"its answer can't be read":       {exec: func(conn *channel.Conn) { _ = conn.WriteFrame(channel.FrameReply, []byte("yes")) }, began: true, fails: true},
		"it agrees when the caller left": {exec: agrees, leaves: true, began: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			gone := make(chan struct{})
			k := &starting{exec: func(conn *channel.Conn) {
				if c.leaves {
					leave()
					<-gone
				}
				c.exec(conn)
			}}
			k.deaf.Store(1)
			told := make(chan bool, 1)
			mayRun, err := k.table(t).beginProcess(ctx, start{
				exec:  channel.Exec{ID: "cmd-1", Argv: []string{"x"}},
				began: func(bool) { told <- true }, failed: func(error) { told <- false },
			})
			close(gone)
			if (err != nil) != c.fails || c.leaves && !errors.Is(err, context.Canceled) || mayRun != c.began {
				t.Errorf("it may run: %v, %v", mayRun, err)
			}
			if began := <-told; began != c.began {
				t.Errorf("told is that it began: %v", began)
			}
			if c.began && c.fails {
				<-k.kills
				<-k.kills // the first was not confirmed
			} else if len(k.kills) > 0 {
				t.Error("it was killed")
			}
		})
	}
}

// TestStartsThatNobodyWaitsForAreBounded: callers that come and go leave no more behind than a sandbox
// may have starts under way.
func TestStartsThatNobodyWaitsForAreBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	k := &starting{exec: func(conn *channel.Conn) {
		<-release
		_ = conn.WriteJSON(channel.FrameReply, keeper.Response{OK: true})
	}}
	table := k.table(t)
	s := start{exec: channel.Exec{ID: "cmd-1", Argv: []string{"x"}}}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i := range maxStarting {
		s.exec.ID = "cmd-" + strconv.Itoa(i)
		if _, err := table.beginProcess(gone, s); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	failed := false
	s.failed = func(error) { failed = true }
	if mayRun, err := table.beginProcess(t.Context(), s); mayRun || !errors.Is(err, fault.ErrUnavailable) || !failed {
		t.Errorf("one more: it may run: %v, failed: %v, %v", mayRun, failed, err)
	}
	close(release)
	for range maxStarting {
		<-k.kills
	}
	if _, err := table.beginProcess(t.Context(), s); err != nil {
		t.Errorf("when all have been answered: %v", err)
	}
	if n := k.asked.Load(); n != maxStarting+1 {
		t.Errorf("the keeper was asked %d times", n)
	}
}

// TestAKillThatIsTriedAgainIsOne: however often somebody finds that a process has to be killed, as each who
// attaches to output that is blocked does, one kill is under way until it is confirmed.
func TestAKillThatIsTriedAgainIsOne(t *testing.T) {
	t.Parallel()
	k := &starting{}
	table := k.table(t)
	k.deaf.Store(1)
	for range 10 {
		table.killSurely("cmd-1", "its output is blocked")
	}
	<-k.kills
	<-k.kills // the first was not confirmed
	table.group.Wait()
	if n := len(k.kills); n > 0 {
		t.Errorf("it is killed by %d others as well", n)
	}
	table.killSurely("cmd-1", "one that came back") // as in a copy
	<-k.kills
}

// TestWhatNobodyReadsToItsEndIsKilled: a process of which the daemon itself reads the output, when that breaks
// off. The control is one that ends.
func TestWhatNobodyReadsToItsEndIsKilled(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		k := &starting{attach: func(conn *channel.Conn) {
			_ = conn.WriteFrame(channel.FrameStdout, []byte("so far"))
			if ends {
				_ = conn.WriteJSON(channel.FrameExit, channel.Exit{})
			}
		}}
		table := k.table(t)
		out, err := table.output(t.Context(), "cmd-1", "x")
		if string(out) != "so far" || (err == nil) != ends {
			t.Errorf("%q, %v", out, err)
		}
		table.group.Wait()
		if n := len(k.kills); (n > 0) == ends {
			t.Errorf("it has ended: %v, and was killed %d times", ends, n)
		}
	}
}

// TestACopyKeepsTheTimeouts of the commands that ran.
func TestACopyKeepsTheTimeouts(t *testing.T) {
	for _, timeout := range []int64{0, 90_000} {
		all := new(Table).Running([]keeper.Command{{ID: "cmd-1", TimeoutMS: timeout}}, time.Now())
		if len(all) != 1 || all[0].TimeoutMS != timeout || timeoutOf(all[0].TimeoutMS).Milliseconds() != timeout {
			t.Errorf("%+v, want %d ms", all, timeout)
		}
	}
}
