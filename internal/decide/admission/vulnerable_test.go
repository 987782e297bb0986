package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// weaken makes the vulnerabilities of one package known, and that of no other any is.
func (g *gazette) weaken(generation, name string, records ...policy.Vulnerability) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generation, g.facts = generation, nil
	g.vulnerabilities = func(pkg pkgref.Ref) advisory.Vulnerabilities {
		v := advisory.Vulnerabilities{Assessed: pkg.Ecosystem == pkgref.Node || pkg.Ecosystem == pkgref.Python, Imported: noon()}
		if pkg.Name == name {
			v.Known = records
		}
		return v
	}
}

func flawed(id string, severity policy.Severity, fixed string) policy.Vulnerability {
	return policy.Vulnerability{ID: id, Severity: severity, Ranges: []policy.AffectedRange{{Introduced: "0", Fixed: fixed}}}
}

// TestVulnerabilitiesAreWeighed where the policy has a rule: on pages and at files, from the
// import on, under a policy that is in force already.
func TestVulnerabilitiesAreWeighed(t *testing.T) {
	g := newGrove(t, "packages: { default: allow, vulnerabilities: { deny: critical } }", Limits{})
	advisories := &gazette{}
	g.config.Advisories = advisories
	advisories.weaken("1", "other")
	if shown := g.page(t, "a", nil, "1.0.0", "1.1.0"); shown != "1.0.0 1.1.0" {
		t.Fatalf("a shows %s", shown)
	}
	advisories.weaken("2", "a", flawed("GHSA-1", policy.SeverityCritical, "1.1.0"), flawed("GHSA-2", policy.SeverityHigh, "2.0.0"))
	if shown := g.page(t, "a", nil, "1.0.0", "1.1.0"); shown != "1.1.0" {
		t.Errorf("after the import, a shows %s", shown)
	}
	g.expect(t, false, node("a", "1.0.0"))
	g.expect(t, true, node("a", "1.1.0"), node("b", "1.0.0"))
	blocked := g.records(t, audit.Blocked)
	if len(blocked) != 1 || blocked[0].ResolvedBy != "vulnerability" || blocked[0].Rule != "packages.vulnerabilities" || blocked[0].Detail["alarm"] != "" ||
		blocked[0].Reason != "this version of a has GHSA-1 (critical), fixed in 1.1.0" {
		t.Errorf("recorded: %+v", blocked)
	}
	list, err := g.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	if !slices.ContainsFunc(list, func(r door.Refusal) bool { return strings.Contains(r.Reason, "GHSA-1 (critical), fixed in 1.1.0") }) {
		t.Errorf("why: %+v", list)
	}
	if got := g.fetch(t, pkgref.Ref{Ecosystem: pkgref.Rust, Name: "c", Version: "1.0.0"}); got.Effect != policy.Deny || !strings.Contains(got.Reason, "no known vulnerabilities of rust packages are imported") {
		t.Errorf("an ecosystem of which none is imported: %+v", got)
	}
}

// TestWithoutARuleVulnerabilitiesRefuseNothing.
func TestWithoutARuleVulnerabilitiesRefuseNothing(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	advisories := &gazette{}
	g.config.Advisories = advisories
	advisories.weaken("1", "a", flawed("GHSA-1", policy.SeverityCritical, "9.0.0"))
	g.expect(t, true, node("a", "1.0.0"), pkgref.Ref{Ecosystem: pkgref.Rust, Name: "c", Version: "1.0.0"})
}

// TestEvidenceOfVulnerabilities: who decides is shown those of the release, the worst first, and
// where nobody looked, that.
func TestEvidenceOfVulnerabilities(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	advisories := &gazette{}
	h.config.Advisories = advisories
	asked := func(name, version string) evidence.Evidence {
		t.Helper()
		if _, err := h.Await(t.Context(), awaiting(name, version)); err != nil {
			t.Fatal(err)
		}
		list := h.queue.list()
		i := slices.IndexFunc(list, func(r approval.Request) bool { return r.Package == python(name, version) })
		if i < 0 {
			t.Fatalf("nobody was asked about %s: %+v", name, list)
		}
		return list[i].Evidence
	}
	few := []policy.Vulnerability{flawed("GHSA-1", policy.SeverityLow, "14.0"), flawed("GHSA-2", policy.SeverityHigh, ""), flawed("GHSA-3", policy.SeverityCritical, "13.0")}
	advisories.weaken("1", "rich", few...)
	v := asked("rich", "13.7.1").Vulnerabilities
	if v == nil || !v.Imported.Equal(noon()) || fmt.Sprint(v.Known) != "[GHSA-2 (high), no fix known GHSA-1 (low), fixed in 14.0]" {
		t.Errorf("%+v", v)
	}
	if v := asked("attrs", "1.0").Vulnerabilities; v.Count() != 0 || v == nil {
		t.Errorf("of one without: %+v", v)
	}
	var many []policy.Vulnerability
	for i := range 100 {
		many = append(many, flawed(fmt.Sprintf("GHSA-%d", i), policy.SeverityLow, "2"))
	}
	advisories.weaken("2", "holey", many...)
	if v := asked("holey", "1.0").Vulnerabilities; len(v.Known) != evidence.MaxVulnerabilities || v.Count() != 100 {
		t.Errorf("%d here of %d", len(v.Known), v.Count())
	}
	advisories.publish("3", "x", advisory.Facts{})
	e := asked("numpy", "1.0")
	if e.Vulnerabilities != nil || !slices.Contains(e.Unchecked, "vulnerabilities: no database about python packages is imported (cofferdam advisory import)") {
		t.Errorf("not checked: %+v", e)
	}
}
