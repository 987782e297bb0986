package jscall

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Door is what judges and records calls; *admission.Controller is one.
type Door interface {
	Register(r admission.Run) error
	Unregister(sandbox string)
	CodeBegins(ctx context.Context, code admission.Code) (door.Answer, error)
	CodeEnded(ctx context.Context, id string, end admission.CodeEnd) error
	CallTool(ctx context.Context, ask door.ToolAsk) (door.ToolAnswer, error)
}

// Config is what a Desk is made of. All is needed.
type Config struct {
	// Callers are the engines of calls, by name; Default is the one of who names none.
	Callers map[string]engine.Caller
	Default string
	Door    Door
}

// The bounds of what runs and waits at one time.
const (
	atOnce      = 64    // calls; the engine bounds their memory further
	line        = 2_000 // that wait, of one owner
	usualMemory = 64 << 20
	usualTime   = 10 * time.Second
	mayWait     = time.Hour // for tools, and for people
)

// Desk takes calls. Safe for concurrent use.
type Desk struct {
	config Config
	turns  *fairqueue.Shares

	mu   sync.Mutex
	runs map[string]string // of the calls that are under way, by the call's id
}

// New makes a desk.
func New(config Config) *Desk {
	return &Desk{config: config, turns: fairqueue.New(fairqueue.Fair(atOnce, line)), runs: map[string]string{}}
}

// Request is what is asked for.
type Request struct {
	Run      string // "": one of its own
	Task     string
	Language string // "": the engine's first
	Code     string
	Policy   *policy.Policy
	// Timeout and MemoryBytes are what the client wants, below what the policy has; 0:
	// what is usual, or the policy's if that is less.
	Timeout     time.Duration
	MemoryBytes int64
	User        string // for the record
	Token       string // whose call it is; "": the host's
}

// Done is a call that was made.
type Done struct {
	ID, Run   string
	RequestID string // of its records
	engine.CallResult
}

// Make has a call judged, recorded and run. Code that the policy refuses is
// fault.ErrForbidden with the rule and the request's id.
func (d *Desk) Make(ctx context.Context, req Request) (Done, error) {
	caller, call, err := d.planCall(req)
	if err != nil {
		return Done{}, err
	}
	_, leave, err := d.turns.Take(fairqueue.For(ctx, req.Token))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return Done{}, fault.Exhausted(time.Second, "%d calls of the same owner wait already for their turn", line)
	}
	if err != nil {
		return Done{}, err
	}
	defer leave()
	made := Done{ID: "call-" + shortID(), Run: req.Run}
	if made.Run == "" {
		made.Run = "run-" + shortID()
	}
	if err := d.config.Door.Register(admission.Run{
		Sandbox: made.ID, Run: made.Run, Task: req.Task, User: req.User, Token: req.Token, Started: time.Now(), Policy: req.Policy,
	}); err != nil {
		return Done{}, err
	}
	defer d.config.Door.Unregister(made.ID)
	d.noteDone(made)
	defer d.forgetDone(made.ID)
	code := admission.Code{ID: made.ID, Language: call.Language, Isolation: caller.Name(), Text: call.Code, Token: req.Token}
	answer, err := d.config.Door.CodeBegins(ctx, code)
	if err != nil {
		return Done{}, err
	}
	made.RequestID = answer.RequestID
	if !answer.Decision.Allowed() {
		return Done{}, fault.New(fault.ErrForbidden, "the policy refuses the code: %s [%s]; request %s", answer.Decision.Reason, answer.Decision.Rule, answer.RequestID)
	}
	call.Tool, call.Owner = d.toolCaller(made), req.Token
	made.CallResult, err = caller.Call(ctx, call)
	// A result that is not on record is not told.
	if unrecorded := d.config.Door.CodeEnded(context.WithoutCancel(ctx), made.ID, ending(made.CallResult, err)); unrecorded != nil {
		return Done{}, errors.Join(unrecorded, err)
	}
	return made, err
}

// ending is what the log has of a call's end.
func ending(r engine.CallResult, err error) admission.CodeEnd {
	end := admission.CodeEnd{ValueBytes: len(r.Value), OutputBytes: len(r.Stdout) + len(r.Stderr), MemoryBytes: r.MemoryBytes, TookMS: r.Took.Milliseconds()}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		end.Failure, end.Reason = "left", "nobody waited for it any more"
	case err != nil:
		end.Failure, end.Reason = "host", fault.Sentence(err, "the host could not run it")
	case r.Failure != nil:
		end.Failure, end.Reason = string(r.Failure.Kind), r.Failure.Message
	}
	return end
}

// toolCaller has a call's code call a function of the host by the one door, as a sandbox's.
func (d *Desk) toolCaller(made Done) func(ctx context.Context, name, arguments string) engine.ToolReply {
	return func(ctx context.Context, name, arguments string) engine.ToolReply {
		answer, err := d.config.Door.CallTool(ctx, door.ToolAsk{Sandbox: made.ID, Tool: name, Arguments: arguments})
		switch {
		case err != nil: // the operator's log has why
			return engine.ToolReply{Refusal: "the call could not be judged or recorded, so it was not made"}
		case answer.Outcome == door.ToolAnswered && json.Valid(answer.Result):
			return engine.ToolReply{Result: string(answer.Result)}
		}
		reply := engine.ToolReply{Refusal: answer.Reason, Approval: answer.Approval}
		if answer.Outcome == door.ToolHeld {
			// The run ends with the call, so an answer for it alone has to be asked for.
			reply.Refusal += "; a person approves it on the host: " + door.ApproveCommand(answer.Approval) + " --scope run; call it again then, in the run " + made.Run
		}
		return reply
	}
}

// Runs are those of the calls that are under way.
func (d *Desk) Runs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.runs))
}

// Has tells whether an id is that of a call that is under way.
func (d *Desk) Has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id] != ""
}

func (d *Desk) noteDone(made Done) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[made.ID] = made.Run
}

func (d *Desk) forgetDone(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.runs, id)
}

// Close ends all calls.
func (d *Desk) Close(ctx context.Context) error {
	var errs []error
	for _, c := range d.config.Callers {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// validRun is what a run can be called, as one of sandboxes.
var validRun = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func shortID() string { return strings.ToLower(rand.Text()[:10]) }
