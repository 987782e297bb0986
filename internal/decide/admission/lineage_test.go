package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// copyAs registers a copy of sb1 as it is now, through the form in which a
// snapshot keeps its facts.
func (h *house) copyAs(tb testing.TB, id string, change func(*Run)) error {
	tb.Helper()
	lineage, err := h.Lineage(tb.Context(), "sb1")
	must(tb, err)
	data, err := json.Marshal(lineage.Facts)
	must(tb, err)
	var facts *ledger.Facts
	must(tb, json.Unmarshal(data, &facts))
	run := h.run()
	run.Sandbox, run.Run, run.Ancestors = id, "run-"+id, lineage.Ancestors
	if change != nil {
		change(&run)
	}
	return h.RegisterCopy(tb.Context(), run, facts)
}

func (h *house) start(tb testing.TB) {
	tb.Helper()
	must(tb, h.SandboxStarted(tb.Context(), "sb1"))
}

// of are the records of one sandbox, one line each.
func (h *house) of(tb testing.TB, sandbox string, outcomes ...audit.Outcome) []string {
	tb.Helper()
	var lines []string
	for _, r := range h.records(tb, outcomes...) {
		if r.Sandbox == sandbox {
			lines = append(lines, strings.TrimSpace(string(r.Outcome)+" "+r.Package+" "+r.InstalledVersion))
		}
	}
	return lines
}

func servingIn(sandbox, name, version string) door.ServeAsk {
	ask := serving(name, version)
	ask.Sandbox = sandbox
	return ask
}

func judgingIn(sandbox, name, version string) door.JudgeAsk {
	ask := judging(name, version)
	ask.Sandbox = sandbox
	return ask
}

