package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

const (
	// leaseTime is how long a run goes on without its client, which may be on its way back to
	// a daemon that was replaced.
	leaseTime = 30 * time.Second
	// leftLease is that of a run that was left while it waited: a person who answers may come
	// back to it. Time that it waits in does not count.
	leftLease = 24 * time.Hour
	// planLease is that of a plan's sandbox. Its resolver has a client, and the daemon weighs without
	// one what came of it.
	planLease = planTimeout + time.Minute
)

// leaseSeconds is how long the sandbox of a run outlives this process, in seconds; 0: without end.
func (f *runFlags) leaseSeconds() int64 {
	if f.keep {
		return 0
	}
	return int64(leaseTime / time.Second)
}

// leaseUnknown tells whether an older daemon refused the sandbox because of its lease; from
// then on none is asked for.
func leaseUnknown(req *api.CreateSandbox, err error, stderr *ui.Stderr) bool {
	if req.Lifetime.LeaseSeconds == 0 || client.StatusOf(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "lease_seconds") {
		return false
	}
	req.Lifetime.LeaseSeconds = 0
	stderr.Say("note: the daemon is older than this program, so the run goes on if this program is killed; end it with cofferdam kill then")
	return true
}

// prolongLease has the run go on for longer without a client. Should that fail, the daemon
// does it when the lease is over, if the run waits then.
func (r *runner) prolongLease(ctx context.Context) {
	kept, least := r.box.Lifetime, int64(leftLease/time.Second)
	if kept.LeaseSeconds == 0 || kept.LeaseSeconds >= least {
		return
	}
	kept.LeaseSeconds = least
	ctx, cancel := withQuickTimeout(ctx)
	defer cancel()
	_, err := askAgain(ctx, r.client, func(c *client.Client) (api.Sandbox, error) { return c.SetLifetime(ctx, r.box.ID, kept) })
	if err != nil {
		r.stderr.Say("the run %s may end soon after it got its answer, unless you go back to it: %s", r.box.Run, err)
	}
}
