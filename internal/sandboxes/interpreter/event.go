package interpreter

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is what a cell tells on its way: exactly one of the fields but At is set.
type Event struct {
	At     time.Time // when the host heard of it
	Stdout string
	Stderr string
	Result *Result
	Error  *Failure
	// Count is how many cells the context has run, this one included; it comes last.
	Count *int64
}

// Result is something that a cell shows: its value if Main, else what it displayed.
type Result struct {
	Main    bool
	Formats map[string]jsontext.Value // by MIME type; what is text is a string, pictures are base64
}

// Failure is how a cell failed. Those of the host's own have no traceback.
type Failure struct {
	Name      string
	Value     string
	Traceback string
}

// The names of failures that no cell has raised.
const (
	FailureDied    = "KernelDied"    // the kernel ended, and what the context had is lost
	FailureBroken  = "KernelBroken"  // it sent what is no message, and was ended
	FailureTimeout = "TimeoutError"  // the policy's time for a cell was over
	FailureOutput  = "OutputLimit"   // the cell wrote more than a cell may
	FailureRefused = "PolicyRefusal" // the policy lets no kernel have it
	FailureWaits   = "PendingApproval"
)