// TestACopyAccountsForWhatCameInIt: its inventory has no alarm and no second
// record, what is new in it has, and so it is after a restart.
func TestACopyAccountsForWhatCameInIt(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	_, err = h.Serve(t.Context(), serving("numpy", "1.26.0")) // served, and not found before the copy
	must(t, err)
	must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"))})))
	must(t, h.copyAs(t, "sb2", nil))
	disk := provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"), on("python numpy 1.26.0", "/n"), on("python six 1.16.0", "/s"))}
	want := []string{"alarm six 1.16.0", "installed numpy 1.26.0", "installed six 1.16.0"}
	for range 2 {
		must(t, installed(h.Installed(t.Context(), "sb2", disk)))
		if diff := cmp.Diff(want, h.of(t, "sb2", audit.Installed, audit.Alarm)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		again := New(h.config) // a daemon that starts anew
		run := h.run()
		run.Sandbox, run.Run, run.Ancestors = "sb2", "run-sb2", h.tenants.by["sb2"].run.Ancestors
		must(t, again.Restore(t.Context(), run))
		h.Controller = again
	}
}

// TestACopyEndsItsLineageWhereItWasMade: what its source got afterwards is not in
// it.
func TestACopyEndsItsLineageWhereItWasMade(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	must(t, h.copyAs(t, "sb2", nil))
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	ancestors := h.tenants.by["sb2"].run.Ancestors
	run := h.run()
	run.Sandbox, run.Ancestors = "sb3", ancestors
	must(t, h.RegisterCopy(t.Context(), run, nil))
	must(t, h.copyAs(t, "sb4", nil)) // of the same sandbox, later
	for sandbox, want := range map[string]int{"sb2": 1, "sb3": 1, "sb4": 0} {
		must(t, installed(h.Installed(t.Context(), sandbox, provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"))})))
		if alarms := h.of(t, sandbox, audit.Alarm); len(alarms) != want {
			t.Errorf("%s: %v", sandbox, alarms)
		}
	}
}

// TestACopyOfACopy has the ledgers of both.
func TestACopyOfACopy(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	must(t, h.copyAs(t, "sb2", nil))
	must(t, h.SandboxStarted(t.Context(), "sb2"))
	_, err = h.Serve(t.Context(), servingIn("sb2", "numpy", "1.26.0"))
	must(t, err)
	lineage, err := h.Lineage(t.Context(), "sb2")
	must(t, err)
	if len(lineage.Ancestors) != 2 || lineage.Ancestors[0].Sandbox != "sb1" || lineage.Ancestors[1].Sandbox != "sb2" {
		t.Fatalf("ancestors: %+v", lineage.Ancestors)
	}
	run := h.run()
	run.Sandbox, run.Ancestors = "sb3", lineage.Ancestors
	must(t, h.RegisterCopy(t.Context(), run, lineage.Facts))
	must(t, installed(h.Installed(t.Context(), "sb3", provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"), on("python numpy 1.26.0", "/n"))})))
	if alarms := h.of(t, "sb3", audit.Alarm); len(alarms) != 0 {
		t.Errorf("alarms: %v", alarms)
	}
}

// TestACopyKnowsWhatMetadataRequires, so that a client that has read it gets the
// dependency, if the copy's own policy admits that.
func TestACopyKnowsWhatMetadataRequires(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	g.start(t)
	g.page(t, "root", map[string][]string{"1.0.0": {"leaf ^2.0.0"}}, "1.0.0")
	g.expect(t, true, node("root", "1.0.0"))
	must(t, g.Edges(t.Context(), "sb1", node("root", "1.0.0"), []door.Requirement{{Name: "twig", Specifier: "^3.0.0"}}))
	g.expect(t, true, node("leaf", "2.1.0"), node("twig", "3.1.0"))
	must(t, g.copyAs(t, "sb2", nil))
	must(t, g.copyAs(t, "sb3", func(r *Run) { r.Policy = parse(t, "allowed_packages: { node: [ { name: root } ] }") }))
	for sandbox, want := range map[string]bool{"sb2": true, "sb3": false} {
		for _, ref := range []pkgref.Ref{node("leaf", "2.1.0"), node("twig", "3.1.0")} {
			a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: sandbox, Package: ref, File: archive(ref)}})
			must(t, err)
			if a.Decision.Allowed() != want {
				t.Errorf("%s in %s: %+v", ref, sandbox, a.Decision)
			}
		}
	}
}

// TestACopyShowsItsSourcesRefusals, and puts its own on record.
func TestACopyShowsItsSourcesRefusals(t *testing.T) {
	h := newHouse(t, Limits{Records: 3})
	h.start(t)
	_, err := h.Judge(t.Context(), judging("evil", "1.0"))
	must(t, err)
	must(t, h.copyAs(t, "sb2", nil))
	why := func() []string {
		list, err := h.Refusals(t.Context(), "sb2", "", 0)
		must(t, err)
		var names []string
		for _, r := range list {
			names = append(names, r.Package.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"evil"}, why()); diff != "" {
		t.Errorf("before: %s", diff)
	}
	for range 3 { // its quota is its own
		_, err = h.Judge(t.Context(), judgingIn("sb2", "evil", "1.0"))
		must(t, err)
	}
	if diff := cmp.Diff([]string{"evil"}, why()); diff != "" {
		t.Errorf("after: %s", diff)
	}
	if got := h.of(t, "sb2", audit.Blocked); len(got) != 1 {
		t.Errorf("on record: %v", got)
	}
}

// TestACopyWithoutRecords is refused: nobody knows what is in it.
func TestACopyWithoutRecords(t *testing.T) {
	h := newHouse(t, Limits{})
	if _, err := h.Lineage(t.Context(), "sb1"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a lineage without a record: %v", err)
	}
	h.start(t)
	run := h.run()
	run.Sandbox = "sb2"
	for what, ancestors := range map[string][]Ancestor{
		"of nobody":            {{Sandbox: "sb9", From: 0, Upto: 0}},
		"with a wrong begin":   {{Sandbox: "sb1", From: 1, Upto: 7}},
		"of the log's future":  {{Sandbox: "sb1", From: 9, Upto: 9}},
		"without any":          nil,
		"of one who is unsaid": {{From: 0, Upto: 0}, {Sandbox: "sb9"}},
	} {
		run.Ancestors = ancestors
		if err := h.RegisterCopy(t.Context(), run, nil); err == nil {
			t.Errorf("a copy %s was registered", what)
		}
	}
	must(t, h.copyAs(t, "sb2", nil)) // the failures left nothing behind
	deep := h.run()
	for range maxAncestors {
		deep.Ancestors = append(deep.Ancestors, Ancestor{Sandbox: "sb1"})
	}
	deep.Sandbox = "sb3"
	must(t, h.RegisterCopy(t.Context(), deep, nil))
	must(t, h.SandboxStarted(t.Context(), "sb3"))
	if _, err := h.Lineage(t.Context(), "sb3"); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "64 times over") {
		t.Errorf("a copy of very many: %v", err)
	}
}

// TestACutStaysCut: a copy is no way to a new quota.
func TestACutStaysCut(t *testing.T) {
	h := newHouse(t, Limits{Records: 1})
	h.start(t)
	for _, name := range []string{"evil", "worse"} {
		_, _ = h.Judge(t.Context(), judging(name, "1.0")) // the second is one too many
	}
	must(t, h.copyAs(t, "sb2", nil))
	if _, err := h.Serve(t.Context(), servingIn("sb2", "requests", "2.31.0")); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a copy of what was cut: %v", err)
	}
}

// TestRecheck: malware and the blocklist burn what was let in; ages, new vulnerabilities and a
// list that has become shorter do not.
func TestRecheck(t *testing.T) {
	h := newHouse(t, Limits{})
	advisories := &gazette{}
	h.config.Advisories = advisories
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"))})))
	other := func(id, document string) error {
		must(t, h.copyAs(t, id, func(r *Run) { r.Policy = parse(t, document) }))
		return h.Recheck(t.Context(), id)
	}
	must(t, h.Recheck(t.Context(), "sb1"))
	must(t, other("sb2", "packages: { default: deny, min_release_age: 3000d }"))
	advisories.weaken("1", "requests", flawed("GHSA-1", policy.SeverityCritical, "3.0"))
	must(t, other("weak", "packages: { default: allow, vulnerabilities: { deny: low } }"))
	if err := other("sb3", `blocked_packages: { python: [ { name: requests, version: "<2.32" } ] }`); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "requests") || !strings.Contains(err.Error(), "blocklist") {
		t.Errorf("what the copy's policy blocks: %v", err)
	}
	if got := h.of(t, "sb3", audit.Blocked); len(got) != 1 || got[0] != "blocked requests 2.31.0" {
		t.Errorf("on record: %v", got)
	}
	advisories.publish("2", "requests", advisory.Facts{Malware: []policy.Malware{{ID: "MAL-2026-7", Versions: []string{"2.31.0"}}}})
	for range 2 {
		if err := h.Recheck(t.Context(), "sb1"); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "requests") || !strings.Contains(err.Error(), "MAL-2026-7") {
			t.Errorf("malware: %v", err)
		}
	}
	if got := h.records(t, audit.Blocked); len(got) != 2 || got[1].Detail["alarm"] != "true" || got[1].RequestID == "" {
		t.Errorf("on record: %+v", got)
	}
	advisories.publish("3", "requests", advisory.Facts{Malware: []policy.Malware{{ID: "MAL-2026-7", Versions: []string{"2.30.0"}}}})
	must(t, h.Recheck(t.Context(), "sb1"))
	advisories.err = errors.New("the disk is gone")
	if err := h.Recheck(t.Context(), "sb1"); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("without facts: %v", err)
	}
}

