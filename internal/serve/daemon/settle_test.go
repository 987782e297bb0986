package daemon

import (
	"net"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// answerOn has each connection to a socket answered.
func answerOn(t *testing.T, path string, answer func(*channel.Conn)) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				answer(channel.NewConn(raw))
				_ = raw.Close()
			}()
		}
	}()
}

// TestTheEndOfASandboxAsksWhoCounts: what the keeper has refused, and could not tell, is on record before the sandbox's end; if the
// gateway or the keeper can't say that all is, the end says so. Where there is no gateway, nobody counts anything more.
func TestTheEndOfASandboxAsksWhoCounts(t *testing.T) {
	said := func(r channel.Reply) func(*channel.Conn) {
		return func(c *channel.Conn) {
			var who keeper.StreamIdentity
			if err := c.ReadStrictJSON(channel.FrameOpen, &who); err == nil && who == (keeper.StreamIdentity{Sandbox: "sb-1", Settle: true}) {
				_ = c.WriteJSON(channel.FrameReply, r)
			}
		}
	}
	for name, c := range map[string]struct {
		settled *keeper.Settled       // nil: the keeper does not answer
		gateway func(c *channel.Conn) // nil: there is none
		reason  string
	}{
		"all is told":      {&keeper.Settled{Refused: 7}, said(channel.Reply{OK: true}), "destroyed"},
		"no gateway":       {&keeper.Settled{Refused: 7}, nil, "destroyed"},
		"not all":          {&keeper.Settled{Refused: 7}, said(channel.Reply{Error: "some had not ended"}), "destroyed; not all that it asked for at last is on record: the gateway says that some had not ended"},
		"a gateway ends":   {&keeper.Settled{Refused: 7}, func(*channel.Conn) {}, "destroyed; not all that it asked for at last is on record: the gateway does not say"},
		"streams go on":    {&keeper.Settled{Refused: 7, Open: true}, nil, "destroyed; not all that it asked for at last is on record: some of its connections had not ended"},
		"the keeper ended": {nil, nil, "destroyed; not all that it asked for at last is on record: the keeper"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Daemon{opts: Options{Paths: config.Paths{Runtime: t.TempDir()}}}
			d.keeper = keeper.Dial(d.opts.Paths.KeeperSocket())
			confirmed := make(chan bool, 1)
			if c.settled != nil {
				answerOn(t, d.opts.Paths.KeeperSocket(), func(conn *channel.Conn) {
					var req keeper.Request
					for conn.ReadStrictJSON(channel.FrameOpen, &req) == nil {
						if req.Verb == keeper.VerbPing {
							_ = conn.WriteJSON(channel.FrameReply, keeper.Response{OK: true, Hello: &keeper.Hello{Features: keeper.Features()}})
							continue
						}
						_ = conn.WriteJSON(channel.FrameReply, keeper.Response{OK: true, Settled: c.settled})
						var again keeper.Request
						confirmed <- conn.ReadStrictJSON(channel.FrameOpen, &again) == nil && again.Verb == keeper.VerbSettle
					}
				})
			}
			if c.gateway != nil {
				answerOn(t, d.opts.Paths.Uplink(), c.gateway)
			}
			log := &approvaltest.Log{}
			d.door = admission.New(admission.Config{Log: log, Settle: settler{d}.settleCounts})
			p, err := policy.Parse("q", []byte("name: q\n"))
			must(t, err)
			must(t, d.door.Register(admission.Run{Sandbox: "sb-1", Run: "run-1", Policy: p}))
			must(t, d.door.SandboxEnded(t.Context(), "sb-1", "destroyed"))
			all := log.All()
			last := all[len(all)-1]
			if last.Kind != audit.KindSandbox || !strings.HasPrefix(last.Reason, c.reason) || c.reason == "destroyed" && last.Reason != c.reason {
				t.Errorf("the end says %q", last.Reason)
			}
			if c.settled == nil {
				return
			}
			if len(all) != 2 || !strings.HasPrefix(all[0].Reason, "7 connections or questions were refused unheard") || !<-confirmed {
				t.Errorf("%d records", len(all))
			}
		})
	}
}
