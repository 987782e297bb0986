package report

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// runPage is a run's page while it is made.
type runPage struct {
	about    map[string]string
	sections []*section
	found    map[audit.Outcome]int
	missing  int // of the outcome Failed: what no upstream has, or gives
	alarms   int
	broken   int // of the outcome Failed: what an upstream failed to give
}

// refusedText counts what was refused, and beside it what was nobody's refusal here.
func (p *runPage) refusedText() string {
	said := formatCount(p.found[audit.Blocked]+p.found[audit.Failed]-p.missing-p.broken) + " refused"
	if p.missing > 0 {
		said += fmt.Sprintf(", %d missing upstream", p.missing)
	}
	if p.broken > 0 {
		said += fmt.Sprintf(", %d failed upstream", p.broken)
	}
	if n := p.found[audit.WouldDeny] + p.found[audit.WouldHold]; n > 0 {
		said += fmt.Sprintf(", %d let through that the policy, WHICH ONLY OBSERVED, would have refused", n)
	}
	return said
}

// section is a table of a page, for records that it takes.
type section struct {
	table Table
	takes func(audit.Record) bool
	lines map[string]int // rows by what they say, of a table that counts what is said again; nil: of another
}

// timesColumn is how often what a row says was the case; its table says nothing twice.
const timesColumn = "times"

// addRow makes a row, or counts a record in that says what a row says.
func (s *section) addRow(r audit.Record) {
	row := pageCells(r, s.table.Columns)
	if s.lines == nil {
		s.table.Rows = append(s.table.Rows, row)
		return
	}
	said := make([]string, 0, len(s.table.Columns))
	for _, column := range s.table.Columns[2:] { // record and time are of the first
		said = append(said, row[column])
	}
	key, n := strings.Join(said, "\x00"), max(1, r.Count)
	at, known := s.lines[key]
	if !known {
		s.lines[key] = len(s.table.Rows)
		row[timesColumn] = strconv.Itoa(n)
		s.table.Rows = append(s.table.Rows, row)
		return
	}
	before, _ := strconv.Atoi(s.table.Rows[at][timesColumn]) // written above
	s.table.Rows[at][timesColumn] = strconv.Itoa(before + n)
}