// TestRecheckByEachPolicy: what a policy blocks that narrows a sandbox's own keeps it from going
// on, also where its own would say another thing of the release today, which keeps nothing.
func TestRecheckByEachPolicy(t *testing.T) {
	for what, own := range map[string]string{
		"one that allows":                 "packages: { default: allow }",
		"one without its database":        "packages: { default: allow, vulnerabilities: { deny: critical } }",
		"one whose dependency was served": "packages: { default: deny }",
	} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{})
			h.start(t)
			_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
			must(t, err)
			must(t, h.copyAs(t, "sb2", func(r *Run) { r.Policy = parse(t, own) }))
			must(t, h.Recheck(t.Context(), "sb2"))
			must(t, h.NarrowPolicy(t.Context(), "sb2", parse(t, "packages: { default: allow }\nblocked_packages: { python: [ { name: requests } ] }")))
			if err := h.Recheck(t.Context(), "sb2"); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "blocklist") {
				t.Errorf("it goes on: %v", err)
			}
		})
	}
}

// answering is a queue with these answers, whatever is asked.
type answering struct {
	*queue
	answers []policy.Approval
}

func (a *answering) Grants(context.Context, pkgref.Ref, approval.Asker) ([]policy.Approval, string, error) {
	return a.answers, "", nil
}

