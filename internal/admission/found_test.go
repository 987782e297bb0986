package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/scan"
)

func finding(value string, outcome scan.Outcome) scan.Finding {
	return scan.Finding{Rule: "gitlab-token", Outcome: outcome, At: 7, Length: len(value), Sum: sha256.Sum256([]byte(value))}
}

func findingsOf(t *testing.T, h *house) (found []audit.Record) {
	t.Helper()
	for r, err := range h.log.Records(t.Context(), audit.Filter{Kinds: []audit.Kind{audit.KindFinding}}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r)
	}
	return found
}

// TestFound: a value is one record in each place, however often it is looked at and whoever
// is the daemon; it is told in why and in the summary, and it is nowhere itself.
func TestFound(t *testing.T) {
	h := newHouse(t, Limits{})
	h.key = bytes.Repeat([]byte{7}, sha256.Size)
	tell := func(c *Controller) {
		t.Helper()
		for _, f := range []struct {
			place Place
			where string
			scan.Finding
		}{
			{PlaceOutput, "cmd-1", finding("one", scan.Redact)},
			{PlaceOutput, "cmd-1", finding("one", scan.Redact)},
			{PlaceOutput, "cmd-1", finding("another", scan.Redact)},
			{PlaceFiles, "/tmp/key", finding("one", scan.Block)},
		} {
			if err := c.Found(t.Context(), "sb1", f.place, f.where, f.Finding); err != nil {
				t.Fatal(err)
			}
		}
	}
	tell(h.Controller)
	again := New(Config{Log: h.log, Clock: h, FindingsKey: h.key})
	if err := again.Restore(t.Context(), h.run()); err != nil {
		t.Fatal(err)
	}
	tell(again)

	got := findingsOf(t, h)
	if len(got) != 3 || got[0].Outcome != audit.Found || got[2].Outcome != audit.Blocked || got[2].Rule != "credentials.secret_scanning.files" {
		t.Fatalf("%+v", got)
	}
	if d := got[0].Detail; d["name"] != "gitlab-token" || d["where"] != "cmd-1" || d["at"] != "7" || d["length"] != "3" || d["action"] != "redact" || d["keyed"] != got[2].Detail["keyed"] || d["keyed"] == got[1].Detail["keyed"] {
		t.Errorf("%+v", got)
	}
	sum := sha256.Sum256([]byte("one"))
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), hex.EncodeToString(sum[:8])) {
		t.Errorf("a digest without a key is on record: %s, %v", text, err)
	}
	why, err := h.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(why) != 3 || !strings.Contains(why[0].Reason, "(gitlab-token) was found in the output of the command cmd-1: it was redacted") || why[0].Count != 2 {
		t.Errorf("%+v, %v", why, err)
	}
	told, err := h.Summary(t.Context(), "run1")
	if err != nil || len(told.Findings) != 2 || told.Findings[0] != (FindingLine{What: "gitlab-token", Where: "cmd-1", Action: "redact", Count: 2}) {
		t.Errorf("%+v, %v", told.Findings, err)
	}
}

// TestFindingsAreBounded: a command that prints secrets without end fills no log.
func TestFindingsAreBounded(t *testing.T) {
	h := newHouse(t, Limits{})
	for i := range 700 {
		if err := h.Found(t.Context(), "sb1", PlaceOutput, "cmd-1", finding(strconv.Itoa(i), scan.Report)); err != nil {
			t.Fatal(err)
		}
	}
	got := findingsOf(t, h)
	if len(got) != 501 || got[500].Outcome != audit.Exceeded || got[500].Rule != "quota.findings" {
		t.Errorf("%d findings are on record, the last is %+v", len(got), got[len(got)-1])
	}
}

// TestScanningFollowsThePolicy: what narrows a run makes its scanning stricter at once.
func TestScanningFollowsThePolicy(t *testing.T) {
	h := newHouse(t, Limits{})
	if s, err := h.Scanning("sb1"); err != nil || !s.Output.Off() || !s.Files.Off() {
		t.Errorf("%+v, %v", s, err)
	}
	if err := h.NarrowPolicy(t.Context(), "sb1", parse(t, "credentials: { secret_scanning: { output: block } }\n")); err != nil {
		t.Fatal(err)
	}
	if s, err := h.Scanning("sb1"); err != nil || s.Output.Secrets != scan.Block {
		t.Errorf("%+v, %v", s, err)
	}
}
