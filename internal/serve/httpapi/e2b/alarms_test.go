package e2b

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// alarmLog is a log of which each record is an alarm of the box, or of another.
type alarmLog struct{ records []audit.Record }

func (l *alarmLog) add(sandbox, reason string) {
	l.records = append(l.records, audit.Record{
		Seq: uint64(len(l.records)), Outcome: audit.Alarm, Kind: audit.KindPackage, Sandbox: sandbox, Ecosystem: "python", Package: "six", InstalledVersion: "1.16.0", Reason: reason,
	})
}

func (l *alarmLog) End() (uint64, <-chan struct{}) { return uint64(len(l.records)), nil }

func (l *alarmLog) Records(_ context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for _, r := range l.records {
			if r.Seq >= f.FromSeq && (f.Sandbox == "" || r.Sandbox == f.Sandbox) && !yield(r, nil) {
				return
			}
		}
	}
}

// ended runs a command that ends well, and gives its error output.
func (s *dataStage) ended(text string) (stderr string) {
	s.t.Helper()
	run := s.open(processService+"Start", shell(text))
	run.started()
	for {
		m := run.next()
		switch {
		case m.Event.Data != nil:
			stderr += string(m.Event.Data.Stderr)
		case m.Event.End != nil:
			if m.Event.End.ExitCode != 0 {
				s.t.Errorf("it ended with %+v", m.Event.End)
			}
			return stderr
		}
	}
}

// TestAnAlarmIsTold: with the end of a command or a cell that came to nothing bad by itself, once,
// to its own sandbox alone, and nothing in it imitates what stands around it.
func TestAnAlarmIsTold(t *testing.T) {
	t.Parallel()
	log := &alarmLog{}
	s := newCellStage(t)
	s.data.alarms = newAlarmNews(log)
	log.add(boxID, "before anybody was there")
	if got := s.ended("true"); got != "" {
		t.Errorf("the control, without an alarm: %q", got)
	}
	log.add("sb-other", "another's")
	log.add(boxID, "its bytes are others\n\x1b[31m\u202e")
	got := s.ended("echo own >&2")
	want := `[cofferdam: ALARM: python six 1.16.0: its bytes are others\n\x1b[31m\u202e; do not use it]`
	if !strings.HasPrefix(got, "own\n") || !strings.Contains(got, want) || strings.Contains(got, "another's") || strings.Contains(got, "before") {
		t.Errorf("%q", got)
	}
	if got := s.ended("true"); got != "" {
		t.Errorf("it is told again: %q", got)
	}
	for i := range 7 {
		log.add(boxID, fmt.Sprintf("alarm %d", i))
	}
	lines := s.cell(`{"code":"echo hi","language":"bash"}`)
	text := fmt.Sprint(lines)
	if lines[len(lines)-1]["type"] != "end_of_execution" || !strings.Contains(text, "alarm 0") || !strings.Contains(text, "alarm 4") || strings.Contains(text, "alarm 5") || !strings.Contains(text, "and 2 ALARMS more, 7 in all") {
		t.Errorf("a cell tells %v", lines)
	}
}
