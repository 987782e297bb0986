package advisory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func openLog(t *testing.T) *audit.FileLog {
	t.Helper()
	log, err := audit.Open(filepath.Join(t.TempDir(), "log"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func note(t *testing.T, log audit.Log, outcome audit.Outcome, run, name, version string) {
	t.Helper()
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, Run: run, Ecosystem: "node", Package: name, InstalledVersion: version, SHA256: "aa",
	}
	if _, err := log.Append(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// lines are alarms in words.
func lines(alarms []api.AdvisoryAlarm) []string {
	out := []string{}
	for _, a := range alarms {
		out = append(out, fmt.Sprint(a.Ecosystem, " ", a.Name, " ", a.Version, " ", a.Advisory, " ", a.Runs, " ", a.Records))
	}
	return out
}

func mustReview(t *testing.T, db *DB, log audit.Log) []string {
	t.Helper()
	alarms, err := db.Review(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return lines(alarms)
}

// TestReview: what was let in before it was known to be malicious is told once,
// and recorded.
func TestReview(t *testing.T) {
	log := openLog(t)
	note(t, log, audit.Served, "one", "bad-name", "1.0.0")
	note(t, log, audit.Installed, "one", "bad-name", "1.0.0")
	note(t, log, audit.Served, "two", "bad-name", "1.0.0")
	note(t, log, audit.Blocked, "two", "bad-name", "2.0.0")
	note(t, log, audit.Served, "two", "half-bad", "1.0.0")
	note(t, log, audit.Served, "two", "half-bad", "1.9.0")
	note(t, log, audit.Served, "two", "half-bad", "2.0.0")
	note(t, log, audit.Served, "two", "one-bad", "3.1.0")
	note(t, log, audit.Served, "two", "one-bad", "3.1.1")
	note(t, log, audit.Served, "three", "good-name", "1.0.0")
	half := `{"id":"MAL-0000-2","affected":[{"package":{"ecosystem":"npm","name":"half-bad"},"ranges":[{"type":"SEMVER","events":[{"introduced":"1.5.0"},{"fixed":"2.0.0"}]}]},
		{"package":{"ecosystem":"npm","name":"one-bad"},"versions":["3.1.1"]}]}`

	db := open(t, filepath.Join(t.TempDir(), "db"))
	if db.ReviewDue() {
		t.Error("a review is due with nothing imported")
	}
	dir := files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name"), "b.json": half})
	mustImport(t, db, Job{Path: dir, Label: "x"})
	if !db.ReviewDue() {
		t.Error("no review is due")
	}
	want := []string{
		"node bad-name 1.0.0 MAL-0000-1 [one two] 3",
		"node half-bad 1.9.0 MAL-0000-2 [two] 1",
		"node one-bad 3.1.1 MAL-0000-2 [two] 1",
	}
	if diff := cmp.Diff(want, mustReview(t, db, log)); diff != "" {
		t.Error(diff)
	}
	if db.ReviewDue() || open(t, db.dir).ReviewDue() {
		t.Error("a review is still due")
	}
	var recorded []string
	for r, err := range log.Records(t.Context(), audit.Filter{Outcomes: []audit.Outcome{audit.Alarm}}) {
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, r.Package+" "+r.InstalledVersion+" "+r.Rule+" "+r.Run)
	}
	if diff := cmp.Diff([]string{"bad-name 1.0.0 advisory.MAL-0000-1 one", "bad-name 1.0.0 advisory.MAL-0000-1 two", "half-bad 1.9.0 advisory.MAL-0000-2 two", "one-bad 3.1.1 advisory.MAL-0000-2 two"}, recorded); diff != "" {
		t.Error(diff)
	}

	if again := mustReview(t, db, log); len(again) != 0 {
		t.Errorf("told twice: %v", again)
	}
	note(t, log, audit.Installed, "four", "bad-name", "1.0.0")
	if diff := cmp.Diff([]string{"node bad-name 1.0.0 MAL-0000-1 [four] 1"}, mustReview(t, db, log)); diff != "" {
		t.Error("after its alarm it was let in again", diff)
	}
	mustImport(t, db, Job{Path: files(t, map[string]string{"c.json": burnt("MAL-0000-3", "npm", "bad-name")}), Label: "y"})
	if diff := cmp.Diff([]string{"node bad-name 1.0.0 MAL-0000-3 [one two four] 4"}, mustReview(t, db, log)); diff != "" {
		t.Error("by another advisory", diff)
	}
}

// TestReviewCutShort: a review that could not write its alarms is still due.
func TestReviewCutShort(t *testing.T) {
	log := openLog(t)
	note(t, log, audit.Served, "one", "bad-name", "1.0.0")
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name")}), Label: "x"})
	if _, err := db.Review(t.Context(), deafLog{log}); err == nil || !db.ReviewDue() {
		t.Fatalf("%v, due %v", err, db.ReviewDue())
	}
	if got := mustReview(t, open(t, db.dir), log); len(got) != 1 {
		t.Errorf("the next daemon's review tells %v", got)
	}
}

// deafLog takes no record.
type deafLog struct{ audit.Log }

func (deafLog) Append(_ context.Context, r audit.Record) (audit.Record, error) {
	return r, os.ErrInvalid
}

// TestCheck: what the command line shows of a package.
func TestCheck(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": `{"id":"MAL-0000-2","affected":[{"package":{"ecosystem":"PyPI","name":"half-bad"},"versions":["0.9"],
		"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"1.5"},{"fixed":"2.0"},{"introduced":"3"},{"last_affected":"3.2"}]}]}]}`}), Label: "x"})
	for version, want := range map[string]bool{
		"": false, "0.9": true, "0.9.0": true, "1.0": false, "1.5rc1": false, "1.5": true, "2.0rc1": true, "2.0": false, "3.2": true, "3.2.post1": false,
	} {
		pkg, err := pkgref.New(pkgref.Python, "Half_Bad", version)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := db.Check(pkg)
		if err != nil || len(facts.Malware) != 1 || facts.Malware[0].Affected != want {
			t.Errorf("%q: %+v, %v", version, facts, err)
		}
		if diff := cmp.Diff([]string{">= 1.5, < 2.0", ">= 3, <= 3.2"}, facts.Malware[0].Ranges); diff != "" {
			t.Error(diff)
		}
	}
	facts, err := db.Check(pkgref.Ref{Ecosystem: pkgref.Python, Name: "reqeusts"})
	if err != nil || facts.Lookalike == nil || facts.Lookalike.Name != "requests" || facts.Popular {
		t.Errorf("%+v, %v", facts, err)
	}
}
