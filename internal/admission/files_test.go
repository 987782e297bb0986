package admission

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
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