// newRunPage makes a page with a section for everything that a run can have on record; a record
// goes to the first one that takes it. Questions to upstreams stand behind decisions: for one package that is admitted with
// what it requires, the metadata of many versions is read.
func newRunPage() *runPage {
	var p runPage
	p.about, p.found = map[string]string{}, map[audit.Outcome]int{}
	add := func(title string, takes func(audit.Record) bool, columns ...string) {
		t := Table{Title: title, Columns: append([]string{"record", "time"}, columns...), Rows: []map[string]string{}}
		s := &section{table: t, takes: takes}
		if slices.Contains(columns, timesColumn) {
			s.lines = map[string]int{}
		}
		p.sections = append(p.sections, s)
	}
	kind := func(k audit.Kind, outcomes ...audit.Outcome) func(audit.Record) bool {
		return func(r audit.Record) bool {
			return r.Kind == k && (len(outcomes) == 0 || slices.Contains(outcomes, r.Outcome))
		}
	}
	add("Alarms", audit.Record.IsAlarm, "what", "outcome", "reason", "rule")
	add("Past a limit", func(r audit.Record) bool { return r.Outcome == audit.Exceeded }, "what", "reason", "rule")
	add("Commands", kind(audit.KindCommand), "what", "outcome", "exit", "reason", "rule")
	add("Served", kind(audit.KindPackage, audit.Served, audit.Aborted), "package", "version", "requested", "outcome", "resolved by", "request", "sha256", "source")
	add("Built apart", kind(audit.KindPackage, audit.Built), "package", "version", "file", "sha256", "source")
	add("Installed", kind(audit.KindPackage, audit.Installed), "package", "version", "requested", "resolved by", "request", "sha256", "reason")
	add("Failed upstream", func(r audit.Record) bool { return r.OfUpstream() && r.Rule == audit.RuleFailed }, "package", "version", timesColumn, "source", "reason")
	add("Missing upstream", audit.Record.OfUpstream, "package", "version", timesColumn, "source", "reason")
	add("Let through by a policy that only observes", kind(audit.KindPackage, audit.WouldDeny, audit.WouldHold), "package", "version", "outcome", timesColumn, "reason", "rule")
	add("Refused", kind(audit.KindPackage, audit.Blocked, audit.Failed), "package", "version", "outcome", timesColumn, "reason", "rule")
	add("Withheld from indexes", kind(audit.KindPackage, audit.Withheld), "package", timesColumn, "reason", "rule")
	add("Planned", kind(audit.KindPackage, audit.Planned), "package", "version", "resolved by", "reason", "rule")
	add("Shown", kind(audit.KindPackage, audit.Shown), "package", "version", "kind", "file", "sha256", "source")
	add("Held and answered", func(r audit.Record) bool { return r.Kind == audit.KindApproval || r.Outcome == audit.Pending }, "request", "answer", "by", "package", "version", "scope", "expires", "reason")
	add("Copies", kind(audit.KindSandbox, audit.Snapshotted, audit.Restored), "sandbox", "outcome", "copy of", "snapshot", "came with", "digest")
	add("Frozen", kind(audit.KindSandbox, audit.Frozen, audit.Thawed, audit.Failed), "sandbox", "outcome", "request", "reason")
	requests := kind(audit.KindNetwork, audit.Finished)
	add("Requests", func(r audit.Record) bool { return requests(r) && r.Detail["request"] != "" }, "what", "port", "sent", "status", "bytes out", "bytes in", "rule")
	add("Connections", kind(audit.KindNetwork, audit.Started, audit.Finished), "what", "port", "outcome", "address", "bytes out", "bytes in", "reason", "rule")
	add("Files", kind(audit.KindFile), "what", "outcome", "bytes", "content sha256", "reason")
	add("Tools", kind(audit.KindTool), "what", "outcome", timesColumn, "request", "reason", "rule")
	add("Names looked up", kind(audit.KindNetwork, audit.Asked), "what", timesColumn)
	add("Names", kind(audit.KindNetwork), "what", "outcome", timesColumn, "reason")
	add("Asked upstream", kind(audit.KindPackage, audit.Asked), "package", "version", timesColumn, "file", "source")
	add("Other", func(r audit.Record) bool {
		return r.Kind != audit.KindSandbox || r.Outcome != audit.Started && r.Outcome != audit.Finished
	}, "what", "outcome", "reason")
	return &p
}

// reportRun tells everything about one run.
func reportRun(ctx context.Context, a *asking) error {
	seqs, err := a.related(ctx)
	if err != nil {
		return err
	}
	p := newRunPage()
	for r, err := range a.view.Records(ctx, seqs) {
		if err != nil {
			return err
		}
		text, err := recordJSON(r)
		if err != nil {
			return err
		}
		a.report.Records = append(a.report.Records, text)
		p.takeRecord(r)
	}
	a.report.Found = len(a.report.Records)
	if a.report.Found == 0 {
		return fault.New(fault.ErrNotFound, "there is no run %q on record", a.question.Run)
	}
	a.report.Tables = append(a.report.Tables, p.headTable())
	for _, s := range p.sections {
		if len(s.table.Rows) > 0 {
			a.report.Tables = append(a.report.Tables, s.table)
		}
	}
	a.report.Verdict = fmt.Sprintf("%s: %s served, %s installed, %s, %s; %s.", countOf(a.report.Found, "record"),
		formatCount(p.found[audit.Served]), formatCount(p.found[audit.Installed]), p.refusedText(),
		countOf(p.alarms, "alarm"), p.endText())
	return nil
}

func (p *runPage) takeRecord(r audit.Record) {
	if r.IsAlarm() {
		p.alarms++
	}
	if r.Detail[audit.DetailEvent] != audit.EventRepeats {
		p.found[r.Outcome]++
		switch {
		case r.Rule == audit.RuleFailed:
			p.broken++
		case r.OfUpstream():
			p.missing++
		}
	}
	p.learnRun(r)
	for _, s := range p.sections {
		if s.takes(r) {
			s.addRow(r)
			return
		}
	}
}

