package advisory

import (
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestExamples: what the documentation shows can be imported and says what the
// documentation says.
func TestExamples(t *testing.T) {
	examples, err := filepath.Abs("../../../examples/advisory")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, filepath.Join(t.TempDir(), "db"))
	report := mustImport(t, db, Job{Path: filepath.Join(examples, "osv")})
	if report.Records != 5 || report.Withdrawn != 1 || report.Source.Vulnerabilities != 1 || report.Source.Advisories != 3 || report.Source.Burnt != 1 || report.Source.Label != "osv" {
		t.Errorf("%+v", report)
	}
	mustImport(t, db, Job{Path: filepath.Join(examples, "popular-python.txt")})
	for _, tt := range []struct {
		ecosystem     pkgref.Ecosystem
		name, version string
		malware       bool
	}{
		{pkgref.Python, "example-typo-of-something", "1.0", true},
		{pkgref.Node, "example-taken-over", "4.1.1", true},
		{pkgref.Node, "example-taken-over", "4.1.3", false},
		{pkgref.Go, "module.example/helper", "v1.3.0", true},
		{pkgref.Go, "module.example/helper", "v1.4.0", false},
		{pkgref.Node, "example-accused", "1.0.0", false},
		{pkgref.Node, "example-weak", "1.0.0", false},
	} {
		facts, err := db.Check(pkgref.Ref{Ecosystem: tt.ecosystem, Name: tt.name, Version: tt.version})
		if err != nil {
			t.Fatal(err)
		}
		got := len(facts.Malware) > 0 && facts.Malware[0].Affected
		if got != tt.malware {
			t.Errorf("%s %s is malware: %v", tt.name, tt.version, got)
		}
	}
	if l := mustFacts(t, db, pkgref.Python, "our-own-librari").Lookalike; l == nil || l.Name != "our-own-library" {
		t.Errorf("%+v", l)
	}
}
