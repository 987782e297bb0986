package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestServedIsOnRecordBeforeTheAnswer(t *testing.T) {
	h := newHouse(t, Limits{})
	a, err := h.Judge(t.Context(), judging("requests", "2.31.0"))
	must(t, err)
	if !a.Decision.Allowed() || len(h.records(t)) != 0 {
		t.Fatalf("a verdict alone: %+v, %d records; want it allowed and nothing on record", a, len(h.records(t)))
	}
	a, err = h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	want := audit.Record{
		Seq: a.Seq, Kind: audit.KindPackage, Outcome: audit.Served, Run: "run1", Sandbox: "sb1", User: "ann", Policy: h.policy.Digest(),
		Ecosystem: "python", Package: "requests", InstalledVersion: "2.31.0", File: "requests-2.31.0-py3-none-any.whl",
		SourceURL: "https://files.example/requests", SHA256: hexOf("requests2.31.0"), Size: 1000,
		ResolvedBy: "allowlist", Rule: a.Decision.Rule, Reason: a.Decision.Reason, RequestID: a.RequestID,
		Detail: map[string]string{"through": a.Decision.Through},
	}
	if diff := cmp.Diff([]audit.Record{want}, h.records(t), cmpopts.IgnoreFields(audit.Record{}, "Time")); diff != "" {
		t.Errorf("the record differs (-want +got):\n%s", diff)
	}
	if len(a.RequestID) != 8 {
		t.Errorf("the request id is %q, want 8 characters", a.RequestID)
	}
	must(t, h.Aborted(t.Context(), "sb1", a.Seq, 10))
	if err := h.Aborted(t.Context(), "sb1", a.Seq, 10); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a second abort gave %v", err)
	}
	if got := h.records(t, audit.Aborted); len(got) != 1 || got[0].Detail["sent_bytes"] != "10" || got[0].SHA256 != want.SHA256 {
		t.Errorf("aborted records: %+v", got)
	}
}

func TestABlockedFileIsRecordedOnceAndCounted(t *testing.T) {
	h := newHouse(t, Limits{})
	var ids []string
	for range 5 {
		a, err := h.Judge(t.Context(), judging("numpy", "2.0.1"))
		must(t, err)
		if a.Decision.Allowed() {
			t.Fatal("numpy 2.0.1 is allowed")
		}
		ids = append(ids, a.RequestID)
	}
	if len(slices.Compact(ids)) != 1 || len(h.records(t)) != 1 {
		t.Errorf("ids %v, %d records; want one of each", ids, len(h.records(t)))
	}
	list, err := h.Refusals(t.Context(), "sb1", "", 10)
	must(t, err)
	if len(list) != 1 || list[0].Count != 5 || list[0].What != records.WhatPackage || list[0].Suggest == "" || list[0].Reason == "" {
		t.Errorf("refusals: %+v", list)
	}
	must(t, h.SandboxEnded(t.Context(), "sb1", "destroyed"))
	got := h.records(t, audit.Blocked)
	if len(got) != 2 || got[1].Count != 4 || got[1].RequestID != ids[0] || got[1].Detail["event"] != "repeats" {
		t.Errorf("blocked records at the end: %+v", got)
	}
	sum, err := h.Summary(t.Context(), "run1")
	must(t, err)
	if len(sum.Refused) != 1 || sum.Refused[0].Count != 5 {
		t.Errorf("the summary's refused: %+v", sum.Refused)
	}
}

