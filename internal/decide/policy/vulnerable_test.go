package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const ruleVulnerabilities = "packages.vulnerabilities"

// before is a range from the first version to before fixed.
func before(fixed string) []policy.AffectedRange {
	return []policy.AffectedRange{{Introduced: "0", Fixed: fixed}}
}

// known asks about a release of whose package these records are known.
func known(ref pkgref.Ref, records ...policy.Vulnerability) policy.Input {
	in := archive(ref)
	in.Vulnerabilities, in.Assessed = records, true
	return in
}

func weighing(t *testing.T, rule, rest string) *policy.Policy {
	t.Helper()
	return mustParse(t, "packages: { default: allow, vulnerabilities: "+rule+" }\n"+rest)
}

// TestVulnerabilityLevels: each severity against each rule, one below the level and one that is
// nobody's among them.
func TestVulnerabilityLevels(t *testing.T) {
	effects := map[string]string{ // by rule, of unknown, low, medium, high, critical
		"{ deny: critical, hold: high }":                    "hold allow allow hold deny",
		"{ deny: low }":                                     "deny deny deny deny deny",
		"{ deny: critical }":                                "deny allow allow allow deny",
		"{ hold: medium }":                                  "hold allow hold hold hold",
		"{ hold: critical, unknown: allow }":                "allow allow allow allow hold",
		"{ deny: high, unknown: hold }":                     "hold allow allow deny deny",
		"{ deny: critical, hold: high, unknown: deny }":     "deny allow allow hold deny",
		"{ deny: \"high\", hold: low, unknown: \"allow\" }": "allow hold hold deny deny",
	}
	for rule, want := range effects {
		p := weighing(t, rule, "")
		for severity, effect := range strings.Fields(want) {
			one := policy.Vulnerability{ID: "GHSA-1", Aliases: []string{"CVE-1"}, Severity: policy.Severity(severity), Ranges: before("1.2.3")}
			d := p.Decide(clock(), known(node("a", "1.2.2"), one))
			wellFormed(t, d)
			if string(d.Effect) != effect || effect != "allow" && (d.Rule != ruleVulnerabilities || d.ResolvedBy != policy.ByVulnerability || d.Alarm) {
				t.Errorf("%s, %s: %+v", rule, one.Severity, d)
			}
			if says := fmt.Sprintf("this version of a has CVE-1 (%s), fixed in 1.2.3", one.Severity); effect != "allow" && !strings.HasPrefix(d.Reason, says) {
				t.Errorf("%s: %s", rule, d.Reason)
			}
			expect(t, rule+": the fixed one", p.Decide(clock(), known(node("a", "1.2.3"), one)), policy.Allow, "packages.default")
		}
	}
}

// TestVulnerabilityRulesThatSayNothing are refused when they are read.
func TestVulnerabilityRulesThatSayNothing(t *testing.T) {
	for rule, want := range map[string]string{
		"{}":                            "needs a level",
		"{ unknown: deny }":             "needs a level",
		"{ deny: severe }":              "must be low, medium, high or critical",
		"{ deny: unknown }":             "must be low, medium, high or critical",
		"{ deny: high, hold: high }":    "nothing is left to hold",
		"{ deny: low, hold: critical }": "nothing is left to hold",
		"{ deny: high, allow: low }":    "unknown key",
		"{ deny: high, unknown: low }":  "must be deny, hold or allow",
		"high":                          "must be a mapping",
	} {
		if _, err := policy.Parse("p", []byte("packages: { vulnerabilities: "+rule+" }")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rule, err)
		}
	}
	for ids, want := range map[string]string{"[]": "must name from 1", "[ \"CVE 1\" ]": "no id", "CVE-1": "must be a list", "[ high ]": "no id"} {
		document := "allowed_packages: { node: [ { name: a, accepted_vulnerabilities: " + ids + " } ] }"
		if _, err := policy.Parse("p", []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ids, err)
		}
	}
}

