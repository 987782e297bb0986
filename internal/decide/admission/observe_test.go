package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

// observingHouse is a house whose policy only observes, with malware known.
func observingHouse(t *testing.T, text string, plan bool) *house {
	t.Helper()
	h := newHouse(t, Limits{})
	h.Unregister("sb1")
	h.config.Advisories = madeUp{facts: map[pkgref.Ref]advisory.Facts{python("burnt", ""): {Malware: []policy.Malware{{ID: "MAL-1", Every: true}}}}}
	h.policy = parse(t, "mode: observe\n"+text)
	r := h.run()
	r.Plan = plan
	must(t, h.Register(r))
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	return h
}

// said are the records of packages, shortly.
func (h *house) said(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, r := range h.records(t) {
		if r.Kind == audit.KindPackage && r.Outcome != audit.Aborted {
			all = append(all, strings.TrimSpace(fmt.Sprint(r.Outcome, " ", r.Package, " ", r.InstalledVersion, " ", r.Rule, " ", r.Detail["would"], " x", r.Count)))
		}
	}
	return all
}

// TestWhatIsObserved: what only the document refuses is served, with a record before it
// that says so; malware and what is blocked is not. The summary, why, a restart and the
// suggestion know it.
func TestWhatIsObserved(t *testing.T) {
	h := observingHouse(t, document, false)
	ctx := t.Context()
	if got := h.shows(t, indexOf("numpy", "d1", wheel("numpy", "1.26.0"), wheel("numpy", "2.0.0"))); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("of numpy are shown %v", got)
	}
	if got := h.shows(t, indexOf("evil", "d2", wheel("evil", "1.0"))); got[0] {
		t.Error("what is blocked is shown")
	}
	for _, c := range []struct {
		name, version string
		served        bool
		would         policy.Effect
	}{
		{"numpy", "1.26.0", true, ""},
		{"numpy", "2.0.0", true, policy.Deny},
		{"numpy", "2.0.0", true, policy.Deny},
		{"flask", "3.0", true, policy.Deny},
		{"evil", "1.0", false, ""},
		{"burnt", "1.0", false, ""},
	} {
		if a, err := h.Judge(ctx, judging(c.name, c.version)); err != nil || a.Decision.Allowed() != c.served || a.Decision.Would != c.would {
			t.Errorf("judged %+v: %+v %v", c, a.Decision, err)
		}
		if a, err := h.Serve(ctx, serving(c.name, c.version)); err != nil || a.Decision.Allowed() != c.served || a.Decision.Would != c.would {
			t.Errorf("served %+v: %+v %v", c, a.Decision, err)
		}
	}
	must(t, h.SandboxEnded(ctx, "sb1", "done"))
	want := []string{
		"shown numpy    x0", // its page, with nothing withheld
		"withheld evil  blocked_packages.python.evil  x0",
		"served numpy 1.26.0 allowed_packages.python.numpy  x0",
		"would_deny numpy 2.0.0 allowed_packages.python.numpy.max_version  x0",
		"served numpy 2.0.0 mode deny x0",
		"served numpy 2.0.0 mode deny x0",
		"would_deny flask 3.0 packages.default  x0",
		"served flask 3.0 mode deny x0",
		"blocked evil 1.0 blocked_packages.python.evil  x0",
		"blocked evil 1.0 blocked_packages.python.evil  x0", // of bytes whose digest is known
		"blocked burnt 1.0 advisory.MAL-1  x0",
		"blocked burnt 1.0 advisory.MAL-1  x0",
		"would_deny numpy 2.0.0 allowed_packages.python.numpy.max_version  x1",
	}
	got := h.said(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sum, err := h.Summary(ctx, "run1")
	must(t, err)
	if !sum.Observes || len(sum.Would) != 2 || sum.Would[1].Name != "numpy" || sum.Would[1].Count != 2 || sum.Would[0].Suggest == "" || len(sum.Refused) != 2 {
		t.Errorf("%+v", sum)
	}
	roots, err := h.Roots(ctx, "run1")
	must(t, err)
	if !slices.ContainsFunc(roots.Roots, func(r Root) bool { return r.Package.Name == "flask" && r.Had }) {
		t.Errorf("no suggestion has what would be refused: %+v", roots)
	}
	second := New(Config{Clients: all.Asked, Log: h.log, Clock: h})
	must(t, second.Restore(ctx, h.run()))
	for _, c := range []*Controller{h.Controller, second} {
		told, err := c.Refusals(ctx, "sb1", "", 0)
		must(t, err)
		i := slices.IndexFunc(told, func(r door.Refusal) bool { return r.Package.Name == "flask" })
		if i < 0 || told[i].Outcome != "would_deny" || !strings.HasSuffix(told[i].Reason, "it was let through, since the policy only observes (mode: observe)") {
			t.Errorf("%+v", told)
		}
	}
	if over, err := New(Config{Log: h.log}).RefusalsOf(ctx, Sought{Run: "run1"}); err != nil || !slices.ContainsFunc(over, func(r door.Refusal) bool { return r.Outcome == "would_deny" }) {
		t.Errorf("%+v %v", over, err)
	}
}