func TestWhoIsNotKnownIsRefused(t *testing.T) {
	h := newHouse(t, Limits{})
	h.Unregister("sb1")
	calls := map[string]func() error{
		"index":    func() error { _, err := h.Index(t.Context(), indexOf("requests", "d")); return err },
		"artifact": func() error { _, err := h.Serve(t.Context(), serving("requests", "2.31.0")); return err },
		"name": func() error {
			_, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "x.example"})
			return err
		},
		"failed":   func() error { _, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1"}); return err },
		"edges":    func() error { return h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), nil) },
		"aborted":  func() error { return h.Aborted(t.Context(), "sb1", 0, 0) },
		"command":  func() error { _, err := h.Command(t.Context(), "sb1", "c", []string{"ls"}); return err },
		"refusals": func() error { _, err := h.Refusals(t.Context(), "sb1", "", 1); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s of a stranger gave %v, want forbidden", name, err)
		}
	}
	if n := len(h.records(t)); n != 0 {
		t.Errorf("%d records", n)
	}
	must(t, h.Register(h.run())) // the positive control
	if _, err := h.Serve(t.Context(), serving("requests", "2.31.0")); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeRecordedIsRefused(t *testing.T) {
	h := newHouse(t, Limits{})
	must(t, h.log.Close())
	if a, err := h.Serve(t.Context(), serving("requests", "2.31.0")); err == nil || a.Decision.Allowed() {
		t.Errorf("served without a record: %+v, %v", a, err)
	}
	if a, err := h.Index(t.Context(), indexOf("numpy", "d", wheel("numpy", "1.26.0"), wheel("numpy", "2.0.0"))); err == nil || len(a.OfFile) > 0 {
		t.Errorf("an index with something withheld, without a record: %+v, %v", a, err)
	}
	if a, err := h.Command(t.Context(), "sb1", "c1", []string{"ls"}); err == nil || a.Decision.Allowed() {
		t.Errorf("a command without a record: %+v, %v", a, err)
	}
}

func TestAnotherSHA256ThanTheIndexListsIsRefused(t *testing.T) {
	h := newHouse(t, Limits{})
	ask := serving("requests", "2.31.0")
	ask.SHA256 = hexOf("evil")
	if _, err := h.Serve(t.Context(), ask); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("the error is %v", err)
	}
	if n := len(h.records(t)); n != 0 {
		t.Errorf("%d records", n)
	}
}

func TestAnIndexIsJudgedOnceAndItsWithheldRecordedOnce(t *testing.T) {
	h := newHouse(t, Limits{})
	files := []door.File{wheel("numpy", "1.9.0"), wheel("numpy", "1.26.0"), wheel("numpy", "2.0.0"), wheel("numpy", "2.10.0"), wheel("numpy", "2.9.1")}
	a, err := h.Index(t.Context(), indexOf("numpy", "d1"))
	must(t, err)
	if !a.NeedFiles {
		t.Fatalf("an unknown digest gave %+v", a)
	}
	first, err := h.Index(t.Context(), indexOf("numpy", "d1", files...))
	must(t, err)
	for range 3 {
		again, err := h.Index(t.Context(), indexOf("numpy", "d1"))
		must(t, err)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("a repeated ask differs:\n%s", diff)
		}
	}
	got := h.records(t)
	if len(got) != 1 || got[0].Outcome != audit.Withheld || got[0].RequestID != first.RequestID || len(got[0].Withheld) != 1 {
		t.Fatalf("records: %+v", got)
	}
	w := got[0].Withheld[0]
	if w.From != "2.0.0" || w.To != "2.10.0" || w.Versions != 3 || w.Files != 3 {
		t.Errorf("withheld: %+v", w)
	}
	other, err := h.Index(t.Context(), indexOf("numpy", "d2", files[:2]...))
	must(t, err)
	if other.Epoch == first.Epoch || other.RequestID != "" || len(h.records(t, audit.Withheld)) != 1 || len(h.records(t, audit.Shown)) != 1 {
		t.Errorf("a page with nothing withheld: %+v, %+v", other, h.records(t))
	}
}