// TestVulnerabilitiesWeighOnWhateverAdmits: an entry, a dependency, a trusted lockfile; and
// nothing that is refused before is refused for them.
func TestVulnerabilitiesWeighOnWhateverAdmits(t *testing.T) {
	bad := policy.Vulnerability{ID: "GHSA-1", Severity: policy.SeverityCritical, Ranges: before("2.0.0")}
	rest := "allowed_packages: { node: [ { name: listed }, { name: parent, with_dependencies: true }, { name: capped, max_version: \"0.x\" } ] }\nblocked_packages: { node: [ { name: blocked } ] }"
	p := mustParse(t, "packages: { vulnerabilities: { deny: critical } }\n"+rest)
	child := known(node("child", "1.0.0"), bad)
	child.Edges = []policy.Edge{wants(node("parent", "1.0.0"), "child", "^1.0.0")}
	pinned := known(node("pinned", "1.0.0"), bad)
	pinned.Lock = &policy.Lock{Mode: policy.LockFrozen, Trusted: true, Pins: []policy.Pin{{Version: "1.0.0", Digests: []string{"sha256:aa"}, Lockfile: "l", Line: 1}}}
	pinned.Digests, pinned.Digest, pinned.Complete = []string{"sha256:aa"}, "sha256:aa", true
	for what, in := range map[string]policy.Input{"an entry": known(node("listed", "1.0.0"), bad), "a dependency": child, "a pin": pinned} {
		expect(t, what, p.Decide(clock(), in), policy.Deny, ruleVulnerabilities)
		in.Vulnerabilities = nil
		if d := p.Decide(clock(), in); !d.Allowed() {
			t.Errorf("%s, the control: %+v", what, d)
		}
	}
	expect(t, "blocked", p.Decide(clock(), known(node("blocked", "1.0.0"), bad)), policy.Deny, "blocked_packages.node.blocked")
	expect(t, "capped", p.Decide(clock(), known(node("capped", "1.0.0"), bad)), policy.Deny, "allowed_packages.node.capped.max_version")
	expect(t, "unlisted", p.Decide(clock(), known(node("unlisted", "1.0.0"), bad)), policy.Deny, "packages.default")
	malicious := known(node("listed", "1.0.0"), bad)
	malicious.Malware = []policy.Malware{{ID: "MAL-1", Every: true}}
	expect(t, "malware", p.Decide(clock(), malicious), policy.Deny, "advisory.MAL-1")
}

// TestUnassessedIsRefused: a rule that can't be judged refuses, by name and by release, and says
// why; without the rule it is nobody's business.
func TestUnassessedIsRefused(t *testing.T) {
	p := weighing(t, "{ hold: critical }", "")
	d := p.Decide(clock(), archive(node("a", "1.0.0")))
	expect(t, "a release", d, policy.Deny, ruleVulnerabilities)
	if !strings.Contains(d.Reason, "no known vulnerabilities of node packages are imported") {
		t.Error(d.Reason)
	}
	expect(t, "a name", p.Judge(clock(), policy.Subject{Package: node("a", "")}).Name(), policy.Deny, ruleVulnerabilities)
	expect(t, "assessed", p.Judge(clock(), policy.Subject{Package: node("a", ""), Assessed: true}).Name(), policy.Allow, "packages.default")
	expect(t, "no rule", mustParse(t, "packages: { default: allow }").Decide(clock(), archive(node("a", "1.0.0"))), policy.Allow, "packages.default")
	watching := mustParse(t, "mode: observe\npackages: { default: allow, vulnerabilities: { deny: high } }")
	if d := watching.Decide(clock(), archive(node("a", "1.0.0"))); !d.Allowed() || d.Would != policy.Deny || d.Rule != ruleVulnerabilities {
		t.Errorf("observed: %+v", d)
	}
}

