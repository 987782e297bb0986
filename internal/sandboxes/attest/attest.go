// Package attest says of each thing that isolates or limits a sandbox whether it does,
// from what a probe came to inside and what was seen of it on the host.
//
// Each thing that isolates or limits is a control. The probe runs in a twin: a fresh sandbox like
// another one, made for the probe alone. The evidence is the probe's words and what the host saw
// itself. A control is proved if the probe tried to get past it and did not, failed if it did or if
// nobody knows, and not applicable where there was nothing to try, and it says why.
//
// The words are believed as far as they go: nobody but the probe has run in the twin. A
// way out that is there is seen by the host all the same, where the host can see it.
package attest

import (
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest/probe"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Outcome is what is known of a control.
type Outcome string

// The outcomes.
const (
	Proved        Outcome = "proved"
	Failed        Outcome = "failed"
	NotApplicable Outcome = "not-applicable"
)

// Control is one, and what came of the attempts to get past it.
type Control struct {
	Name    string
	Outcome Outcome
	Tried   string // what was attempted
	Says    string // what came of it: the probe's words, the host's, or why nothing was tried
}

// Report is all controls of a sandbox, in a fixed order.
type Report struct {
	Sandbox, Run  string // whose controls they are
	Twin, TwinRun string // where they were tried; it is gone
	Template      string
	Engine        string
	Policy        string        // its digest
	Limits        engine.Limits // the sandbox's
	Tried         engine.Limits // the twin's, at most those
	Controls      []Control
}

// Holds tells whether no control failed.
func (r Report) Holds() bool {
	for _, c := range r.Controls {
		if c.Outcome == Failed {
			return false
		}
	}
	return true
}

// Evidence is what is known after the attempts.
type Evidence struct {
	// Words are those of all attempts, as the user of commands and as root inside.
	Words []probe.Word
	// Missing is what the engine says that it can't enforce here, and why.
	Missing map[engine.Control]string
	// Untried are the attempts that were not made, and why.
	Untried map[probe.Attempt]string
	// Visits are the canaries that somebody came to with the token.
	Visits []string
	// Changed are the files of the template, or of the host behind it, that the probe made.
	Changed []string
	// HostKernel is the host's own /proc/version.
	HostKernel string
	// Trouble is why a probe could not be run, or did not end well.
	Trouble []string
	// Computed is what the twin had of the processors while the probe computed; nil: nobody
	// knows.
	Computed *Computed
	// OutOfMemory is the host's word that the twin's memory ended.
	OutOfMemory bool
}

// Computed is what a twin had of the host's processors in a time in which it computed as
// much as it could.
type Computed struct {
	Used      float64 // processors on the average
	Limit     float64 // of them
	Throttled int64   // how often the host's kernel had it wait
}

// overused is how much above the limit is no inaccuracy of a short time any more.
const overused = 1.25

// isOver tells whether it had more than there may be.
func (c Computed) isOver() bool { return c.Used > overused*c.Limit }

// Unmet is why it says nothing of the limit, "" if it does: beside others that compute it
// may not get as much as it may have.
func (c Computed) Unmet() string {
	if c.Throttled > 0 || c.isOver() || c.Used == 0 {
		return ""
	}
	return fmt.Sprintf("this host is busy: the twin had %.2f processors, so it did not come to its limit of %.2f", c.Used, c.Limit)
}

// Most that a twin's probe takes of the host, whatever the policy allows.
const (
	mostMemory = 384 << 20
	mostDisk   = 64 << 20
	mostPids   = 48
	mostCPU    = 1 // or the probe would have to take several
)

// Lower are the limits of a twin: they are enforced in the same way as the sandbox's own,
// and an attempt to get past them costs the host little.
func Lower(l engine.Limits) engine.Limits {
	l.CPU = min(l.CPU, mostCPU)
	l.MemoryBytes, l.DiskBytes, l.Pids = min(l.MemoryBytes, mostMemory), min(l.DiskBytes, mostDisk), min(l.Pids, mostPids)
	return l
}