// TestNothingIsObservedUnrecorded: without its record nothing is let through.
func TestNothingIsObservedUnrecorded(t *testing.T) {
	log := &approvaltest.Log{}
	c := New(Config{Log: log})
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run1", Policy: parse(t, "mode: observe\n")}))
	full := errors.New("the disk is full")
	log.FailWhen(func(r audit.Record) error {
		if r.Outcome == audit.WouldDeny {
			return full
		}
		return nil
	})
	if a, err := c.Serve(t.Context(), serving("flask", "3.0")); !errors.Is(err, full) || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := c.Connect(t.Context(), connectTo("new.example", 443, "93.184.215.14")); !errors.Is(err, full) || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
	if n := len(log.All()); n != 0 {
		t.Errorf("%d records", n)
	}
	log.FailWhen(nil)
	if a, err := c.Serve(t.Context(), serving("flask", "3.0")); err != nil || !a.Decision.Allowed() {
		t.Errorf("the control: %+v %v", a, err)
	}
}

// TestObservedHosts: names that are not listed are connected to where they have public
// addresses, on record with what they would have been; nothing private, no other protocol.
func TestObservedHosts(t *testing.T) {
	log := &approvaltest.Log{}
	c := New(Config{Log: log, Limits: Limits{Names: 3}})
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run1", Policy: parse(t, "mode: observe\nnetwork_allowlist: [ api.example ]\n")}))
	ctx := t.Context()
	must(t, c.SandboxStarted(ctx, "sb1"))
	n, err := c.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "new.example"})
	must(t, err)
	if !n.Answer.Decision.Allowed() || n.TCP || fmt.Sprint(n.Ports) != "[80 443]" {
		t.Errorf("%+v", n)
	}
	open, err := c.Connect(ctx, connectTo("new.example", 443, "93.184.215.14"))
	if err != nil || open.Decision.Would != policy.Deny {
		t.Fatalf("%+v %v", open, err)
	}
	if a, err := c.Connect(ctx, connectTo("api.example", 443, "10.0.0.1")); err != nil || !a.Decision.Allowed() || a.Decision.Would != "" {
		t.Errorf("the control, a listed name, whose addresses are the gateway's to check: %+v %v", a, err)
	}
	for _, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1"} {
		for _, pinned := range []bool{false, true} {
			ask := connectTo("new.example", 443, "93.184.215.14", address)
			ask.Pinned = pinned
			if a, err := c.Connect(ctx, ask); err != nil || a.Decision.Allowed() || a.Decision.Rule != door.RuleHostAddress {
				t.Errorf("%s, pinned %v: %+v %v", address, pinned, a, err)
			}
		}
	}
	other := connectTo("new.example", 443, "93.184.215.14")
	other.Protocol = door.ProtocolTCP
	for what, ask := range map[string]door.ConnectAsk{"another protocol": other, "another port": connectTo("new.example", 22, "93.184.215.14"), "a private name": connectTo("git.corp", 443, "93.184.215.14")} {
		if a, err := c.Connect(ctx, ask); err != nil || a.Decision.Allowed() {
			t.Errorf("%s: %+v %v", what, a, err)
		}
	}
	for i, allowed := range []bool{true, true, false} {
		if a, err := c.Connect(ctx, connectTo(fmt.Sprintf("n%d.example", i), 443, "93.184.215.14")); err != nil || a.Decision.Allowed() != allowed || !allowed && a.Decision.Rule != ruleNamesQuota {
			t.Errorf("name %d: %+v %v", i, a, err)
		}
	}
	if n, err := c.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "n9.example"}); err != nil || n.Answer.Decision.Allowed() {
		t.Errorf("past the names of a run: %+v %v", n, err)
	}
	var would []string
	for _, r := range log.All() {
		if r.Kind == audit.KindNetwork && (r.Outcome == audit.WouldDeny || r.Detail["would"] != "") {
			would = append(would, fmt.Sprint(r.Outcome, " ", r.Rule, " ", r.Detail["name"], ":", r.Detail["port"]))
		}
	}
	if diff := cmp.Diff([]string{
		"would_deny network_default new.example:", "would_deny network_default new.example:443", "started mode new.example:443",
		"would_deny network_default n0.example:443", "started mode n0.example:443",
		"would_deny network_default n1.example:443", "started mode n1.example:443",
	}, would); diff != "" {
		t.Error(diff)
	}
	sum, err := c.Summary(ctx, "run1")
	must(t, err)
	if !sum.Observes || len(sum.WouldNames) != 3 || sum.WouldNames[2].Name != "new.example:443" {
		t.Errorf("%+v", sum.WouldNames)
	}
	// A policy that enforces ends what was only observed.
	if gone, err := c.Standing(ctx, "sb1", []uint64{open.Seq}); err != nil || len(gone) != 0 {
		t.Errorf("%v %v", gone, err)
	}
	must(t, c.NarrowPolicy(ctx, "sb1", parse(t, "network_allowlist: [ api.example ]\n")))
	if gone, err := c.Standing(ctx, "sb1", []uint64{open.Seq}); err != nil || !slices.Equal(gone, []uint64{open.Seq}) {
		t.Errorf("%v %v", gone, err)
	}
	if a, err := c.Serve(ctx, serving("flask", "3.0")); err != nil || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
}