// TestAcceptedVulnerabilities: an entry takes those out that it names, by any id, for what it
// admits; others, and records of others that share one of its ids, count on.
func TestAcceptedVulnerabilities(t *testing.T) {
	one := policy.Vulnerability{ID: "GHSA-1", Aliases: []string{"CVE-1"}, Severity: policy.SeverityHigh, Every: true}
	twin := policy.Vulnerability{ID: "PYSEC-1", Aliases: []string{"CVE-1"}, Every: true}
	other := policy.Vulnerability{ID: "GHSA-2", Aliases: []string{"CVE-2"}, Severity: policy.SeverityHigh, Every: true}
	for ids, want := range map[string]string{"CVE-1": "CVE-2", "GHSA-2": "CVE-1", "CVE-1, CVE-2": "", "CVE-3": "CVE-1"} {
		p := weighing(t, "{ deny: high }", "allowed_packages: { node: [ { name: a, max_version: \"1.x\", accepted_vulnerabilities: [ "+ids+" ] } ] }")
		d := p.Decide(clock(), known(node("a", "1.0.0"), one, twin, other))
		if want == "" && !d.Allowed() || want != "" && (d.Effect != policy.Deny || !strings.Contains(d.Reason, want)) {
			t.Errorf("%s: %+v", ids, d)
		}
		expect(t, "another release", p.Decide(clock(), known(node("a", "2.0.0"), one)), policy.Deny, "allowed_packages.node.a.max_version")
	}
}

// TestVulnerabilitiesNarrow: the stricter of two policies' rules stands.
func TestVulnerabilitiesNarrow(t *testing.T) {
	high := known(node("a", "1.0.0"), policy.Vulnerability{ID: "GHSA-1", Severity: policy.SeverityHigh, Every: true})
	for _, rules := range [][2]string{{"{ hold: high }", "{ deny: high }"}, {"{ deny: high }", "{ hold: high }"}, {"{ hold: critical, unknown: allow }", "{ deny: high }"}} {
		p, ok := weighing(t, rules[0], "").NarrowedBy(weighing(t, rules[1], ""))
		if !ok || !policy.WeighsVulnerabilities(p) {
			t.Fatal(rules)
		}
		expect(t, fmt.Sprint(rules), p.Decide(clock(), high), policy.Deny, ruleVulnerabilities)
	}
	if p, _ := mustParse(t, "packages: { default: allow }").NarrowedBy(weighing(t, "{ deny: high }", "")); !policy.WeighsVulnerabilities(p) {
		t.Error("a rule of what narrows is not weighed")
	}
}

// TestVulnerabilityHoldIsAnswered: a person's approval lets it in, and a denial does not.
func TestVulnerabilityHoldIsAnswered(t *testing.T) {
	p := weighing(t, "{ hold: high }", "")
	if !p.MayHold() || weighing(t, "{ deny: high }", "").MayHold() {
		t.Error("whether it may hold")
	}
	in := known(node("a", "1.0.0"), policy.Vulnerability{ID: "GHSA-1", Severity: policy.SeverityHigh, Every: true})
	in.Digests = []string{"sha256:aa"}
	in.Approvals = []policy.Approval{{ID: "ap-1", Version: "1.0.0", By: "ann", Digests: in.Digests}}
	expect(t, "approved", p.Decide(clock(), in), policy.Allow, "approval")
	in.Digests = []string{"sha256:bb"}
	expect(t, "another file", p.Decide(clock(), in), policy.Hold, ruleVulnerabilities)
	expect(t, "denied by the rule", weighing(t, "{ deny: high }", "").Decide(clock(), in), policy.Deny, ruleVulnerabilities)
}