func TestVerdictsChangeWhenAFileIsOldEnough(t *testing.T) {
	h := newHouse(t, Limits{})
	young := wheel("numpy", "1.26.0")
	young.Published = noon().Add(-6 * 24 * time.Hour)
	ask := indexOf("numpy", "d", young)
	a, err := h.Index(t.Context(), ask)
	must(t, err)
	if a.Verdicts[a.OfFile[0]].Allowed() {
		t.Fatal("a file of six days is allowed")
	}
	h.advance(24*time.Hour - time.Second)
	if b, err := h.Index(t.Context(), indexOf("numpy", "d")); err != nil || b.Epoch != a.Epoch {
		t.Errorf("a second too early: %+v, %v", b, err)
	}
	h.advance(time.Second)
	if b, err := h.Index(t.Context(), indexOf("numpy", "d")); err != nil || !b.NeedFiles {
		t.Errorf("at the time: %+v, %v; want the files asked for", b, err)
	}
	b, err := h.Index(t.Context(), ask)
	must(t, err)
	if b.Epoch == a.Epoch || !b.Verdicts[b.OfFile[0]].Allowed() {
		t.Errorf("of seven days: %+v", b)
	}
}

func TestDependenciesAreAdmittedThroughVerifiedMetadata(t *testing.T) {
	h := newHouse(t, Limits{})
	idna := indexOf("idna", "d", wheel("idna", "3.4"), wheel("idna", "4.0"))
	before, err := h.Index(t.Context(), idna)
	must(t, err)
	parent := python("requests", "2.31.0")
	reqs := []door.Requirement{{Name: "idna", Specifier: ">=2.5,<4"}}
	if err := h.Edges(t.Context(), "sb1", parent, reqs); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("metadata of a release that was not admitted gave %v", err)
	}
	_, err = h.Index(t.Context(), indexOf("requests", "r", wheel("requests", "2.31.0"), wheel("requests", "2.33.0")))
	must(t, err)
	if err := h.Edges(t.Context(), "sb1", python("requests", "2.33.0"), reqs); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("metadata of a withheld release gave %v", err)
	}
	for range 2 {
		must(t, h.Edges(t.Context(), "sb1", parent, reqs))
	}
	after, err := h.Index(t.Context(), idna)
	must(t, err)
	if before.Verdicts[before.OfFile[0]].Allowed() || !after.Verdicts[after.OfFile[0]].Allowed() || after.Verdicts[after.OfFile[1]].Allowed() {
		t.Errorf("before %+v, after %+v", before, after)
	}
	a, err := h.Serve(t.Context(), serving("idna", "3.4"))
	must(t, err)
	r := h.records(t, audit.Served)
	if !a.Decision.Allowed() || len(r) != 1 || r[0].RequestedVersion != ">=2.5,<4" || r[0].RequestedClaimed || r[0].ResolvedBy != "dependency" {
		t.Errorf("served: %+v", r)
	}
	if again, err := h.Index(t.Context(), indexOf("idna", "d")); err != nil || again.Epoch != after.Epoch {
		t.Errorf("nothing new came, but the epoch is another: %+v, %v", again, err)
	}
	must(t, h.Register(Run{Sandbox: "sb2", Run: "run2", Policy: h.policy}))
	ask := serving("idna", "3.4")
	ask.Sandbox = "sb2"
	if a, err := h.Serve(t.Context(), ask); err != nil || a.Decision.Allowed() {
		t.Errorf("another run uses this run's facts: %+v, %v", a, err)
	}
}

func TestEdgeLimits(t *testing.T) {
	h := newHouse(t, Limits{Edges: 3, EdgesPerParent: 2})
	parent := python("requests", "2.31.0")
	_, err := h.Judge(t.Context(), judging("requests", "2.31.0"))
	must(t, err)
	reqs := func(names ...string) (all []door.Requirement) {
		for _, n := range names {
			all = append(all, door.Requirement{Name: n})
		}
		return all
	}
	must(t, h.Edges(t.Context(), "sb1", parent, reqs("a", "b")))
	for name, bad := range map[string][]door.Requirement{"many": reqs("c", "d", "e"), "in all": reqs("c", "d"), "name": reqs("Not_Canonical")} {
		if err := h.Edges(t.Context(), "sb1", parent, bad); err == nil {
			t.Errorf("too much (%s) was taken", name)
		}
	}
	must(t, h.Edges(t.Context(), "sb1", parent, reqs("a", "b")))
}

