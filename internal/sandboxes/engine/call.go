package engine

import (
	"context"
	"time"
)

// Caller is an engine of calls, not of sandboxes: it runs one piece of code that has no
// files, no network, no processes and no channel, and gives what it came to. It is no
// Engine, has no instances, and nothing outlives a call. Package enginetest's CallSuite is
// what every Caller must pass. Safe for concurrent use.
type Caller interface {
	// Name is what a policy's `isolation` says.
	Name() string
	// Languages are those that it runs, sorted; the first is the one of who names none.
	Languages() []string
	// Bounds are the greatest limits that a call can have, and the least memory that one
	// needs.
	Bounds() CallBounds
	// Call runs code and returns when all of it has ended. A mistake of the code is the result's
	// Failure. An error is the host's: fault.ErrInvalid for a call that can't be (another language,
	// limits beyond Bounds), fault.ErrExhausted where the host has no room for it now, and ctx's
	// own if that ended before the code did. No call sees anything of another one.
	Call(ctx context.Context, call Call) (CallResult, error)
	// Close ends all calls and gives everything back. No call begins afterwards.
	Close(ctx context.Context) error
}

// Call is one piece of code to be run. All of Code is hostile.
type Call struct {
	Language string // one of Languages; "": the first
	Code     string // UTF-8
	Limits   CallLimits
	Owner    string // whose share of what all calls may have it takes
	// Tool answers the code's calls of functions of the host, one at a time; nil: there
	// are none. Name and arguments are the code's own: any bytes, at most
	// CallBounds.Ask of them together.
	Tool func(ctx context.Context, name, arguments string) ToolReply
}

// CallLimits bound a call. A zero field is the engine's default, never "none".
type CallLimits struct {
	// Time is for how long it may compute. While a tool answers, it does not count.
	Time time.Duration
	// Life is how long it may take in all.
	Life time.Duration
	// MemoryBytes is all that it may have, the language's own included.
	MemoryBytes int64
	// OutputBytes is how much it may write, on both outputs together, and how long its
	// value may be.
	OutputBytes int64
}

// CallBounds are what an engine can do.
type CallBounds struct {
	Most        CallLimits // no limit may be greater
	LeastMemory int64      // bytes
	Code        int        // bytes of code
	Ask         int        // bytes of a tool's name and arguments, as the code gives them
}

// ToolReply is what the code is told of its call of a tool.
type ToolReply struct {
	Result string // JSON; counts only without a Refusal
	// Refusal is why there is no result; "" if there is one.
	Refusal string
	// Approval is the request in the queue of people that decides, if one does.
	Approval string
}

// CallResult is what became of a call.
type CallResult struct {
	// Value is what the code came to, as JSON; "" if that is nothing (undefined), or it
	// failed.
	Value          string
	Stdout, Stderr string
	// Truncated tells that it wrote more than it may; the rest is gone.
	Truncated bool
	// Failure is why it has no value; nil: it ended well.
	Failure *CallFailure
	// MemoryBytes is the most that it had.
	MemoryBytes int64
	Took        time.Duration
}

// CallFailure is why code has no value.
type CallFailure struct {
	Kind FailureKind
	// Message and Stack are what the language says; the code may have chosen them. At
	// most 4 KiB each, valid UTF-8.
	Message, Stack string
}

// FailureKind is how code failed. Of those but FailTime, FailCrash and FailOutput it is the code's own
// language that tells, so code can pretend to them.
type FailureKind string

// The kinds.
const (
	FailThrown  FailureKind = "thrown"  // it threw, or what it came to can't be JSON
	FailSyntax  FailureKind = "syntax"  // it is no code
	FailPending FailureKind = "pending" // it waits for what will never be
	FailTime    FailureKind = "time"
	FailMemory  FailureKind = "memory"
	FailStack   FailureKind = "stack"
	FailOutput  FailureKind = "output" // its value is too long
	FailCrash   FailureKind = "crash"  // its wall stopped it: the module that ran it is gone
)
