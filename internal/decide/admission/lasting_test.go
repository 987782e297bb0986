package admission

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// strictLog takes nothing of somebody who has gone, as the log on disk does, and nothing while
// it is broken.
type strictLog struct {
	*approvaltest.Log
	broken atomic.Bool
}

var errDisk = errors.New("the disk is full")

func (l *strictLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if l.broken.Load() {
		return r, errDisk
	}
	return l.Log.Append(ctx, r)
}

// strict is a controller with such a log and a sandbox, sb1.
func strict(t *testing.T) (*Controller, *strictLog) {
	t.Helper()
	log := &strictLog{Log: &approvaltest.Log{}}
	c := New(Config{Log: log})
	p, err := policy.Parse("p", []byte("network_allowlist:\n  - { host: api.example, methods: [GET], paths: [/good] }\n  - { host: open.example }\n"))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}))
	return c, log
}

// TestRefusalsOfThoseWhoDoNotWait: each is on record, whatever is asked for, although whoever
// asked has gone. The control is the same with one who waits.
func TestRefusalsOfThoseWhoDoNotWait(t *testing.T) {
	ways := map[string]func(c *Controller, ctx context.Context) error{
		"a name": func(c *Controller, ctx context.Context) error {
			_, err := c.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "evil.example"})
			return err
		},
		"a connection": func(c *Controller, ctx context.Context) error {
			_, err := c.Connect(ctx, connectTo("evil.example", 443, "93.184.215.14"))
			return err
		},
		"a host": func(c *Controller, ctx context.Context) error {
			_, err := c.HostRefused(ctx, door.HostRefusal{Sandbox: "sb1", Name: "open.example", Port: 443, Rule: door.RuleHostTLS, Reason: "another name"})
			return err
		},
		"a request": func(c *Controller, ctx context.Context) error {
			_, err := c.Request(ctx, door.RequestAsk{Sandbox: "sb1", Name: "api.example", Port: 443, Method: "DELETE", Path: "/admin"})
			return err
		},
		"a tool": func(c *Controller, ctx context.Context) error {
			_, err := c.CallTool(ctx, door.ToolAsk{Sandbox: "sb1", Tool: "nothing"})
			return err
		},
		"no call": func(c *Controller, ctx context.Context) error {
			_, err := c.CallTool(ctx, door.ToolAsk{Sandbox: "sb1", Malformed: "it is no JSON"})
			return err
		},
		"a failure": func(c *Controller, ctx context.Context) error {
			_, err := c.Failed(ctx, door.Failure{Sandbox: "sb1", ResolvedBy: policy.ByCanonical, Reason: "a name"})
			return err
		},
		"a leak": func(c *Controller, ctx context.Context) error {
			_, err := c.Leaked(ctx, door.LeakAsk{HostPort: door.HostPort{Sandbox: "sb1", Name: "open.example", Port: 443}})
			return err
		},
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for way, ask := range ways {
		for waits, ctx := range map[bool]context.Context{true: t.Context(), false: gone} {
			c, log := strict(t)
			for range 2 {
				if err := ask(c, ctx); err != nil {
					t.Errorf("%s, waits %t: %v", way, waits, err)
				}
			}
			if all := log.All(); len(all) != 1 || all[0].Outcome == audit.Started {
				t.Errorf("%s, waits %t: %d records: %+v", way, waits, len(all), all)
			}
			must(t, c.SandboxEnded(t.Context(), "sb1", "over"))
			if all := log.All(); len(all) != 3 || all[1].Count != 1 {
				t.Errorf("%s, waits %t: the repeat was not counted: %+v", way, waits, all)
			}
		}
	}
}

// TestEndsThatCouldNotBeWritten: the end of a connection, and of requests on it, can be told
// again after the log took it once not; each is on record once.
func TestEndsThatCouldNotBeWritten(t *testing.T) {
	c, log := strict(t)
	a, err := c.Connect(t.Context(), connectTo("open.example", 443, "93.184.215.14"))
	must(t, err)
	end := door.Disconnection{Sandbox: "sb1", Seq: a.Seq, BytesOut: 5, BytesIn: 7, Unreached: true, Problem: "it does not answer"}
	done := door.RequestsDone{Sandbox: "sb1", Connection: a.Seq, Requests: []door.RequestDone{{Number: 1, Method: "GET", Path: "/a", Status: 200}, {Number: 2, Method: "GET", Path: "/b", Status: 200}}}
	log.broken.Store(true)
	for range 3 {
		if err := c.Requested(t.Context(), done); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		if err := c.Disconnected(t.Context(), end); !errors.Is(err, errDisk) {
			t.Error(err)
		}
	}
	log.broken.Store(false)
	must(t, c.Requested(t.Context(), door.RequestsDone{Sandbox: "sb1", Connection: a.Seq, Requests: done.Requests[:1]}))
	must(t, c.Requested(t.Context(), done))
	must(t, c.Disconnected(t.Context(), end))
	must(t, c.Requested(t.Context(), done)) // behind its connection's end, and once more
	done.Requests = []door.RequestDone{{Number: 3, Method: "GET", Path: "/c", Status: 200}}
	must(t, c.Requested(t.Context(), done))
	ends := map[string]int{}
	for _, r := range log.All() {
		if r.Outcome == audit.Finished {
			ends[r.Detail["request"]]++
		}
	}
	if len(ends) != 4 || ends[""] != 1 || ends["GET /a"] != 1 || ends["GET /b"] != 1 || ends["GET /c"] != 1 {
		t.Errorf("%v", ends)
	}
	if carried := mustTenant(t, c).hosts.Carried(); carried != 12 {
		t.Errorf("%d bytes", carried)
	}
}

// TestConnectionsThatNobodyWaitsFor end at once: whoever asked will never tell the end.
func TestConnectionsThatNobodyWaitsFor(t *testing.T) {
	c, log := strict(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Connect(ctx, connectTo("open.example", 443, "93.184.215.14")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if open := mustTenant(t, c).hosts.Open(); len(open) != 0 {
		t.Errorf("open: %v", open)
	}
	if all := log.All(); len(all) != 2 || all[0].Outcome != audit.Started || all[1].Outcome != audit.Finished {
		t.Errorf("%+v", all)
	}
}

func mustTenant(t *testing.T, c *Controller) *tenant {
	t.Helper()
	tenant, err := c.tenants.getTenant("sb1")
	must(t, err)
	return tenant
}