// TestRecheckOfACopyUnderAnotherPolicy: what came under another policy than the copy's
// must be on its lists, or wanted by what is, or approved by a person.
func TestRecheckOfACopyUnderAnotherPolicy(t *testing.T) {
	h := newHouse(t, Limits{})
	queue := &answering{queue: newQueue()}
	h.config.Approvals = queue
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	for name, c := range map[string]struct {
		document, why string
		answers       []policy.Approval
	}{
		"the same":         {document: ""},
		"another that has": {document: "packages: { default: deny }\nallowed_packages: { python: [ { name: requests } ] }"},
		"an older age":     {document: "packages: { default: allow, min_release_age: 3000d }"},
		"a shorter list":   {document: "packages: { default: deny }", why: "default"},
		"another version":  {document: "packages: { default: deny }\nallowed_packages: { python: [ { name: requests, version: '<2' } ] }", why: "requests"},
		"a question":       {document: "packages: { default: hold }", why: "default"},
		"an answer":        {document: "packages: { default: hold }", answers: []policy.Approval{{ID: "ap-1", Version: "2.31.0", By: "ann", Digests: []string{"sha256:" + hexOf("requests2.31.0")}}}},
		"another file's":   {document: "packages: { default: hold }", answers: []policy.Approval{{ID: "ap-1", Version: "2.31.0", By: "ann", Digests: []string{"sha256:" + hexOf("other")}}}, why: "default"},
		"a denial":         {document: "packages: { default: hold }", answers: []policy.Approval{{ID: "ap-1", Version: "2.31.0", By: "ann", Denied: true}}, why: "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			id := "sb-" + strings.ReplaceAll(name, " ", "-")
			queue.answers = c.answers
			must(t, h.copyAs(t, id, func(r *Run) {
				if c.document != "" {
					r.Policy = parse(t, c.document)
				}
			}))
			err := h.RecheckCopy(t.Context(), id)
			if c.why == "" {
				must(t, err)
			} else if !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want it refused for %q", err, c.why)
			}
			if got := h.of(t, id, audit.Blocked); (len(got) > 0) != (c.why != "") {
				t.Errorf("on record: %v", got)
			}
			must(t, h.Recheck(t.Context(), id)) // once it lives, lists count where it asks
		})
	}
}

// TestRecheckEndsWhatIsToEnd: a sandbox that its policy ends has no copies that go
// on.
func TestRecheckEndsWhatIsToEnd(t *testing.T) {
	h := newHouse(t, Limits{})
	h.Unregister("sb1")
	h.policy = parse(t, "packages: { unaccounted: end }")
	must(t, h.Register(h.run()))
	h.start(t)
	must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: listing(on("python made-up 1.0", "/x"))})))
	must(t, h.copyAs(t, "sb2", nil))
	if err := h.Recheck(t.Context(), "sb2"); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "made-up") {
		t.Errorf("a copy of what is to end: %v", err)
	}
}