func TestIndexAndArtifactAndPolicyAgree(t *testing.T) {
	h := newHouse(t, Limits{})
	h.config.Approvals = newQueue()
	names := []string{"requests", "numpy", "idna", "flask"}
	versions := []string{"1.0", "1.26.0", "2.31.0", "2.32.0rc1", "2.33", "3.4", "1.0.0", "v1", "junk"}
	page := 0
	rapid.Check(t, func(rt *rapid.T) {
		page++
		name := rapid.SampledFrom(names).Draw(rt, "name")
		if rapid.Bool().Draw(rt, "edge") {
			h.admitRequests(t)
			_ = h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna", Specifier: rapid.SampledFrom([]string{"", "<4", ">=4", "?"}).Draw(rt, "specifier")}})
		}
		var files []door.File
		for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom(versions), 1, len(versions), rapid.ID).Draw(rt, "versions") {
			f := wheel(name, v)
			f.Kind = rapid.SampledFrom([]policy.ArtifactKind{policy.KindWheel, policy.KindSdist, policy.KindOther, ""}).Draw(rt, "kind")
			f.Published = noon().Add(time.Duration(rapid.IntRange(-10, 1).Draw(rt, "days")) * 24 * time.Hour)
			files = append(files, f)
		}
		index, err := h.Index(t.Context(), indexOf(name, fmt.Sprint(page), files...))
		if err != nil {
			rt.Fatal(err)
		}
		for i, f := range files {
			a, err := h.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: python(name, f.Version), File: f}})
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(index.Verdicts[index.OfFile[i]], a.Decision); diff != "" {
				rt.Fatalf("index and artifact differ about %s %s:\n%s", name, f.Version, diff)
			}
			tenant, _ := h.tenants.getTenant("sb1")
			d := h.policy.Decide(noon(), policy.Input{
				Subject:   policy.Subject{Package: python(name, f.Version), Edges: tenant.ledger.EdgesTo(python(name, "")).List},
				FileFacts: f.Facts(),
			})
			if d.Effect != a.Decision.Effect || d.Rule != a.Decision.Rule || !strings.HasPrefix(a.Decision.Reason, d.Reason) {
				rt.Fatalf("the controller says %+v, the policy %+v", a.Decision, d)
			}
		}
	})
}

func (h *house) admitRequests(tb testing.TB) {
	tb.Helper()
	_, err := h.Judge(tb.Context(), judging("requests", "2.31.0"))
	must(tb, err)
}

func TestPastTheQuotaTheRunIsCut(t *testing.T) {
	h := newHouse(t, Limits{Records: 5})
	for i := range 5 {
		_, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1", Reason: fmt.Sprint("bad ", i)})
		must(t, err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1", Reason: fmt.Sprint("more ", i)}); !errors.Is(err, fault.ErrForbidden) {
				t.Errorf("past the quota: %v", err)
			}
		})
	}
	wg.Wait()
	if s := <-h.cuts; s != "sb1" {
		t.Errorf("the cut is of %q", s)
	}
	if _, err := h.Judge(t.Context(), judging("requests", "2.31.0")); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("an allowed verdict of a cut run: %v", err)
	}
	if got := h.records(t); len(got) != 6 || got[5].Outcome != audit.Exceeded || got[5].Rule != "quota.records" {
		t.Errorf("records: %+v", got)
	}
	must(t, h.CommandFinished(t.Context(), "sb1", "c", channel.Exit{})) // the host's own go on
	must(t, h.SandboxEnded(t.Context(), "sb1", "cut"))
	select {
	case <-h.cuts:
		t.Error("the cut was told twice")
	default:
	}
}

