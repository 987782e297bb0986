package advisory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// flaw is a record of a vulnerability of one package.
func flaw(id, ecosystem, name, rest string) string {
	return fmt.Sprintf(`{"schema_version":"1.7.0","id":%q,"modified":"2026-11-01T00:00:00Z","aliases":["CVE-0000-%s"],
		"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H"}],
		"affected":[{"package":{"ecosystem":%q,"name":%q},%s}],"database_specific":{"cwe_ids":["CWE-400"]}}`, id, id[len(id)-1:], ecosystem, name, rest)
}

// TestSeverity: of each form in which records say it. A score that can't be read says nothing.
func TestSeverity(t *testing.T) {
	for _, tt := range []struct {
		what, score string
		want        policy.Severity
	}{
		{"3.1, 9.8", "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", policy.SeverityCritical},
		{"3.1, 7.5", "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", policy.SeverityHigh},
		{"3.0, 6.1", "CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", policy.SeverityMedium},
		{"3.1, 1.8", "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N", policy.SeverityLow},
		{"3.1, none", "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:N/I:N/A:N", policy.SeverityLow},
		{"2, 10", "AV:N/AC:L/Au:N/C:C/I:C/A:C", policy.SeverityHigh},
		{"2, 4.3", "AV:N/AC:M/Au:N/C:N/I:P/A:N", policy.SeverityMedium},
		{"2, 1.2", "AV:L/AC:H/Au:N/C:P/I:N/A:N", policy.SeverityLow},
		{"4, 10", "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H", policy.SeverityCritical},
		{"4, 8.7", "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:H/SC:N/SI:N/SA:N", policy.SeverityHigh},
		{"a word", "moderate", policy.SeverityMedium},
		{"a word in capitals", "CRITICAL", policy.SeverityCritical},
		{"a number alone", "9.8", policy.SeverityUnknown},
		{"half a vector", "CVSS:3.1/AV:N/AC:L", policy.SeverityUnknown},
		{"a form of the future", "CVSS:5.0/AV:N", policy.SeverityUnknown},
		{"nothing", "", policy.SeverityUnknown},
	} {
		if got := severityOf([]osvSeverity{{Score: tt.score}}, nil); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
	both := []osvSeverity{{Score: "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"}, {Score: "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:H/SC:N/SI:N/SA:N"}}
	if got := severityOf(both, []byte(`{"severity":"LOW"}`)); got != policy.SeverityHigh {
		t.Errorf("of several: %s", got)
	}
}

// TestVulnerableVersions: which versions are meant, in every ecosystem and each way to say it, by
// what comes back from the database.
func TestVulnerableVersions(t *testing.T) {
	const events = `"ranges":[{"type":%q,"events":[{"introduced":"0"},{"fixed":"1.2.0"},{"introduced":"2.0.0"},{"last_affected":"2.1.0"}]}]`
	semver, pep := fmt.Sprintf(events, "SEMVER"), fmt.Sprintf(events, "ECOSYSTEM")
	for _, tt := range []struct {
		of        pkgref.Ecosystem
		name      string
		rest      string
		bad, good string
		fixed     string // of the first bad one
	}{
		{pkgref.Node, "a", semver, "1.1.9 1.2.0-rc.1 2.0.0 2.1.0", "1.2.0 2.1.1 2.0.0-rc.1", "1.2.0"},
		{pkgref.Python, "a", pep, "1.1.9 1.2rc1 1.2.0.dev1 2.0 2.1", "1.2 1.2.post1 2.1.1 1!1.0", "1.2.0"},
		{pkgref.Rust, "a", semver, "1.1.9 2.0.5", "1.2.0 2.1.1", "1.2.0"},
		{pkgref.Go, "example.com/a", semver, "v1.1.9 v0.0.0-20200101000000-abcdefabcdef v2.0.0", "v1.2.0 v2.1.1", "v1.2.0"},
		{pkgref.Python, "a", `"versions":["1.0","1.1"]`, "1.0 1.1", "1.2", ""},
		{pkgref.Python, "a", `"versions":["1.0","3.0"],` + pep, "1.0 3.0 2.0", "1.2 3.1", "1.2.0"},
		{pkgref.Node, "a", `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]`, "1.0.0 9.9.9", "", ""},
		{pkgref.Node, "a", `"ranges":[{"type":"GIT","repo":"r","events":[{"introduced":"0"}]}]`, "1.0.0", "", ""},
		{pkgref.Node, "a", `"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"soon"}]}]`, "1.0.0 9.9.9", "", ""},
	} {
		db := open(t, filepath.Join(t.TempDir(), "db"))
		record := flaw("GHSA-1", tt.of.Traits().OSV, tt.name, tt.rest)
		report := mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": record})})
		if unreadable := strings.Contains(tt.rest, "soon") || strings.Contains(tt.rest, "GIT"); unreadable != (report.Widened == 1) || report.Widened != len(report.WidenedOf) ||
			unreadable && report.WidenedOf[0] != "GHSA-1: "+string(tt.of)+" "+tt.name {
			t.Errorf("%s: widened %d, %q", tt.rest, report.Widened, report.WidenedOf)
		}
		for want, versions := range map[bool]string{true: tt.bad, false: tt.good} {
			for i, version := range strings.Fields(versions) {
				facts, err := db.Check(pkgref.Ref{Ecosystem: tt.of, Name: tt.name, Version: version})
				if err != nil || !facts.Vulnerabilities.Checked || (len(facts.Vulnerabilities.Known) == 1) != want {
					t.Errorf("%s %s, %s: %+v, %v; vulnerable should be %v", tt.of, version, tt.rest, facts.Vulnerabilities, err, want)
					continue
				}
				one := api.Vulnerability{ID: "CVE-0000-1", Aliases: []string{"GHSA-1"}, Severity: "high", FixedIn: tt.fixed}
				if want && i == 0 && !cmp.Equal(one, facts.Vulnerabilities.Known[0]) {
					t.Error(cmp.Diff(one, facts.Vulnerabilities.Known[0]))
				}
			}
		}
	}
}

// TestVulnerabilitiesAreNoMalware: they are kept beside it, counted, replaced with their label,
// and of an ecosystem without any it is said that nobody looked.
func TestVulnerabilitiesAreNoMalware(t *testing.T) {
	const fixed = `"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"2.0"}]}]`
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mixed := map[string]string{
		"1.json": burnt("MAL-0000-1", "PyPI", "bad"), "2.json": flaw("GHSA-2", "PyPI", "weak", fixed), "3.json": flaw("PYSEC-2", "PyPI", "weak", fixed),
		"4.json": flaw("GHSA-4", "PyPI", "bad", fixed), "5.json": flaw("GHSA-5", "RubyGems", "gem", fixed),
		"withdrawn/6.json": flaw("GHSA-6", "npm", "fine", fixed),
	}
	report := mustImport(t, db, Job{Path: files(t, mixed), Label: "all"})
	s := report.Source
	if s.Advisories != 1 || s.Packages["python"] != 1 || s.Vulnerabilities != 3 || s.Vulnerable["python"] != 2 || report.Elsewhere != 1 || report.Withdrawn != 1 {
		t.Errorf("%+v", report)
	}
	weak, err := db.Vulnerabilities(pkgref.Ref{Ecosystem: pkgref.Python, Name: "weak"})
	if err != nil || len(weak.Known) != 2 || !weak.Assessed || !weak.Imported.Equal(at()) {
		t.Errorf("%+v, %v", weak, err)
	}
	if f := mustFacts(t, db, pkgref.Python, "weak"); len(f.Malware) != 0 {
		t.Errorf("%+v", f)
	}
	if fine, err := db.Vulnerabilities(pkgref.Ref{Ecosystem: pkgref.Node, Name: "fine"}); err != nil || fine.Assessed || len(fine.Known) != 0 {
		t.Errorf("node: %+v, %v", fine, err)
	}
	again := files(t, map[string]string{"1.json": burnt("MAL-0000-1", "PyPI", "bad")})
	if _, err := db.Import(t.Context(), Job{Path: again, Label: "all"}, func(Progress) {}); err == nil || !strings.Contains(err.Error(), "vulnerabilities of 2 python packages") {
		t.Errorf("a replacement without vulnerabilities: %v", err)
	}
	mustImport(t, db, Job{Path: files(t, map[string]string{"2.json": flaw("GHSA-2", "npm", "weak", `"versions":["1.0.0"]`)}), Label: "alone"})
	if db.CoversMalware(pkgref.Node) {
		t.Error("vulnerabilities alone cover malware")
	}
}

// TestFirstTables: what was imported before vulnerabilities were kept is read on, and tells of
// none.
func TestFirstTables(t *testing.T) {
	pkg := pkgref.Ref{Ecosystem: pkgref.Node, Name: "x"}
	item := binary.AppendUvarint(appendText(nil, string(tableKey(pkg))), 1)
	item = appendMalware(item, policy.Malware{ID: "MAL-1", Every: true})
	data := binary.LittleEndian.AppendUint32([]byte(firstMagic), 1)
	data = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(data, 0), uint32(len(item)))
	table, err := openTable(append(data, item...))
	if err != nil {
		t.Fatal(err)
	}
	found, err := table.findPackage(pkg)
	if err != nil || len(found.malware) != 1 || found.malware[0].ID != "MAL-1" || len(found.vulnerabilities) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := openTable(bytes.Replace(append(data, item...), []byte("01"), []byte("03"), 1)); err == nil {
		t.Error("a form of the future is read")
	}
}