// TestVulnerabilitiesOf: records of one vulnerability are one, as bad as the worst says, and
// fixed where the last of them is.
func TestVulnerabilitiesOf(t *testing.T) {
	records := []policy.Vulnerability{
		{ID: "GHSA-1", Aliases: []string{"CVE-2"}, Severity: policy.SeverityMedium, Ranges: []policy.AffectedRange{{Introduced: "1.0", Fixed: "1.5"}, {Introduced: "2.0", Fixed: "2.1"}}},
		{ID: "PYSEC-7", Aliases: []string{"CVE-2", "GHSA-1"}, Versions: []string{"1.0", "1.4"}, Ranges: before("1.6")},
		{ID: "PYSEC-8", Ranges: []policy.AffectedRange{{Introduced: "0", LastAffected: "1.4"}}},
		{ID: "GHSA-9", Severity: policy.SeverityCritical, Versions: []string{"1.4"}, Ranges: before("1.2")},
		{ID: "GHSA-3", Severity: policy.SeverityCritical, Every: true},
	}
	for version, want := range map[string]string{
		"1.4":     "GHSA-3 (critical), no fix known; GHSA-9 (critical), no fix known; CVE-2 (medium), fixed in 1.6; PYSEC-8 (unknown), no fix known",
		"1.5":     "GHSA-3 (critical), no fix known; CVE-2 (medium), fixed in 1.6",
		"2.0.1":   "GHSA-3 (critical), no fix known; CVE-2 (medium), fixed in 2.1",
		"1.1":     "GHSA-3 (critical), no fix known; GHSA-9 (critical), fixed in 1.2; CVE-2 (medium), fixed in 1.6; PYSEC-8 (unknown), no fix known",
		"1.6rc1":  "GHSA-3 (critical), no fix known; CVE-2 (medium), fixed in 1.6",
		"3.0":     "GHSA-3 (critical), no fix known",
		"1!1.4":   "GHSA-3 (critical), no fix known",
		"1.4.dev": "GHSA-3 (critical), no fix known; CVE-2 (medium), fixed in 1.6; PYSEC-8 (unknown), no fix known",
		"":        "GHSA-3 (critical), no fix known; GHSA-9 (critical), fixed in 1.2; CVE-2 (medium), fixed in 2.1; PYSEC-8 (unknown), no fix known",
	} {
		var got []string
		for _, k := range policy.VulnerabilitiesOf(python("a", version), records) {
			got = append(got, k.String())
			if k.ID == "CVE-2" && version == "1.4" && fmt.Sprint(k.Aliases) != "[GHSA-1 PYSEC-7]" {
				t.Errorf("aliases %s", k.Aliases)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\n got %s\nwant %s", version, strings.Join(got, "; "), want)
		}
	}
}

// TestAFixIsNoAffectedVersion: the version that is told to fix a vulnerability is one that no
// record of it is about, whichever range or record ends where.
func TestAFixIsNoAffectedVersion(t *testing.T) {
	record := func(id string, ranges ...policy.AffectedRange) policy.Vulnerability {
		return policy.Vulnerability{ID: id, Aliases: []string{"CVE-1"}, Severity: policy.SeverityHigh, Ranges: ranges}
	}
	for what, tt := range map[string]struct {
		records []policy.Vulnerability
		want    string
	}{
		"a twin of every version":     {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), {ID: "PYSEC-1", Aliases: []string{"CVE-1"}, Every: true}}, "no fix known"},
		"a twin without an end":       {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), record("PYSEC-1", policy.AffectedRange{Introduced: "1.2"})}, "no fix known"},
		"a twin that begins at it":    {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), record("PYSEC-1", policy.AffectedRange{Introduced: "1.5", Fixed: "1.7"})}, "fixed in 1.7"},
		"a twin that lists it":        {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), {ID: "PYSEC-1", Aliases: []string{"CVE-1"}, Versions: []string{"1.5"}}}, "no fix known"},
		"ranges over each other":      {[]policy.Vulnerability{record("GHSA-1", policy.AffectedRange{Introduced: "0", Fixed: "1.5"}, policy.AffectedRange{Introduced: "1.4", Fixed: "2.0"})}, "fixed in 2.0"},
		"a twin of a later line":      {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), record("PYSEC-1", policy.AffectedRange{Introduced: "2.0"})}, "fixed in 1.5"},
		"another vulnerability of it": {[]policy.Vulnerability{record("GHSA-1", before("1.5")...), {ID: "PYSEC-1", Aliases: []string{"CVE-2"}, Every: true}}, "fixed in 1.5"},
	} {
		known := policy.VulnerabilitiesOf(python("a", "1.4.2"), tt.records)
		i := slices.IndexFunc(known, func(k policy.KnownVulnerability) bool { return k.ID == "CVE-1" })
		if i < 0 || !strings.HasSuffix(known[i].String(), ", "+tt.want) {
			t.Errorf("%s: %s, want %s", what, known, tt.want)
		}
	}
}