// TestAClientNarrowsWhileObserving: what a client gives up of the network is not its policy's.
func TestAClientNarrowsWhileObserving(t *testing.T) {
	c := New(Config{Log: &approvaltest.Log{}})
	narrowing, err := policy.NewNarrowing([]string{"api.example"}, []string{policy.Everything}, nil)
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run1", Policy: parse(t, "mode: observe\nnetwork_allowlist: [ api.example ]\n"), Narrowing: narrowing}))
	if a, err := c.Connect(t.Context(), connectTo("new.example", 443, "93.184.215.14")); err != nil || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
	ask := connectTo("api.example", 443)
	ask.Addresses = []netip.Addr{netip.MustParseAddr("93.184.215.14")}
	if a, err := c.Connect(t.Context(), ask); err != nil || !a.Decision.Allowed() {
		t.Errorf("the control: %+v %v", a, err)
	}
}

// TestAPlanOfAnObservingPolicy: it says what would be refused, asks nobody, and serves
// nothing on record.
func TestAPlanOfAnObservingPolicy(t *testing.T) {
	h := observingHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1), true)
	if got := h.shows(t, indexOf("rich", "d1", wheel("rich", "13.0"))); !got[0] {
		t.Error("rich is not shown")
	}
	if got := h.shows(t, indexOf("evil", "d2", wheel("evil", "1.0"))); got[0] {
		t.Error("what is blocked is shown")
	}
	a, err := h.Serve(t.Context(), serving("rich", "13.0"))
	must(t, err)
	if !a.Decision.Allowed() {
		t.Errorf("%+v", a)
	}
	made, err := h.Plan(t.Context(), "run1", []planning.Choice{choice("rich", "13.0")})
	must(t, err)
	if len(made.Releases) != 1 || made.Releases[0].Verdict.Effect != policy.Allow || made.Releases[0].Verdict.Would != policy.Hold {
		t.Errorf("%+v", made)
	}
	if got := h.records(t, audit.WouldDeny, audit.WouldHold, audit.Served); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for _, r := range h.records(t, audit.Planned) {
		if r.Detail[detailEffect] != "would_hold" {
			t.Errorf("%+v", r)
		}
	}
}

// TestObservingReadsFirst: what an entry's package may require is read before a package
// counts as one that would be refused.
func TestObservingReadsFirst(t *testing.T) {
	h := observingHouse(t, document, false)
	ask := judging("idna", "3.0")
	ask.MayWalk = true
	if a, err := h.Judge(t.Context(), ask); err != nil || !a.Unreached {
		t.Errorf("%+v %v", a, err)
	}
	h.admitRequests(t)
	must(t, h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna", Specifier: ">=2.5,<4"}}))
	if a, err := h.Judge(t.Context(), ask); err != nil || a.Unreached || a.Decision.Would != "" || a.Decision.ResolvedBy != policy.ByDependency {
		t.Errorf("%+v %v", a, err)
	}
}
