package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// obituaryPatience is how long the daemon may take to find out why a sandbox
// is dead.
const obituaryPatience = 3 * time.Second

// obituary adds to a command's end, where its sandbox ended with it, why that
// was: the command's exit comes before the daemon knows.
func (r *runner) obituary(ctx context.Context, exit *api.Exit, err error) error {
	if exit == nil || exit.Code != exitKilled || exit.Error == "" || exit.TimedOut {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, obituaryPatience)
	defer cancel()
	why := r.cause(ctx)
	if why == "" {
		return err
	}
	if why == "out of memory" {
		why += " (max_memory_mb in the policy)"
	}
	return &exitError{code: exitKilled, err: fmt.Errorf("the sandbox ended: %s", why)}
}

// cause waits until the sandbox is dead or gone for the daemon too; "" if its
// end is not known.
func (r *runner) cause(ctx context.Context) string {
	tick := time.NewTicker(daemonPoll)
	defer tick.Stop()
	for {
		box, err := r.client.Sandbox(ctx, r.box.ID)
		switch {
		case box.Ended != "":
			return box.Ended
		case client.StatusOf(err) == http.StatusNotFound:
			return r.recordedCause(ctx)
		case errors.Is(err, client.ErrNoDaemon):
			return ""
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ""
		}
	}
}

func (r *runner) recordedCause(ctx context.Context) string {
	filter := client.RecordFilter{
		Run: r.box.Run, Sandbox: r.box.ID,
		Kinds: []string{string(audit.KindSandbox)}, Outcomes: []string{string(audit.Finished)},
	}
	for line, err := range r.client.Records(ctx, filter) {
		var record audit.Record
		if err == nil && json.Unmarshal(line, &record) == nil {
			return record.Reason
		}
	}
	return ""
}
