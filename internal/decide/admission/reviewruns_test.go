package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
)

// reviewed is a log in which each of so many runs of one owner was served malware that nobody knew
// by then, and that was reviewed since.
func reviewed(t *testing.T, runs int) *audit.FileLog {
	t.Helper()
	log, err := audit.Open(t.TempDir(), audit.Options{})
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	for i := range runs {
		_, err := log.Append(t.Context(), audit.Record{
			Kind: audit.KindPackage, Outcome: audit.Served, Run: fmt.Sprintf("run-%d", i+1), Sandbox: fmt.Sprintf("sb-%d", i+1), User: "ann", Token: "tk1",
			Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0", SHA256: "aa",
		})
		must(t, err)
	}
	osv := filepath.Join(t.TempDir(), "osv")
	must(t, os.Mkdir(osv, 0o700))
	must(t, os.WriteFile(filepath.Join(osv, "a.json"), []byte(`{"schema_version":"1.7.0","id":"MAL-0000-1","modified":"2026-11-01T00:00:00Z","details":"x","affected":[
		{"package":{"ecosystem":"npm","name":"bad-name"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]}]}`), 0o600))
	db := advisory.Open(filepath.Join(t.TempDir(), "db"), advisory.Options{})
	_, err = db.Import(t.Context(), advisory.Job{Path: osv, Label: "x"}, func(advisory.Progress) {})
	must(t, err)
	if told, err := db.Review(t.Context(), log); err != nil || len(told) != 1 {
		t.Fatalf("INCONCLUSIVE: the review tells %+v, %v", told, err)
	}
	return log
}

// TestAReviewsAlarmIsEachRunsOwn: an alarm that is found in the log later is one of each run that had
// the release, wherever somebody asks about the run: in reports, in the list of records, in its summary.
// The control: it is, where the owner had it in one run alone.
func TestAReviewsAlarmIsEachRunsOwn(t *testing.T) {
	for _, runs := range []int{1, 2} {
		log := reviewed(t, runs)
		x := index.New(filepath.Join(t.TempDir(), "index.db"), log, index.Options{})
		defer x.Close()
		controller := New(Config{Log: log})
		for i := range runs {
			run := fmt.Sprintf("run-%d", i+1)
			alarms, err := report.New(report.Config{Index: x}).Answer(t.Context(), "alarms", report.Question{Run: run})
			if err != nil || alarms.Found != 1 {
				t.Errorf("%d runs: `audit report alarms --run %s`: found %d, %q, %v", runs, run, alarms.Found, alarms.Verdict, err)
			}
			page, err := report.New(report.Config{Index: x}).Answer(t.Context(), "run", report.Question{Run: run})
			if err != nil || !strings.Contains(page.Verdict, "1 alarm;") {
				t.Errorf("%d runs: `audit report run %s`: %q, %v", runs, run, page.Verdict, err)
			}
			listed := 0
			for _, err := range log.Records(t.Context(), audit.Filter{Run: run, Alarms: true}) {
				must(t, err)
				listed++
			}
			if listed != 1 {
				t.Errorf("%d runs: `audit list --run %s --alarms`: %d records", runs, run, listed)
			}
			var marked []uint64
			err = x.View(t.Context(), func(v *index.View) (err error) {
				marked, _, err = v.Select(t.Context(), index.Filter{Where: map[string][]string{"run": {run}}, Flags: index.FlagAlarm})
				return err
			})
			if err != nil || len(marked) != 1 {
				t.Errorf("%d runs: `audit query --run %s --marked alarm`: %d records, %v", runs, run, len(marked), err)
			}
			sum, err := controller.Summary(t.Context(), run)
			if err != nil || len(sum.Alarms) != 1 {
				t.Errorf("%d runs: the summary of %s: %d alarms, %v", runs, run, len(sum.Alarms), err)
			}
		}
	}
}

// TestAReviewNamesEachRun: however many runs of an owner had the release, each of them is named by an
// alarm, or nobody who works in it is told. The control: twenty are.
func TestAReviewNamesEachRun(t *testing.T) {
	for _, runs := range []int{20, 21} {
		var named []string
		for r, err := range reviewed(t, runs).Records(t.Context(), audit.Filter{Alarms: true}) {
			must(t, err)
			named = append(append(named, r.Run), strings.Fields(r.Detail[audit.DetailRuns])...)
		}
		for i := range runs {
			if run := fmt.Sprintf("run-%d", i+1); !slices.Contains(named, run) {
				t.Errorf("%d runs: no alarm is of %s", runs, run)
			}
		}
	}
}
