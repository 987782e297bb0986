package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func finding(value string, outcome dlp.Outcome) dlp.Finding {
	return dlp.Finding{Rule: "gitlab-token", Outcome: outcome, At: 7, Length: len(value), Sum: sha256.Sum256([]byte(value))}
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
			dlp.Finding
		}{
			{PlaceOutput, "cmd-1", finding("one", dlp.Redact)},
			{PlaceOutput, "cmd-1", finding("one", dlp.Redact)},
			{PlaceOutput, "cmd-1", finding("another", dlp.Redact)},
			{PlaceFiles, "/tmp/key", finding("one", dlp.Block)},
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
		if err := h.Found(t.Context(), "sb1", PlaceOutput, "cmd-1", finding(strconv.Itoa(i), dlp.Report)); err != nil {
			t.Fatal(err)
		}
	}
	got := findingsOf(t, h)
	if len(got) != 501 || got[500].Outcome != audit.Exceeded || got[500].Rule != "quota.findings" {
		t.Errorf("%d findings are on record, the last is %+v", len(got), got[len(got)-1])
	}
}

// TestFoundInRequests: a value is one record for each host and place, whatever the request;
// placeholders are told as what is none.
func TestFoundInRequests(t *testing.T) {
	h := newHouse(t, Limits{})
	run := h.run()
	run.Sandbox, run.Placeholders = "sb9", map[string]string{"one": "fake-one", "two": "fake-two"}
	run.Policy = parse(t, "credentials: { secret_scanning: { requests: redact, pii: block } }\n")
	must(t, h.Register(run))
	a, err := h.Scans(t.Context(), door.ScansAsk{Sandbox: "sb9"})
	if err != nil || a.Plan != (dlp.Plan{Secrets: dlp.Redact, Personal: dlp.Block}) || !slices.Equal(a.Placeholders, []string{"fake-one", "fake-two"}) {
		t.Errorf("%+v, %v", a, err)
	}
	one := sha256.Sum256([]byte("one"))
	f := door.Finding{Rule: "gitlab-token", Outcome: dlp.Redact, At: 7, Length: 3, Sum: one[:]}
	ask := func(path, where string) door.FoundAsk {
		return door.FoundAsk{HostPort: door.HostPort{Sandbox: "sb9", Name: "api.example", Port: 443}, Request: exchange.Request{Method: "POST", Path: path}, Where: where, Findings: []door.Finding{f}}
	}
	unseen := ask("/c", "body")
	unseen.Findings, unseen.Unseen, unseen.Refused = nil, "it is encoded (br)", true
	for _, ask := range []door.FoundAsk{ask("/a", "body"), ask("/b", "body"), ask("/a", "header X-Key"), unseen} {
		if a, err := h.FoundInRequest(t.Context(), ask); err != nil || a.RequestID == "" || a.Enough {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	got := findingsOf(t, h)
	if len(got) != 3 || got[0].Rule != door.RuleScanning || got[0].Detail["where"] != "api.example:443 body" || got[0].Detail["request"] != "POST /a" || got[1].Detail["where"] != "api.example:443 header X-Key" {
		t.Fatalf("%+v", got)
	}
	if want := "what looks like a secret (gitlab-token) was found in a request to api.example:443 body: it was redacted"; got[0].Reason != want {
		t.Error(got[0].Reason)
	}
	if want := "what a request to api.example:443 body carries was not scanned: it is encoded (br): it was not sent"; got[2].Reason != want || got[2].Outcome != audit.Blocked || got[2].Detail["name"] != "not-scanned" {
		t.Errorf("%+v", got[2])
	}
	for _, wrong := range []door.Finding{{Rule: "x", Outcome: dlp.Report}, {Rule: "x", Outcome: dlp.Off, Sum: one[:]}, {Rule: "x", Outcome: 9, Sum: one[:]}} {
		f = wrong
		if _, err := h.FoundInRequest(t.Context(), ask("/a", "body")); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	for i := range 600 {
		f = door.Finding{Rule: "email", Class: dlp.Personal, Outcome: dlp.Report, Sum: sha256.New().Sum([]byte(fmt.Sprint(i)))[:32]}
		if a, err := h.FoundInRequest(t.Context(), ask("/a", "body")); err != nil || a.Enough != (i >= 497) {
			t.Fatalf("%d: %+v, %v", i, a, err)
		}
	}
}

// TestFindingsThatAreOnlyObserved say what the policy would have done, on record and in the
// summary.
func TestFindingsThatAreOnlyObserved(t *testing.T) {
	h := newHouse(t, Limits{})
	run := h.run()
	run.Sandbox, run.Run = "sb9", "run9"
	run.Policy = parse(t, "mode: observe\ncredentials: { secret_scanning: { output: block, files: report } }\n")
	must(t, h.Register(run))
	s, err := h.Scanning("sb9")
	if err != nil || s.Output.Secrets != dlp.Report {
		t.Fatalf("%+v, %v", s, err)
	}
	must(t, h.Found(t.Context(), "sb9", PlaceOutput, "cmd-1", finding("one", dlp.Report)))
	must(t, h.Found(t.Context(), "sb9", PlaceFiles, "/tmp/key", finding("one", dlp.Report)))
	got := findingsOf(t, h)
	if len(got) != 2 || got[0].Outcome != audit.Found || got[0].Detail["action"] != "would_block" || got[0].Detail["would"] != "block" || got[1].Detail["action"] != "report" {
		t.Fatalf("%+v", got)
	}
	if want := "it went out; the policy would block it, and only observes (mode: observe)"; !strings.HasSuffix(got[0].Reason, want) || strings.Contains(got[1].Reason, "observe") {
		t.Error(got[0].Reason)
	}
	told, err := h.Summary(t.Context(), "run9")
	if err != nil || len(told.Findings) != 2 || told.Findings[0].Action != "would_block" {
		t.Errorf("%+v, %v", told, err)
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
	if s, err := h.Scanning("sb1"); err != nil || s.Output.Secrets != dlp.Block {
		t.Errorf("%+v, %v", s, err)
	}
}