func TestNamesAreRecordedUpToALimit(t *testing.T) {
	h := newHouse(t, Limits{Names: 3})
	for round := range 2 {
		for i := range 10 {
			a, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: fmt.Sprintf("n%d.example", i), Port: 443 * round})
			must(t, err)
			if a.Answer.Decision.Allowed() {
				t.Fatal("a name is allowed")
			}
		}
	}
	if got := h.records(t); len(got) != 4 || got[3].Outcome != audit.Exceeded || got[2].Detail["name"] != "n2.example" {
		t.Errorf("records: %+v", got)
	}
	sum, err := h.Summary(t.Context(), "run1")
	must(t, err)
	if len(sum.Names) != 4 {
		t.Errorf("names: %+v", sum.Names)
	}
}

func TestCommands(t *testing.T) {
	h := newHouse(t, Limits{})
	for _, c := range []struct {
		argv []string
		rule string
		ok   bool
	}{
		{[]string{"ls", "-l"}, "defaults.action", true},
		{[]string{"sh", "-c", "curl x"}, "rules.no-curl", false},
		{[]string{"python3", "-c", "eval('1')"}, "rules.no-eval", false},
		{[]string{"/usr/bin/python3.13", "-u", "-Ic", "eval('1')"}, "rules.no-eval", false},
		{[]string{"python3", "eval.py"}, "defaults.action", true},
		{[]string{"sh", "-c", strings.Repeat("x", 1<<20)}, "defaults.action", true},
	} {
		a, err := h.Command(t.Context(), "sb1", "id-"+c.argv[0], c.argv)
		must(t, err)
		if a.Decision.Allowed() != c.ok || a.Decision.Rule != c.rule {
			t.Errorf("%.60q: %+v", c.argv, a.Decision)
		}
	}
	for code, rule := range map[bool]string{false: "defaults.action", true: "rules.no-eval"} {
		a, err := h.CommandAs(t.Context(), "sb1", fmt.Sprint("id-code-", code), Asked{Argv: []string{"bash", "-c", "eval x"}, Code: code})
		must(t, err)
		if a.Decision.Rule != rule {
			t.Errorf("handed over as code: %v: %+v", code, a.Decision)
		}
	}
	byCaller := &Refused{Rule: "no (imports)\n", Reason: "the agent's\x1b[2J own: " + strings.Repeat("x", 2_000)}
	for argv, rule := range map[string]string{"import os": "caller.no--imports--", "eval(x)": "rules.no-eval"} { // it can only narrow
		a, err := h.CommandAs(t.Context(), "sb1", "id-by-caller-"+argv, Asked{Argv: []string{"python3", "-c", argv}, Refused: byCaller})
		must(t, err)
		if a.Decision.Allowed() || a.Decision.Rule != rule {
			t.Errorf("refused by its caller: %s: %+v", argv, a.Decision)
		}
	}
	refused := h.records(t, audit.Blocked)
	if i := slices.IndexFunc(refused, func(r audit.Record) bool { return r.ResolvedBy == string(ByCaller) }); i < 0 || len(refused[i].Reason) > 500 || strings.ContainsRune(refused[i].Reason, 0x1b) || !slices.Equal(refused[i].Command, []string{"python3", "-c", "import os"}) {
		t.Errorf("the log has %+v", refused)
	}
	must(t, h.CommandFinished(t.Context(), "sb1", "id-ls", channel.Exit{Code: 3, Signal: "KILL", TimedOut: true, Claimed: true}))
	got := h.records(t, audit.Finished)
	if len(got) != 1 || *got[0].Exit != 3 || got[0].Detail["signal"] != "KILL" || !got[0].GuestClaimed || !slices.Equal(got[0].Command, []string{"ls", "-l"}) {
		t.Errorf("finished: %+v", got)
	}
	if f := h.Finished(t.Context(), "sb1"); !f["id-ls"] || len(f) != 1 {
		t.Errorf("Finished: %v", f)
	}
	if n := len(h.records(t, audit.Blocked)); n != 6 {
		t.Errorf("%d blocked", n)
	}
}

