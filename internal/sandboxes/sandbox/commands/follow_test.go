package commands

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// keeping is a keeper that answers each verb with what a test has for it.
func keeping(t *testing.T, answer func(conn *channel.Conn, req keeper.Request)) *keeper.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "k")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			conn := channel.NewConn(raw)
			var req keeper.Request
			if err := conn.ReadJSON(channel.FrameOpen, &req); err == nil {
				answer(conn, req)
			}
			_ = raw.Close()
		}
	}()
	return keeper.Dial(socket)
}

// TestALostKeeperIsNoEnd: of a command whose keeper breaks the connection off it is not told that it
// ended with its sandbox; it is followed again. Only the keeper, or the sandbox's end, says more.
func TestALostKeeperIsNoEnd(t *testing.T) {
	say := func(conn *channel.Conn, r keeper.Response) { _ = conn.WriteJSON(channel.FrameReply, r) }
	absent := keeper.Response{Category: "not_found", Error: "there is none"}
	for name, c := range map[string]struct {
		state  journal.State
		answer func(n int64, conn *channel.Conn, req keeper.Request)
		code   int
		told   string // what the end says
		asked  int64  // how often it was followed
	}{
		"the connection breaks, and the command ends later": {state: journal.Running, code: 3, asked: 2, answer: func(n int64, conn *channel.Conn, _ keeper.Request) {
			say(conn, keeper.Response{OK: true})
			if n > 1 {
				_ = conn.WriteJSON(channel.FrameExit, channel.Exit{Code: 3})
			}
		}},
		"the sandbox ends": {state: journal.Destroying, code: 137, told: "the sandbox ended", asked: 1, answer: func(_ int64, conn *channel.Conn, _ keeper.Request) {
			say(conn, keeper.Response{OK: true})
		}},
		"another keeper knows no sandbox": {state: journal.Running, code: 137, told: "the sandbox ended", asked: 1, answer: func(_ int64, conn *channel.Conn, _ keeper.Request) {
			say(conn, absent)
		}},
		"it knows the sandbox alone": {state: journal.Running, code: 137, told: "may run on; destroy the sandbox", asked: 1, answer: func(_ int64, conn *channel.Conn, req keeper.Request) {
			if req.Verb == keeper.VerbAttach {
				say(conn, absent)
				return
			}
			say(conn, keeper.Response{OK: true, Sandbox: &keeper.Sandbox{}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			table := &Table{Runner: &Runner{cfg: Config{Log: slog.New(slog.DiscardHandler)}}, place: Place{State: func() journal.State { return c.state }}}
			table.cfg.Keeper = keeping(t, func(conn *channel.Conn, req keeper.Request) {
				if req.Verb == keeper.VerbAttach {
					asked.Add(1)
				}
				c.answer(asked.Load(), conn, req)
			})
			exit, err := table.exitOf(t.Context(), "cmd-1")
			if err != nil || exit.Code != c.code || !strings.Contains(exit.Error, c.told) || c.told == "" && exit.Error != "" {
				t.Errorf("%+v, %v", exit, err)
			}
			if asked.Load() != c.asked {
				t.Errorf("it was followed %d times, not %d", asked.Load(), c.asked)
			}
		})
	}
	gone := keeper.Dial(filepath.Join(t.TempDir(), "none"))
	table := &Table{Runner: &Runner{cfg: Config{Log: slog.New(slog.DiscardHandler), Keeper: gone}}, place: Place{State: func() journal.State { return journal.Running }}}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if exit, err := table.exitOf(ctx, "cmd-1"); !errors.Is(err, over) {
		t.Errorf("when nobody waits any more: %+v, %v", exit, err)
	}
}