// learnRun takes what a record says about the run as a whole.
func (p *runPage) learnRun(r audit.Record) {
	once := func(what, text string) {
		if text != "" && p.about[what] == "" {
			p.about[what] = text
		}
	}
	if r.Kind != audit.KindSandbox {
		return
	}
	once("run", r.Run)
	once("policy digest", r.Policy)
	switch r.Outcome {
	case audit.Started:
		once("who", personal(r, r.User))
		once("token", r.OwnerToken())
		once("task", personal(r, r.Task))
		once("policy", personal(r, r.Detail["policy_source"]))
		once("mode", r.Detail["mode"])
		once("template", r.Detail["template"])
		once("lockfiles", strings.ReplaceAll(r.Detail["lockfiles"], "\n", "; "))
		once("lockfiles mode", strings.TrimSpace(r.Detail["lockfiles_mode"]+" "+trusted(r)))
		once("began", r.Time.UTC().Format(time.RFC3339))
		p.about["sandboxes"] = strings.TrimSpace(p.about["sandboxes"] + " " + r.Sandbox)
		delete(p.about, "ended") // another sandbox of the run lives
	case audit.Finished:
		p.about["ended"] = r.Time.UTC().Format(time.RFC3339) + " " + r.Reason
	default: // of a part of the run
	}
}

func trusted(r audit.Record) string {
	if r.Detail["lockfiles_trusted"] == "true" {
		return "trusted"
	}
	return ""
}

func (p *runPage) endText() string {
	if p.about["ended"] == "" {
		return "its end is not on record"
	}
	return "it ended at " + p.about["ended"]
}

func (p *runPage) headTable() Table {
	t := Table{Columns: []string{"about", "is"}, Rows: []map[string]string{}}
	for _, what := range []string{"run", "who", "token", "task", "policy", "policy digest", "mode", "lockfiles", "lockfiles mode", "template", "sandboxes", "began", "ended"} {
		if text := p.about[what]; text != "" {
			t.Rows = append(t.Rows, map[string]string{"about": what, "is": text})
		}
	}
	return t
}

// pageCells are a record's columns on a page.
func pageCells(r audit.Record, columns []string) map[string]string {
	row := cellsOf(r, columns)
	for column, text := range map[string]string{
		"port": r.Detail["port"], "address": r.Detail["address"], "sent": r.Detail["request"], "status": r.Detail["status"], "bytes out": r.Detail["bytes_out"], "bytes in": r.Detail["bytes_in"],
		"copy of": r.Detail["copy_of"], "snapshot": r.Detail["snapshot"], "came with": r.Detail["came_with"], "digest": copyDigest(r),
		"bytes": fileBytes(r), "content sha256": r.Detail[audit.DetailContentSHA256],
		"kind": r.Detail["kind"], "file": r.File, "what": describeRecord(r), "exit": exitText(r), "answer": answerText(r), "by": answererText(r), "scope": r.Detail["scope"], "expires": r.Detail["expires"], "sandbox": r.Sandbox,
	} {
		if text != "" && slices.Contains(columns, column) {
			row[column] = text
		}
	}
	return row
}

// copyDigest is that of a snapshot's record.
func copyDigest(r audit.Record) string {
	if r.Kind != audit.KindSandbox {
		return ""
	}
	return r.Detail["digest"]
}

// fileBytes is how many bytes of a file went in or out, once that has ended.
func fileBytes(r audit.Record) string {
	if r.Kind != audit.KindFile || r.Outcome == audit.Started || r.Detail[audit.DetailDirection] == "" {
		return ""
	}
	return strconv.FormatInt(r.Size, 10)
}

func describeRecord(r audit.Record) string {
	switch {
	case r.Kind == audit.KindFile:
		return r.FileText()
	case len(r.Command) > 0:
		return "$ " + strings.Join(r.Command, " ")
	case r.Detail["name"] != "":
		return r.Detail["name"]
	case r.Package != "":
		return strings.TrimSpace(packageName(r) + " " + r.InstalledVersion)
	case r.Detail["event"] != "":
		return string(r.Kind) + " " + r.Detail["event"]
	}
	return string(r.Kind)
}

func exitText(r audit.Record) string {
	if r.Exit == nil {
		return ""
	}
	text := strconv.Itoa(*r.Exit)
	if signal := r.Detail["signal"]; signal != "" {
		text += " (" + signal + ")"
	}
	return text
}