func TestClaims(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want map[pkgref.Ref]string
	}{
		{[]string{"pip", "install", "requests==2.31.0"}, map[pkgref.Ref]string{python("requests", ""): "==2.31.0"}},
		{[]string{"/usr/bin/python3.13", "-m", "pip", "install", "-q", "Foo_Bar[x]>=1,<2", "plain"}, map[pkgref.Ref]string{python("foo-bar", ""): ">=1,<2"}},
		{[]string{"uv", "pip", "install", "a~=1.0"}, map[pkgref.Ref]string{python("a", ""): "~=1.0"}},
		{[]string{"uv", "add", "a==1"}, map[pkgref.Ref]string{python("a", ""): "==1"}},
		{[]string{"bash", "-lc", "cd x && pip3 install 'a==1' \"b>=2\"; echo c==3"}, map[pkgref.Ref]string{python("a", ""): "==1", python("b", ""): ">=2"}},
		{[]string{"pip", "install", "--index-url=https://x.example", "x @ https://x.example/a==1", "a==?"}, map[pkgref.Ref]string{}},
		{[]string{"pip", "uninstall", "a==1"}, map[pkgref.Ref]string{}},
		{[]string{"npm", "install", "--save-dev", "left-pad@^1.2", "@s/x@2.x", "y@latest", "z", "w@npm:real@1.0.0", "v@NPM:@s/real@2.0.0", "https://x.example/a@1"}, map[pkgref.Ref]string{
			node("left-pad", ""): "^1.2", node("@s/x", ""): "2.x", node("real", ""): "1.0.0", node("@s/real", ""): "2.0.0",
		}},
		{[]string{"npm10", "run", "x@1.0.0"}, map[pkgref.Ref]string{}},
		{[]string{"sh", "-c", "pnpm add 'a@>=1 <2' && go get example.com/m/v2@v2.1.0 example.com/q@latest"}, map[pkgref.Ref]string{
			node("a", ""): ">=1 <2", {Ecosystem: pkgref.Go, Name: "example.com/m/v2"}: "v2.1.0",
		}},
		{nil, map[pkgref.Ref]string{}},
	} {
		if diff := cmp.Diff(c.want, claims.Clients(all.Asked).Read(c.argv)); diff != "" {
			t.Errorf("%q:\n%s", c.argv, diff)
		}
	}
}

func TestWhatAClaimMeets(t *testing.T) {
	for _, c := range []struct {
		specifier string
		release   pkgref.Ref
		meets     bool
	}{
		{"^1.2", node("a", "1.3.0"), true},
		{"^1.2", node("a", "2.0.0"), false},
		{"v1.2.0", pkgref.Ref{Ecosystem: pkgref.Go, Name: "example.com/m", Version: "v1.2.0"}, true},
		{"v1.2.0", pkgref.Ref{Ecosystem: pkgref.Go, Name: "example.com/m", Version: "v1.3.0"}, false},
		{"<2", python("a", "1.0"), true},
		{"<2", python("a", "2.0"), false},
		{"", node("a", "1.0.0"), false},
	} {
		if got := claims.Meets(c.specifier, c.release); got != c.meets {
			t.Errorf("%q meets %s: %t", c.specifier, c.release, got)
		}
	}
}