// TestCopiesOnRecord: of what, with what in it, and which snapshot it is.
func TestCopiesOnRecord(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: listing(on("python requests 2.31.0", "/r"))})))
	made := Copy{Snapshot: "snap1", Digest: "sha256:1", Contents: "memory", Bytes: 20}
	seq, err := h.SandboxSnapshotted(t.Context(), "sb1", made)
	must(t, err)
	made.Of = "sb1"
	must(t, h.SnapshotOnRecord(t.Context(), seq, made))
	for what, other := range map[string]Copy{
		"digest": {Snapshot: "snap1", Digest: "sha256:2", Of: "sb1"}, "id": {Snapshot: "snap2", Digest: "sha256:1", Of: "sb1"}, "sandbox": {Snapshot: "snap1", Digest: "sha256:1", Of: "sb2"},
	} {
		if err := h.SnapshotOnRecord(t.Context(), seq, other); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if err := h.SnapshotOnRecord(t.Context(), seq-1, made); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("another record: %v", err)
	}
	if err := h.SnapshotOnRecord(t.Context(), seq+100, made); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a record that is not there: %v", err)
	}
	must(t, h.copyAs(t, "sb2", nil))
	must(t, h.SandboxStarted(t.Context(), "sb2"))
	must(t, h.SandboxRestored(t.Context(), "sb2", made))
	must(t, h.CommandCopied(t.Context(), "sb2", "cmd-1", "sb1", []string{"python3", "work.py"}))
	must(t, h.CommandFinished(t.Context(), "sb2", "cmd-1", channel.Exit{Code: 3}))
	restored := h.records(t, audit.Restored)
	if len(restored) != 2 || restored[0].Detail["snapshot"] != "snap1" || restored[0].Detail["copy_of"] != "sb1" || !strings.Contains(restored[0].Detail["came_with"], "requests 2.31") || restored[0].Run != "run-sb2" {
		t.Errorf("restored: %+v", restored)
	}
	if end := h.records(t, audit.Finished); len(end) != 1 || len(end[0].Command) != 2 || end[0].RequestID != restored[1].RequestID {
		t.Errorf("the command's end: %+v", end)
	}
	sum, err := h.Summary(t.Context(), "run-sb2")
	must(t, err)
	if !strings.Contains(sum.CopyOf, "snapshot snap1 of sandbox sb1") || !strings.Contains(sum.CopyOf, "python requests 2.31") || len(sum.Installed) != 0 {
		t.Errorf("the summary: %+v", sum)
	}
}

// TestLedgersAreForgotten when there are too many, and read again.
func TestLedgersAreForgotten(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	must(t, h.copyAs(t, "sb2", nil))
	must(t, h.SandboxStarted(t.Context(), "sb2"))
	one := h.ledgers.takeLedger(Ancestor{Sandbox: "sb1"})
	one.records = append(one.records, make([]audit.Record, maxLedgers)...)
	h.ledgers.countGrowth(one)
	lineage, err := h.Lineage(t.Context(), "sb2")
	must(t, err)
	_, err = h.ledgers.readAncestor(t.Context(), h.log, lineage.Ancestors[1])
	must(t, err)
	if h.ledgers.of["sb1"] != nil || h.ledgers.size > maxLedgers {
		t.Errorf("%d records are kept", h.ledgers.size)
	}
	records, err := h.ledgers.readAncestor(t.Context(), h.log, lineage.Ancestors[0])
	must(t, err)
	if len(records) != 1 || records[0].Package != "requests" {
		t.Errorf("read again: %+v", records)
	}
}

// TestACopyThatFailsHoldsNothing: what was remembered for it is given back.
func TestACopyThatFailsHoldsNothing(t *testing.T) {
	h := newHouse(t, Limits{Requirements: 3})
	h.start(t)
	before := h.remembered.Taken()
	first, second := pkgref.Ref{Ecosystem: pkgref.Python, Name: "first"}, pkgref.Ref{Ecosystem: pkgref.Python, Name: "second"}
	facts := &ledger.Facts{Projects: []ledger.ProjectFacts{
		{Project: first, Releases: map[string]string{"1.0": ""}, Own: map[string][]door.Requirement{"1.0": {{Name: "one"}, {Name: "two"}}}},
		{Project: second, Own: map[string][]door.Requirement{"1.0": {{Name: "three"}, {Name: "four"}}}},
	}}
	lineage, err := h.Lineage(t.Context(), "sb1")
	must(t, err)
	run := h.run()
	run.Sandbox, run.Run, run.Ancestors = "sb2", "run-sb2", lineage.Ancestors
	if err := h.RegisterCopy(t.Context(), run, facts); err == nil || !strings.Contains(err.Error(), "more than 3 packages") {
		t.Errorf("a copy with more requirements than a run may have: %v", err)
	}
	if after := h.remembered.Taken(); after != before {
		t.Errorf("a copy that is none holds %d bytes", after-before)
	}
}
