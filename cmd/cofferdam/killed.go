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
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// killedTimeout is how long the daemon may take to find out why a sandbox ended: it may be busy with what ended it, and until it
// says so, the person who waits has no reason.
const killedTimeout = 20 * time.Second

// outOfMemory is the one sentence about that, whichever of a sandbox's processes the
// kernel chose: the command's own, which leaves the sandbox alive, or the sandbox's,
// which ends with it.
const outOfMemory = "the command was killed, because the sandbox is out of memory (max_memory_mb in the policy)"

// killed is a command that was killed, and nobody has said why.
type killed struct {
	client       *client.Client
	run, sandbox string // run may be ""
}

// explainKill adds to a command's end, where it was killed or its sandbox ended with it, why
// that was: the command's exit comes before the daemon knows.
func (k killed) explainKill(ctx context.Context, exit *api.Exit, err error) error {
	if exit == nil || exit.Code != exitKilled || exit.TimedOut {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killedTimeout)
	defer cancel()
	why := ""
	switch {
	case exit.Error != "":
		why = k.awaitCause(ctx)
	case exit.Signal == "KILL":
		why = k.byMemory(ctx)
	}
	switch why {
	case "":
		return err
	case endedForMemory:
		return &exitError{code: exitKilled, err: errors.New(outOfMemory)}
	}
	return &exitError{code: exitKilled, err: fmt.Errorf("the sandbox ended: %s", why)}
}

// byMemory is why a command of a sandbox that may live on was killed; "" if nobody but the
// sandbox itself did it.
func (k killed) byMemory(ctx context.Context) string {
	usage, err := k.client.Usage(ctx, k.sandbox)
	switch status := client.StatusOf(err); {
	case err == nil && usage.MemoryKills > 0:
		return endedForMemory
	case status == http.StatusConflict, status == http.StatusNotFound: // it has ended meanwhile
		return k.awaitCause(ctx)
	}
	return ""
}

// endedForMemory is an engine's word.
const endedForMemory = "out of memory"

// awaitCause waits until the sandbox is dead or gone for the daemon too; "" if its
// end is not known.
func (k killed) awaitCause(ctx context.Context) string {
	tick := time.NewTicker(daemonPoll)
	defer tick.Stop()
	for {
		box, err := k.client.Sandbox(ctx, k.sandbox)
		switch {
		case box.Ended != "":
			return box.Ended
		case client.StatusOf(err) == http.StatusNotFound:
			return k.recordedCause(ctx)
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

func (k killed) recordedCause(ctx context.Context) string {
	filter := client.RecordFilter{
		Run: k.run, Sandbox: k.sandbox,
		Kinds: []string{string(audit.KindSandbox)}, Outcomes: []string{string(audit.Finished)},
	}
	for line, err := range k.client.Records(ctx, filter) {
		var record audit.Record
		if err == nil && json.Unmarshal(line, &record) == nil {
			return record.Reason
		}
	}
	return ""
}