func TestInstalledIsJoinedWithWhatWasServed(t *testing.T) {
	h := newHouse(t, Limits{Inventory: 3})
	_, err := h.Command(t.Context(), "sb1", "c", []string{"pip", "install", "requests==2.31.0"})
	must(t, err)
	_, err = h.Serve(t.Context(), serving("requests", "2.31.0"))
	must(t, err)
	pip := channel.InstalledPackage{Ecosystem: "python", Name: "pip", Version: "25.0"}
	inv := channel.Inventory{Packages: []channel.InstalledPackage{
		pip, {Ecosystem: "python", Name: "Requests", Version: "2.31", Path: "/x"}, {Ecosystem: "python", Name: "evil", Version: "1.0.0"},
	}}
	for range 2 {
		must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: inv, Template: channel.Inventory{Packages: []channel.InstalledPackage{pip}}})))
	}
	got := h.records(t, audit.Installed)
	if len(got) != 2 {
		t.Fatalf("%d installed records: %+v", len(got), got)
	}
	r, evil := got[0], got[1]
	if r.SHA256 != hexOf("requests2.31.0") || r.InstalledVersion != "2.31.0" || r.RequestedVersion != "==2.31.0" || !r.RequestedClaimed || !r.GuestClaimed || r.Detail["unaccounted"] != "" {
		t.Errorf("the joined record: %+v", r)
	}
	if evil.Detail["unaccounted"] != "true" || evil.SHA256 != "" || evil.InstalledVersion != "1.0.0" {
		t.Errorf("the one without a record: %+v", evil)
	}
	for i := range 5 {
		inv.Packages = append(inv.Packages, channel.InstalledPackage{Ecosystem: "python", Name: fmt.Sprint("p", i), Version: "1"})
	}
	must(t, installed(h.Installed(t.Context(), "sb1", provenance.Disk{Found: inv})))
	if n := len(h.records(t, audit.Exceeded)); n != 1 {
		t.Errorf("%d records that there were too many, want 1", n)
	}
}

func (h *house) busy(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	must(tb, h.SandboxStarted(ctx, "sb1"))
	_, err := h.Command(ctx, "sb1", "c1", []string{"pip", "install", "requests==2.31.0"})
	must(tb, err)
	_, err = h.Command(ctx, "sb1", "c2", []string{"curl"})
	must(tb, err)
	for range 2 {
		_, err = h.Index(ctx, indexOf("requests", "d1", wheel("requests", "2.31.0"), wheel("requests", "2.33.0")))
		must(tb, err)
		_, err = h.Index(ctx, indexOf("flask", "d2", wheel("flask", "1.0")))
		must(tb, err)
		_, err = h.Judge(ctx, judging("numpy", "2.0"))
		must(tb, err)
		_, err = h.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "x.example"})
		must(tb, err)
		_, err = h.Failed(ctx, door.Failure{Sandbox: "sb1", Reason: "a lying upstream"})
		must(tb, err)
	}
	a, err := h.Serve(ctx, serving("requests", "2.31.0"))
	must(tb, err)
	must(tb, h.Aborted(ctx, "sb1", a.Seq, 3))
	must(tb, installed(h.Installed(ctx, "sb1", provenance.Disk{Found: channel.Inventory{Packages: []channel.InstalledPackage{{Ecosystem: "python", Name: "requests", Version: "2.31.0"}}}})))
	must(tb, h.CommandFinished(ctx, "sb1", "c1", channel.Exit{Code: 1}))
}

