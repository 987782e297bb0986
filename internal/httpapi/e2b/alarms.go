package e2b

import (
	"context"
	"fmt"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/printable"
)

// The wire has no message for an alarm. Clients read of one in the error output of the command or
// the cell that ends next, as of output that was not kept: every SDK passes that on, and what
// follows an exit code alone would take a withheld package for none.

// Bounds of what is told of alarms, and of what is remembered.
const (
	maxAlarms       = 5
	maxAlarmText    = 500
	maxAlarmWatched = 4_096 // sandboxes
)

// alarmNews tells the clients of a sandbox of its alarms, of each once. Safe for concurrent use.
type alarmNews struct {
	log alarms.Log // nil: nothing is known of alarms

	mu   sync.Mutex        // guards next; never held over I/O
	next map[string]uint64 // by sandbox, the first record that its clients were not told of
}

func newAlarmNews(log alarms.Log) *alarmNews { return &alarmNews{log: log, next: map[string]uint64{}} }

// watch notes from where on a sandbox's alarms are news: from now on, unless it is watched
// already. gone tells of which sandboxes nobody asks any more.
func (n *alarmNews) watch(sandbox string, gone func(id string) bool) {
	if n.log == nil {
		return
	}
	end, _ := n.log.End()
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, watched := n.next[sandbox]; watched {
		return
	}
	n.next[sandbox] = end
	if len(n.next) <= maxAlarmWatched {
		return
	}
	for id := range n.next {
		if gone(id) {
			delete(n.next, id)
		}
	}
}

// news are lines about the alarms that came since the last ones. told notes that the client has
// them.
func (n *alarmNews) news(ctx context.Context, sandbox string) (lines []string, told func()) {
	n.mu.Lock()
	from, watched := n.next[sandbox]
	n.mu.Unlock()
	if n.log == nil || !watched {
		return nil, func() {}
	}
	end, _ := n.log.End()
	told = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.next[sandbox] = max(n.next[sandbox], end)
	}
	if from >= end {
		return nil, told
	}
	count := 0
	for r, err := range n.log.Records(ctx, audit.Filter{Sandbox: sandbox, Alarms: true, FromSeq: from}) {
		if err != nil {
			return append(lines, fmt.Sprintf("[cofferdam: it is not known whether there was an alarm: %s]", printable.Line(excerpt.Of(err.Error(), maxAlarmText)))), func() {}
		}
		if r.Seq >= end {
			break
		}
		if count++; count <= maxAlarms {
			lines = append(lines, alarmLine(r))
		}
	}
	if more := count - maxAlarms; more > 0 {
		lines = append(lines, fmt.Sprintf("[cofferdam: and %d ALARMS more, %d in all: cofferdam why %s]", more, count, sandbox))
	}
	return lines, told
}

// alarmLine is an alarm in one line: what must not be used. It does not say which record that is:
// the numbers of two of a token's own would tell how many records all others have made.
func alarmLine(r audit.Record) string {
	what := r.Detail["name"]
	if r.Package != "" {
		what = r.Ecosystem + " " + r.Package + " " + r.InstalledVersion
	}
	if what != "" {
		what += ": "
	}
	return fmt.Sprintf("[cofferdam: ALARM: %s%s; do not use it]", printable.Line(excerpt.Sealed(what, maxAlarmText)), printable.Line(excerpt.Sealed(r.Reason, maxAlarmText)))
}
