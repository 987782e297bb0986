package e2b

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// The wire has no message for an alarm. Clients read of one in the error output of the command or
// the cell that ends next, as of output that was not kept: every SDK passes that on, and what
// follows an exit code alone would take a withheld package for none.

// Bounds of what is told of alarms, and of what is remembered.
const (
	maxAlarms       = 5
	maxAlarmText    = 500
	maxAlarmWatched = 4_096       // sandboxes
	maxAlarmsKept   = 1_024       // of a sandbox, of which nobody was told yet; all but the first maxAlarms without their text
	alarmReadTime   = time.Minute // in which the log has to be read
)

// alarmNews tells the clients of a sandbox of its alarms, of each once. Safe for concurrent use.
//
// The log is read for all sandboxes together, each record once, and by one at a time: very many may follow one command,
// and all hear of its end in the same moment.
type alarmNews struct {
	log     alarms.Log    // nil: nothing is known of alarms
	reading chan struct{} // holds a token while somebody reads the log

	mu       sync.Mutex // guards what follows; never held over I/O
	read     uint64     // the first record that was not read
	failures uint64     // readings that came to nothing
	failed   error      // why the last of them did
	watched  map[string]*sandboxAlarms
}

// sandboxAlarms are what is known of a sandbox's, and not yet told.
type sandboxAlarms struct {
	next uint64 // the first record that its clients were not told of
	kept []keptAlarm
	more int // that came behind those, and are not kept
}

type keptAlarm struct {
	seq  uint64
	line string // "": it is only counted
}

func newAlarmNews(log alarms.Log) *alarmNews {
	return &alarmNews{log: log, reading: make(chan struct{}, 1), watched: map[string]*sandboxAlarms{}}
}

// watchAlarms notes from where on a sandbox's alarms are news: from now on, unless it is watched
// already. gone tells of which sandboxes nobody asks any more.
func (n *alarmNews) watchAlarms(sandbox string, gone func(id string) bool) {
	if n.log == nil {
		return
	}
	end, _ := n.log.End()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched[sandbox] != nil {
		return
	}
	if len(n.watched) == 0 {
		n.read = max(n.read, end) // nobody asks for what was before
	}
	n.watched[sandbox] = &sandboxAlarms{next: max(end, n.read)}
	if len(n.watched) <= maxAlarmWatched {
		return
	}
	for id := range n.watched {
		if gone(id) {
			delete(n.watched, id)
		}
	}
}

// newAlarms are lines about the alarms that came since the last ones. told notes that the client has
// them.
func (n *alarmNews) newAlarms(ctx context.Context, sandbox string) (lines []string, told func()) {
	if n.log == nil {
		return nil, func() {}
	}
	end, _ := n.log.End()
	if err := n.catchUp(ctx, sandbox, end); err != nil {
		return []string{fmt.Sprintf("[cofferdam: it is not known whether there was an alarm: %s]", text.Line(text.Shorten(err.Error(), maxAlarmText)))}, func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.watched[sandbox]
	if s == nil {
		return nil, func() {}
	}
	count := s.more
	for _, a := range s.kept {
		count++
		if a.line != "" {
			lines = append(lines, a.line)
		}
	}
	if more := count - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("[cofferdam: and %d ALARMS more, %d in all: cofferdam why %s]", more, count, sandbox))
	}
	return lines, n.markTold(s, max(end, n.read), s.more)
}

// markTold gives what notes that the alarms of a sandbox before record end, and as many of those that are not kept, were
// told of. The caller holds n.mu.
func (n *alarmNews) markTold(s *sandboxAlarms, end uint64, more int) func() {
	before := s.next
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if s.next == before { // else another client was told of the same
			s.more -= more
		}
		s.next = max(s.next, end)
		s.kept = slices.DeleteFunc(s.kept, func(a keptAlarm) bool { return a.seq < end })
	}
}

// catchUp reads the log as far as record end, if a sandbox is watched and nobody has read that yet.
// A caller that waits for the reading of another may leave, and does not read again what that could
// not: each would wait for all before it.
func (n *alarmNews) catchUp(ctx context.Context, sandbox string, end uint64) error {
	for {
		n.mu.Lock()
		from, watched, failures := n.read, n.watched[sandbox] != nil, n.failures
		n.mu.Unlock()
		if !watched || from >= end {
			return nil
		}
		select {
		case n.reading <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		err := n.readOn(ctx, end, failures)
		<-n.reading
		if err != nil {
			return err
		}
	}
}

// readOn reads the log from where it was read to, unless that is end by now, or more readings have failed than the
// caller knows of: it is told of that failure. The reading goes on though its asker leaves, for it is for all; the
// caller has the token of n.reading.
func (n *alarmNews) readOn(ctx context.Context, end, failures uint64) error {
	n.mu.Lock()
	from, failed := n.read, n.failed
	failures = n.failures - failures
	n.mu.Unlock()
	switch {
	case from >= end:
		return nil
	case failures > 0:
		return failed
	}
	end, _ = n.log.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmReadTime)
	defer cancel()
	err := n.readRecords(ctx, from, end)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.failures, n.failed = n.failures+1, err
		return err
	}
	n.read = max(n.read, end)
	return nil
}

// readRecords takes in the alarms among some records.
func (n *alarmNews) readRecords(ctx context.Context, from, end uint64) error {
	for r, err := range n.log.Records(ctx, audit.Filter{Alarms: true, FromSeq: from}) {
		if err != nil {
			return err
		}
		if r.Seq >= end {
			return nil
		}
		n.keepAlarm(r)
	}
	return nil
}

// keepAlarm takes an alarm in that was read, for its sandbox if that is watched.
func (n *alarmNews) keepAlarm(r audit.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = max(n.read, r.Seq+1)
	s := n.watched[r.Sandbox]
	switch {
	case s == nil || r.Seq < s.next:
	case len(s.kept) < maxAlarms:
		s.kept = append(s.kept, keptAlarm{r.Seq, alarmLine(r)})
	case len(s.kept) < maxAlarmsKept:
		s.kept = append(s.kept, keptAlarm{seq: r.Seq})
	default:
		s.more++
	}
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
	return fmt.Sprintf("[cofferdam: ALARM: %s%s; do not use it]", text.Line(text.Seal(what, maxAlarmText)), text.Line(text.Seal(r.Reason, maxAlarmText)))
}