// TestVulnerabilityFeed imports a feed such as whole databases have, with every affected version
// by name beside the ranges; COFFERDAM_LONG makes it one of 50,000 records.
func TestVulnerabilityFeed(t *testing.T) {
	n, packages := 5_000, 1_000
	if os.Getenv("COFFERDAM_LONG") != "" {
		n, packages = 50_000, 10_000
	}
	contents := make(map[string]string, n)
	var versions []string
	for i := range 60 {
		versions = append(versions, fmt.Sprintf("%q", fmt.Sprintf("1.%d.%d", i/10, i%10)))
	}
	for i := range n {
		rest := fmt.Sprintf(`"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"1.6.%d"}]}],"versions":[%s]`, i%50, strings.Join(versions, ","))
		contents[fmt.Sprintf("%d.json", i)] = flaw(fmt.Sprintf("GHSA-%d", i), "PyPI", fmt.Sprintf("made-up-%d", i%packages), rest)
	}
	path, dir := zipped(t, contents), filepath.Join(t.TempDir(), "db")
	begun := time.Now()
	report := mustImport(t, Open(dir, Options{}), Job{Path: path, Label: "feed"})
	took := time.Since(begun)
	if report.Source.Vulnerabilities != n || report.Source.Vulnerable["python"] != packages {
		t.Fatalf("%+v", report)
	}
	before := heap()
	db := open(t, dir)
	held := heap() - before
	begun = time.Now()
	for i := range packages {
		if v, err := db.Vulnerabilities(pkgref.Ref{Ecosystem: pkgref.Python, Name: fmt.Sprintf("made-up-%d", i)}); err != nil || len(v.Known) != n/packages {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	t.Logf("%d records: imported in %v, %d MB held, %d MB on disk; %v for a package", n, took.Round(time.Millisecond), held>>20, report.Source.Bytes>>20, time.Since(begun)/time.Duration(packages))
	if most := int64(100 * n); report.Source.Bytes > most || held > uint64(most)+1<<20 {
		t.Errorf("%d bytes on disk, %d held; at most %d", report.Source.Bytes, held, most)
	}
	runtime.KeepAlive(db)
}

// TestRecordsOfManyPlaces: a record is read in a time that grows with its size, whatever it
// repeats: the largest that is read, of one package and of as many as there are entries.
func TestRecordsOfManyPlaces(t *testing.T) {
	const n = 60_000
	for what, name := range map[string]func(int) string{"one": func(int) string { return "a" }, "many": func(i int) string { return fmt.Sprintf("a%d", i) }} {
		for _, id := range []string{"GHSA-1", "MAL-1"} {
			var entries []string
			for i := range n {
				entries = append(entries, fmt.Sprintf(`{"package":{"ecosystem":"npm","name":%q},"versions":["1.%d.0"]}`, name(i), i%(n/2)))
			}
			aliases := make([]string, 20_000)
			for i := range aliases {
				aliases[i] = fmt.Sprintf("%q", fmt.Sprintf("X-%d", i))
			}
			record := fmt.Appendf(nil, `{"id":%q,"aliases":[%s],"database_specific":{"severity":"LOW","x":[%s1]},"affected":[%s]}`, id, strings.Join(aliases, ","), strings.Repeat("1,", 50_000), strings.Join(entries, ","))
			begun := time.Now()
			r, err := readRecord(record, at())
			if took := time.Since(begun); err != nil || took > 5*time.Second {
				t.Errorf("%s, %s: %v, %v", what, id, took, err)
			}
			packages, versions := len(r.malicious)+len(r.vulnerable), 0
			for _, m := range r.malicious {
				versions += len(m.malware.Versions)
			}
			for _, v := range r.vulnerable {
				versions += len(v.vulnerability.Versions)
			}
			if what == "one" && (packages != 1 || versions != n/2) || what == "many" && (packages != n || versions != n) {
				t.Errorf("%s, %s: %d packages, %d versions", what, id, packages, versions)
			}
		}
	}
}

// TestVulnerabilitiesCostMalwareNothing: what is known of a package's malware is looked up for
// every request, and takes no more for a package with hundreds of vulnerabilities.
func TestVulnerabilitiesCostMalwareNothing(t *testing.T) {
	contents := map[string]string{"m.json": burnt("MAL-0000-1", "PyPI", "weak")}
	for i := range 400 {
		contents[fmt.Sprintf("%d.json", i)] = flaw(fmt.Sprintf("GHSA-%d", i), "PyPI", "weak", `"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"1.0"}]}]`)
	}
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mustImport(t, db, Job{Path: files(t, contents), Label: "feed"})
	weak := pkgref.Ref{Ecosystem: pkgref.Python, Name: "weak"}
	if f := mustFacts(t, db, pkgref.Python, "weak"); len(f.Malware) != 1 {
		t.Fatalf("INCONCLUSIVE: %+v", f)
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = db.Facts(weak) }); n > 50 {
		t.Errorf("%.0f allocations", n)
	}
}