func TestARestoredSandboxIsAsItWas(t *testing.T) {
	h := newHouse(t, Limits{})
	h.busy(t)
	old, err := h.tenants.getTenant("sb1")
	must(t, err)
	must(t, old.book.Summarise(t.Context()))
	second := New(Config{Clients: all.Asked, Log: h.log, Clock: h})
	must(t, second.Restore(t.Context(), h.run()))
	restored, err := second.tenants.getTenant("sb1")
	must(t, err)

	before, err := h.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	after, err := second.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" || len(before) < 4 {
		t.Errorf("refusals differ (-before +after), or are few:\n%s\n%+v", diff, before)
	}
	options := cmp.Options{
		cmpopts.IgnoreFields(tenant{}, "run", "clients", "narrowing", "trusts", "secrets", "former", "law", "known", "judging", "ledger", "mu", "life", "end", "rehearsals", "weighed"),
		cmpopts.IgnoreFields(records.Book{}, "config", "mu", "summing", "refusals", "shown"),
		cmpopts.IgnoreFields(records.Deliveries{}, "mu", "inside", "paths"),
		cmpopts.IgnoreFields(records.Connections{}, "mu", "ended"),
		cmpopts.IgnoreFields(provenance.Accounts{}, "config", "mu"),
		cmpopts.IgnoreFields(system{}, "mu"),
		cmpopts.IgnoreFields(unlisted{}, "mu"), cmpopts.IgnoreFields(lookups{}, "mu"),
		cmpopts.IgnoreFields(calls{}, "mu"), cmpopts.IgnoreFields(reached{}, "mu"),
		cmpopts.IgnoreFields(requests{}, "mu", "telling"),
		cmpopts.IgnoreFields(attempts{}, "mu"),
		cmp.Exporter(func(t reflect.Type) bool { return strings.Contains(t.PkgPath(), "internal/decide/admission") }),
	}
	if diff := cmp.Diff(old, restored, options); diff != "" {
		t.Errorf("the state differs (-before +after):\n%s", diff)
	}
	if err := second.Aborted(t.Context(), "sb1", 0, 0); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("an abort of what was aborted: %v", err)
	}
	n := len(h.records(t))
	_, err = second.Judge(t.Context(), judging("numpy", "2.0"))
	must(t, err)
	if len(h.records(t)) != n {
		t.Error("a refusal known from the log was recorded again")
	}
}

func TestSummary(t *testing.T) {
	h := newHouse(t, Limits{})
	h.busy(t)
	must(t, h.SandboxEnded(t.Context(), "sb1", "destroyed"))
	h.Unregister("sb1")
	got, err := New(Config{Clients: all.Asked, Log: h.log}).Summary(t.Context(), "run1")
	must(t, err)
	short := func(list []Line) (all []string) {
		for _, p := range list {
			all = append(all, fmt.Sprintf("%s %s x%d", p.Name, p.Version, p.Count))
		}
		return all
	}
	want := map[string][]string{
		"installed": {"requests 2.31.0 x1"}, "served": {"requests 2.31.0 x1"},
		"withheld": {"flask 1.0 x2", "requests 2.33.0 x2"}, "refused": {" x2", "flask  x1", "numpy 2.0 x2"},
	}
	have := map[string][]string{"installed": short(got.Installed), "served": short(got.Served), "withheld": short(got.Withheld), "refused": short(got.Refused)}
	for i, s := range have["refused"] {
		have["refused"][i] = strings.Replace(s, "  x2", " x2", 1)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the summary differs (-want +got):\n%s", diff)
	}
	if got.Task != "a task" || len(got.Names) != 1 || got.Names[0].Count != 2 {
		t.Errorf("task %q, names %+v", got.Task, got.Names)
	}
	if _, err := h.Summary(t.Context(), "no such"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	h := newHouse(t, Limits{})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				ctx := context.WithoutCancel(t.Context())
				_, err := h.Serve(ctx, serving("requests", "2.31.0"))
				errs := []error{err}
				_, err = h.Judge(ctx, judging("numpy", fmt.Sprintf("2.%d", i)))
				errs = append(errs, err)
				_, err = h.Index(ctx, indexOf("numpy", fmt.Sprint(i), wheel("numpy", "1.0"), wheel("numpy", "2.0")))
				errs = append(errs, err, h.Edges(ctx, "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: fmt.Sprintf("d%d", w*i)}}))
				_, err = h.Refusals(ctx, "sb1", "", 5)
				if err := errors.Join(append(errs, err)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(h.records(t, audit.Served)); n != 320 {
		t.Errorf("%d served, want 320", n)
	}
	if n := len(h.records(t, audit.Blocked)); n != 20 {
		t.Errorf("%d blocked, want 20", n)
	}
	if n := len(h.records(t, audit.Withheld)); n != 20 {
		t.Errorf("%d withheld, want 20", n)
	}
}