// TestBuildsOfAnAffectedVersion: a release with a local part, as other indexes have of one that is
// listed or is the last affected, is affected as that one is, by vulnerabilities and malware
// alike; one of a fixed version is not.
func TestBuildsOfAnAffectedVersion(t *testing.T) {
	p := weighing(t, "{ deny: critical }", "")
	for what, tt := range map[string]struct {
		versions  []string
		ranges    []policy.AffectedRange
		bad, good string
	}{
		"last affected":    {nil, []policy.AffectedRange{{Introduced: "0", LastAffected: "2.0.0"}}, "2.0+cu118 2.0.0+cu118 2.0.0", "2.0.1+cu118 2.0.0.post1"},
		"listed":           {[]string{"2.0.0"}, nil, "2.0.0+cu118 2.0.0", "2.0.1+cu118"},
		"fixed":            {nil, before("2.0.1"), "2.0.0+cu118", "2.0.1 2.0.1+cu118"},
		"one build listed": {[]string{"2.0.0+cu118"}, nil, "2.0.0+cu118", "2.0.0 2.0.0+cu117"},
		"one build's end":  {nil, []policy.AffectedRange{{Introduced: "0", LastAffected: "2.0.0+cu117"}}, "2.0.0 2.0.0+cu117", "2.0.0+cu118"},
	} {
		for effect, versions := range map[policy.Effect]string{policy.Deny: tt.bad, policy.Allow: tt.good} {
			for version := range strings.FieldsSeq(versions) {
				in := known(python("torch", version), policy.Vulnerability{ID: "GHSA-1", Severity: policy.SeverityCritical, Versions: tt.versions, Ranges: tt.ranges})
				if d := p.Decide(clock(), in); d.Effect != effect {
					t.Errorf("%s, %s: %s %s", what, version, d.Effect, d.Reason)
				}
				in.Vulnerabilities, in.Malware = nil, []policy.Malware{{ID: "MAL-1", Versions: tt.versions, Ranges: tt.ranges}}
				if d := p.Decide(clock(), in); d.Effect != effect {
					t.Errorf("malware, %s, %s: %s %s", what, version, d.Effect, d.Reason)
				}
			}
		}
	}
}

// TestCompactVersions: an enumeration of what the ranges have goes, and nothing else.
func TestCompactVersions(t *testing.T) {
	v := policy.Vulnerability{Versions: []string{"1.0", "1.1", "2.0"}, Ranges: before("1.2")}
	v.CompactVersions(pkgref.Python)
	if fmt.Sprint(v.Versions) != "[2.0]" {
		t.Errorf("%s", v.Versions)
	}
	// A range that ends with a build of the version has not all of its builds.
	v = policy.Vulnerability{Versions: []string{"2.0", "1.0"}, Ranges: before("2.0+b1")}
	if v.CompactVersions(pkgref.Python); fmt.Sprint(v.Versions) != "[2.0]" {
		t.Errorf("with a build at the end: %s", v.Versions)
	}
	v = policy.Vulnerability{Versions: []string{"1.0"}}
	if v.CompactVersions(pkgref.Python); len(v.Versions) != 1 {
		t.Error("without ranges all is gone")
	}
}
