package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// runner is one `cofferdam run`, from the request to the sandbox's end, or one
// `cofferdam attach`, which finds the sandbox and its command.
type runner struct {
	*foreground

	flags   runFlags
	argv    []string
	request api.CreateSandbox

	box     api.Sandbox
	presses *interrupts
	holds   holdTeller
	attach  *attachment // nil: the run is ours from its beginning

	published []publication
	workspace *workspace.Workspace // nil: the run has no copy of a directory
	changes   *changeList          // in that; nil: not looked for
	summed    *api.RunSummary      // nil: not asked for yet, or not had

	phase atomic.Int32            // what a signal means depends on it
	end   context.CancelCauseFunc // ends the run, with why
	hurry context.CancelFunc      // ends the farewell
}

// The phases of a run.
const (
	phaseSetup int32 = iota
	phaseCommand
	phaseFarewell
)

func newRunner(flags runFlags, argv []string) *runner {
	r := &runner{foreground: newForeground(), flags: flags, argv: argv, presses: &interrupts{}}
	r.holds.say = r.stderr.Say
	return r
}

// noteSandbox notes the sandbox that the run is in.
func (r *runner) noteSandbox(box api.Sandbox) { r.box, r.sandbox = box, box.ID }

// sayNow says what is out of the ordinary before the table does.
func (r *runner) sayNow(err error) error {
	e, ok := errors.AsType[*exitError](err)
	if !ok || e.err == nil {
		return err
	}
	r.stderr.Say("%s", e.err)
	return &exitError{code: e.code, err: e.err, said: true}
}

// ended is why a run ends before its command does.
type ended struct {
	signal syscall.Signal
	how    string
}

func (e *ended) Error() string { return fmt.Sprintf("the sandbox was ended by %s", e.how) }

// withExitCode gives an error its exit code, unless it has one or the person ended the run: then
// that is the reason.
func withExitCode(ctx context.Context, code int, err error) error {
	if why, ok := errors.AsType[*ended](context.Cause(ctx)); ok {
		return &exitError{code: exitSignalBase + int(why.signal), err: why}
	}
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded
	}
	return &exitError{code: code, err: err}
}

// badSandbox reports whether a sandbox was not made for what was asked, not for a failure.
func badSandbox(err error) bool {
	status := client.StatusOf(err)
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError || status == http.StatusServiceUnavailable
}

// destroyed ends a sandbox, and says so where that fails; true: nothing of it is left.
func destroyed(ctx context.Context, c *client.Client, sandbox string, say func(format string, args ...any)) bool {
	_, err := askAgain(ctx, c, func(c *client.Client) (any, error) { return nil, c.DestroySandbox(ctx, sandbox) })
	gone := err == nil || client.StatusOf(err) == http.StatusNotFound
	if !gone {
		say("the sandbox %s could not be removed; remove it with: cofferdam kill %s (%s)", sandbox, sandbox, err)
	}
	return gone
}

// wholeMilliseconds never makes a limit 0, which is none.
func wholeMilliseconds(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
