package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestPathsOnRecord: a path is told as it is, or with escapes where it can't be, and at its
// length at most.
func TestPathsOnRecord(t *testing.T) {
	h := newHouse(t, Limits{})
	for path, want := range map[string]string{
		"notes.txt":                 "notes.txt",
		"a\xff\xfeb":                `a\xff\xfeb`,
		"line\nbreak":               "line\nbreak", // JSON escapes it, and so does who shows it
		strings.Repeat("ä/", 4_000): "",
	} {
		begun, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileMove, Path: path, To: path})
		must(t, err)
		must(t, begun.End(t.Context(), FileEnd{Outcome: audit.Finished}))
		all := h.records(t)
		for _, r := range all[len(all)-2:] {
			for _, got := range []string{r.File, r.Detail[audit.DetailTo]} {
				if want != "" && got != want || !utf8.ValidString(got) || len(got) > maxFilePath {
					t.Errorf("%.40q is %.40q on record", path, got)
				}
			}
			if r.RequestID != "" {
				t.Errorf("nobody is shown the id %s", r.RequestID)
			}
		}
	}
}

// TestAFileHasOneEnd: the sandbox's end and its own are one record, whichever comes first, and
// nothing is under way after that.
func TestAFileHasOneEnd(t *testing.T) {
	h := newHouse(t, Limits{})
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	ended, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileRead, Path: "ended"})
	must(t, err)
	open, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileRead, Path: "open"})
	must(t, err)
	must(t, ended.End(t.Context(), FileEnd{Outcome: audit.Finished}))
	if h.FileUnderWay(ended.record.Seq) || !h.FileUnderWay(open.record.Seq) {
		t.Error("what is under way is not known")
	}
	must(t, h.SandboxEnded(t.Context(), "sb1", "it was removed"))
	h.Unregister("sb1")
	must(t, open.End(t.Context(), FileEnd{Outcome: audit.Finished}))
	if h.FileUnderWay(open.record.Seq) {
		t.Error("what has ended is under way")
	}
	ends := map[string]audit.Outcome{}
	for _, r := range h.records(t, audit.Finished, audit.Aborted) {
		if r.Kind == audit.KindFile {
			ends[r.File] += r.Outcome
		}
	}
	if ends["ended"] != audit.Finished || ends["open"] != audit.Aborted {
		t.Errorf("the ends are %v", ends)
	}
	if _, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileRead, Path: "late"}); err == nil {
		t.Error("a file of a sandbox that is gone is read")
	}
}

// endingLog takes no end of a file, and has something happen while that is tried.
type endingLog struct {
	audit.Log
	meanwhile func()
	tried     int
	takes     bool
}

func (l *endingLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if l.takes || r.Kind != audit.KindFile || r.Outcome == audit.Started {
		return l.Log.Append(ctx, r)
	}
	l.tried++
	l.meanwhile()
	return r, errFull
}

// TestAnEndThatCantBeWritten: a file whose end neither its sandbox's end nor its own could put on
// record is not under way for ever, and has one when the log takes records again; and a log that takes
// nothing is not asked more often because there are more files.
func TestAnEndThatCantBeWritten(t *testing.T) {
	h := newHouse(t, Limits{})
	log := &endingLog{Log: h.log}
	h.Controller = New(Config{Log: log, Clock: h})
	must(t, h.Register(h.run()))
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	var all []*FileBegun
	for _, path := range []string{"a", "b", "c"} {
		b, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileRead, Path: path})
		must(t, err)
		all = append(all, b)
	}
	log.meanwhile = func() {
		log.meanwhile = func() {}
		for _, b := range all {
			_ = b.End(t.Context(), FileEnd{Outcome: audit.Finished})
		}
	}
	if err := h.SandboxEnded(t.Context(), "sb1", "it was removed"); !errors.Is(err, errFull) {
		t.Errorf("the sandbox's end: %v", err)
	}
	for _, b := range all {
		if h.FileUnderWay(b.record.Seq) {
			t.Errorf("%s is under way, and nobody is there who ends it", b.record.File)
		}
	}
	of := map[string]int{"1 file": 1, "40 files": 40}
	tried := map[string]int{}
	for name, n := range of {
		for range n {
			_, err := h.FileBegins(t.Context(), "sb1", channel.File{Op: channel.FileRead, Path: "open"})
			must(t, err)
		}
		before := log.tried
		if err := h.SandboxEnded(t.Context(), "sb1", "it was removed"); !errors.Is(err, errFull) {
			t.Errorf("the sandbox's end: %v", err)
		}
		tried[name] = log.tried - before
	}
	if tried["1 file"] != tried["40 files"] {
		t.Errorf("how often a log that takes nothing is asked: %v", tried)
	}
	log.takes = true
	h.WriteOverdue(t.Context())
	ends := map[string]int{}
	for _, r := range h.records(t) {
		if r.Kind == audit.KindFile && r.Outcome != audit.Started {
			ends[r.Detail[records.DetailBegan]]++
		}
	}
	if len(ends) != len(all)+41 {
		t.Errorf("%d of %d files have an end", len(ends), len(all)+41)
	}
	for began, n := range ends {
		if n != 1 {
			t.Errorf("what began with record %s has %d ends", began, n)
		}
	}
}
