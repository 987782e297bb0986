package telemetry

import "sync"

// maxRuns bounds how many sandboxes' runs are kept, twice.
const maxRuns = 2_000

// Runs knows which run a sandbox works for, some time beyond the sandbox's end:
// the last lines of the log are about what has ended already. It learns from the
// audit log's records. Safe for concurrent use.
type Runs struct {
	mu          sync.Mutex // guards what follows
	recent, old map[string]string
}

// NewRuns knows none yet.
func NewRuns() *Runs { return &Runs{recent: map[string]string{}} }

// Of is a sandbox's run; "" if it is not known.
func (r *Runs) Of(sandbox string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run, known := r.recent[sandbox]; known {
		return run
	}
	return r.old[sandbox]
}

// learnRun learns of a sandbox and its run. A sandbox that was told of again since the last change of generations stays.
func (r *Runs) learnRun(sandbox, run string) {
	if sandbox == "" || run == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recent) >= maxRuns && r.recent[sandbox] == "" {
		r.old, r.recent = r.recent, map[string]string{}
	}
	r.recent[sandbox] = run
}
