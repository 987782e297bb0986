package advisory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestAffected: which versions an affected entry is about, in each of the ways
// in which records say it. A range that can't be read means every version.
func TestAffected(t *testing.T) {
	every := policy.Malware{Every: true}
	versions := func(v ...string) policy.Malware { return policy.Malware{Versions: v} }
	ranges := func(r ...policy.AffectedRange) policy.Malware { return policy.Malware{Ranges: r} }
	for _, tt := range []struct {
		name      string
		ecosystem string
		rest      string // of the affected entry
		want      policy.Malware
		widened   bool
	}{
		{"introduced 0 and never fixed burns the name", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]`, every, false},
		{"burnt beside versions", "npm", `"versions":["1.0.0"],"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]`, every, false},
		{"versions", "PyPI", `"versions":["1.0","2.0-RC1","1.0"]`, versions("1.0", "2.0rc1"), false},
		{"versions and none that a package can have", "npm", `"versions":["1.0.0","latest"]`, versions("1.0.0"), false},
		{"only versions that no package can have", "npm", `"versions":["latest"]`, every, true},
		{"neither versions nor ranges", "npm", `"database_specific":{}`, every, false},
		{"only commits", "npm", `"ranges":[{"type":"GIT","repo":"r","events":[{"introduced":"0"}]}]`, every, true},
		{"commits and versions", "npm", `"versions":["1.0.0"],"ranges":[{"type":"GIT","repo":"r","events":[{"introduced":"0"}]}]`, versions("1.0.0"), false},
		{"fixed", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"fixed":"1.2.0"}]}]`, ranges(policy.AffectedRange{Introduced: "1.0.0", Fixed: "1.2.0"}), false},
		{"fixed, from the first on", "crates.io", `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.2.0"}]}]`, ranges(policy.AffectedRange{Introduced: "0", Fixed: "1.2.0"}), false},
		{"last affected", "PyPI", `"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"last_affected":"2.0"}]}]`, ranges(policy.AffectedRange{Introduced: "0", LastAffected: "2.0"}), false},
		{"one version from end to end", "npm", `"ranges":[{"type":"SEMVER","events":[{"last_affected":"1.0.0"},{"introduced":"1.0.0"}]}]`, ranges(policy.AffectedRange{Introduced: "1.0.0", LastAffected: "1.0.0"}), false},
		{"no end", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"3.0.0"}]}]`, ranges(policy.AffectedRange{Introduced: "3.0.0"}), false},
		{
			"twice, in no order", "PyPI", `"ranges":[{"type":"ECOSYSTEM","events":[{"fixed":"1.10"},{"introduced":"1.9"},{"introduced":"0"},{"fixed":"1.2"}]}]`,
			ranges(policy.AffectedRange{Introduced: "0", Fixed: "1.2"}, policy.AffectedRange{Introduced: "1.9", Fixed: "1.10"}), false,
		},
		{"a limit ends", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"2.0.0"}]}]`, ranges(policy.AffectedRange{Introduced: "1.0.0", Fixed: "2.0.0"}), false},
		{"no limit", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"limit":"*"}]}]`, every, false},
		{"several limits narrow nothing", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"2.0.0"},{"limit":"3.0.0"}]}]`, ranges(policy.AffectedRange{Introduced: "1.0.0"}), false},
		{"Go versions get their v", "Go", `"versions":["1.0.0"],"ranges":[{"type":"SEMVER","events":[{"introduced":"1.1.0"},{"fixed":"v1.2.0"}]}]`, policy.Malware{Versions: []string{"v1.0.0"}, Ranges: []policy.AffectedRange{{Introduced: "v1.1.0", Fixed: "v1.2.0"}}}, false},
		{"an event that can't be read", "npm", `"versions":["1.0.0"],"ranges":[{"type":"SEMVER","events":[{"introduced":"one"}]}]`, every, true},
		{"an event of two kinds", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0","fixed":"2.0.0"}]}]`, every, true},
		{"an event of an unknown kind", "npm", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"paused":"2.0.0"}]}]`, every, true},
		{"no beginning", "npm", `"ranges":[{"type":"SEMVER","events":[{"fixed":"2.0.0"}]}]`, every, true},
		{"no events", "npm", `"ranges":[{"type":"SEMVER"}]`, every, true},
		{"an unknown type of range", "npm", `"versions":["1.0.0"],"ranges":[{"type":"LUNAR","events":[{"introduced":"0"}]}]`, every, true},
		{"a part of an ecosystem", "PyPI:extra", `"versions":["1.0"]`, versions("1.0"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := "some-name"
			if tt.ecosystem == "Go" {
				name = "host.example/a/b"
			}
			record := fmt.Sprintf(`{"id":"MAL-0000-1","affected":[{"package":{"ecosystem":%q,"name":%q},%s}]}`, tt.ecosystem, name, tt.rest)
			got, err := readRecord([]byte(record), at())
			if err != nil || len(got.malicious) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			tt.want.ID = "MAL-0000-1"
			if diff := cmp.Diff(tt.want, got.malicious[0].malware, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if (len(got.widened) == 1) != tt.widened {
				t.Errorf("widened %q", got.widened)
			}
		})
	}
}

func TestRecords(t *testing.T) {
	affected := func(ecosystem, name string) string {
		return fmt.Sprintf(`{"package":{"ecosystem":%q,"name":%q},"versions":["1.0.0"]}`, ecosystem, name)
	}
	record := func(head, affected string) string { return "{" + head + `,"affected":[` + affected + "]}" }
	for _, tt := range []struct {
		name, record, want string // what comes of it, or a word of the error after "error "
	}{
		{"malware", record(`"id":"MAL-0000-1"`, affected("PyPI", "Foo_Bar")), "MAL-0000-1 python foo-bar"},
		{"by its alias", record(`"id":"GHSA-0000","aliases":["CVE-0000-1","MAL-0000-2"]`, affected("npm", "x")), "MAL-0000-2 node x"},
		{"no malware", record(`"id":"GHSA-0000","aliases":["CVE-0000-1"]`, affected("npm", "x")), "GHSA-0000[CVE-0000-1] unknown node x"},
		{"a vulnerability that is withdrawn", record(`"id":"GHSA-0000","withdrawn":"2026-01-01T00:00:00Z"`, affected("npm", "x")), "withdrawn"},
		{"a vulnerability elsewhere", record(`"id":"GHSA-0000"`, affected("RubyGems", "x")), "elsewhere 1"},
		{"a vulnerability of no package", record(`"id":"CVE-0000-1"`, `{"ranges":[{"type":"GIT","repo":"r","events":[{"introduced":"0"}]}]}`), "elsewhere 1"},
		{"a vulnerability of nothing", `{"id":"CVE-0000-1"}`, "pointless"},
		{"by a word of its database", record(`"id":"GHSA-0000","database_specific":{"severity":"MODERATE"}`, affected("npm", "x")), "GHSA-0000[] medium node x"},
		{"a word that is none", record(`"id":"GHSA-0000","database_specific":{"severity":7}`, affected("npm", "x")), "GHSA-0000[] unknown node x"},
		{"the worse of two places", record(`"id":"GHSA-0000","severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"}],"database_specific":{"severity":"HIGH"}`, affected("npm", "x")), "GHSA-0000[] high node x"},
		{"other ids: those that people know first", record(`"id":"PYSEC-1","aliases":["SNYK-1","GHSA-1","CVE-1","PYSEC-1"]`, affected("PyPI", "x")), "PYSEC-1[CVE-1 GHSA-1 SNYK-1] unknown python x"},
		{"withdrawn", record(`"id":"MAL-0000-1","withdrawn":"2026-01-01T00:00:00Z"`, affected("npm", "x")), "withdrawn"},
		{"not withdrawn", record(`"id":"MAL-0000-1","withdrawn":null`, affected("npm", "x")), "MAL-0000-1 node x"},
		{"to be withdrawn", record(`"id":"MAL-0000-1","withdrawn":"2030-01-01T00:00:00Z"`, affected("npm", "x")), "MAL-0000-1 node x"},
		{"withdrawn at no time", record(`"id":"MAL-0000-1","withdrawn":"yes"`, affected("npm", "x")), "error not a time"},
		{"another ecosystem", record(`"id":"MAL-0000-1"`, affected("RubyGems", "x")), "elsewhere 1"},
		{"another spelling is another ecosystem", record(`"id":"MAL-0000-1"`, affected("pypi", "x")), "elsewhere 1"},
		{"a name that nobody can ask for", record(`"id":"MAL-0000-1"`, affected("npm", "a b")), "unnamed 1"},
		{"several", record(`"id":"MAL-0000-1"`, affected("npm", "x")+","+affected("Go", "host.example/x/y")), "MAL-0000-1 node x MAL-0000-1 go host.example/x/y"},
		{"one package twice", record(`"id":"MAL-0000-1"`, affected("npm", "x")+","+affected("npm", "x")), "MAL-0000-1 node x"},
		{"nothing affected", `{"id":"MAL-0000-1"}`, "error names no affected package"},
		{"something without a name", record(`"id":"MAL-0000-1"`, `{"versions":["1"]}`), "error not named"},
		{"no id", `{"affected":[]}`, "error id"},
		{"an id for a terminal", record(`"id":"MAL-\u001b[31m"`, affected("npm", "x")), "error id"},
		{"no JSON", `MAL-0000-1`, "error no OSV record"},
		{"cut short", `{"id":"MAL-0000-1","affected":[`, "error no OSV record"},
		{"something after it", `{"id":"MAL-0000-1"} {}`, "error no OSV record"},
		{"a member twice", `{"id":"MAL-0000-1","id":"GHSA-1"}`, "error no OSV record"},
		{"another case is another member", `{"id":"MAL-0000-1","Affected":[]}`, "error names no affected package"},
		{"bad UTF-8", "{\"id\":\"MAL-0000-1\",\"details\":\"\xff\"}", "error no OSV record"},
		{"a wrong type", `{"id":"MAL-0000-1","affected":{}}`, "error no OSV record"},
		{"a list", `[]`, "error no OSV record"},
		{"nothing", ``, "error no OSV record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := readRecord([]byte(tt.record), at())
			if word, bad := strings.CutPrefix(tt.want, "error "); bad {
				if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), word) {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := inWords(r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// inWords is a reading in words.
func inWords(r reading) string {
	var out []string
	for _, m := range r.malicious {
		out = append(out, m.malware.ID+" "+m.pkg.String())
	}
	for _, v := range r.vulnerable {
		out = append(out, fmt.Sprint(v.vulnerability.ID, v.vulnerability.Aliases, " ", v.vulnerability.Severity, " ", v.pkg))
	}
	for what, n := range map[string]int{"pointless": boolInt(r.pointless), "withdrawn": boolInt(r.withdrawn)} {
		if n > 0 {
			out = append(out, what)
		}
	}
	for what, n := range map[string]int{"elsewhere": r.elsewhere, "unnamed": r.unnamed} {
		if n > 0 {
			out = append(out, fmt.Sprint(what, " ", n))
		}
	}
	return strings.Join(out, " ")
}

// FuzzRecord: whatever a record says, it is read or refused; what is read has
// canonical names, an id of malware, and comes back whole from a table.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(burnt("MAL-0000-1", "npm", "x")))
	f.Add([]byte(`{"id":"MAL-1","affected":[{"package":{"ecosystem":"PyPI","name":"a"},"versions":["1.0"],"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"1"},{"last_affected":"2"}]}]}]}`))
	f.Add([]byte(`{"id":"GHSA-1","aliases":["CVE-2"],"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],"affected":[{"package":{"ecosystem":"PyPI","name":"a"},"versions":["1.0"],"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"2"}]}]}]}`))
	f.Add([]byte(`{"id":"GHSA-1","aliases":["MAL-2"],"affected":[{"package":{"ecosystem":"Go","name":"a.example/b"},"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"2.0.0"}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRecord(data, at())
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Fatalf("%v is no ErrInvalid", err)
			}
			return
		}
		var b tableBuilder
		for _, m := range r.malicious {
			if !pkgref.IsCanonicalName(m.pkg.Ecosystem, m.pkg.Name) || !strings.HasPrefix(m.malware.ID, malwarePrefix) {
				t.Fatalf("%+v", m)
			}
			if !m.malware.Every && len(m.malware.Versions)+len(m.malware.Ranges) == 0 {
				t.Fatalf("%+v is about nothing", m)
			}
			if err := b.addMalicious(m); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range r.vulnerable {
			if !v.vulnerability.Every && len(v.vulnerability.Versions)+len(v.vulnerability.Ranges) == 0 {
				t.Fatalf("%+v is about nothing", v)
			}
			if err := b.addVulnerable(v); err != nil {
				t.Fatal(err)
			}
		}
		data, _ = b.encodeTable()
		table, err := openTable(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.malicious {
			found, err := table.findPackage(m.pkg)
			if err != nil || len(found.malware) != 1 || !cmp.Equal(found.malware[0], m.malware, cmpopts.EquateEmpty()) {
				t.Fatalf("%+v came back as %+v, %v", m.malware, found, err)
			}
		}
		for _, v := range r.vulnerable {
			found, err := table.findPackage(v.pkg)
			if err != nil || len(found.vulnerabilities) != 1 || !cmp.Equal(found.vulnerabilities[0], v.vulnerability, cmpopts.EquateEmpty()) {
				t.Fatalf("%+v came back as %+v, %v", v.vulnerability, found, err)
			}
		}
	})
}

// FuzzTable: bytes that are no table are refused or answer with an error, and
// nothing is read outside of them.
func FuzzTable(f *testing.F) {
	var b tableBuilder
	pkg := pkgref.Ref{Ecosystem: pkgref.Node, Name: "x"}
	_ = b.addMalicious(malicious{pkg, policy.Malware{ID: "MAL-1", Versions: []string{"1.0.0"}, Ranges: []policy.AffectedRange{{Introduced: "2.0.0"}}}})
	data, _ := b.encodeTable()
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		if table, err := openTable(data); err == nil {
			_, _ = table.findPackage(pkg)
		}
	})
}
