package report_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
)

// alarmed is a log with an alarm about a run of ann's, who has the token tk1.
func alarmed(t *testing.T) (log *audit.FileLog, dir string) {
	t.Helper()
	dir = t.TempDir()
	log, err := audit.Open(dir, audit.Options{CheckpointEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for _, r := range []audit.Record{
		{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r1", Sandbox: "sb1", User: "ann", Token: "tk1"},
		{Kind: audit.KindPackage, Outcome: audit.Alarm, Run: "r1", Sandbox: "sb1", User: "ann", Token: "tk1", Ecosystem: "python", Package: "left-pad", InstalledVersion: "1.0", Reason: "it is malware"},
	} {
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return log, dir
}

// TestAnErasedOwnersAlarms: whose a run was is erased, so nobody knows any more whether it was the one
// that is asked about. That is said, and not that there is none. The control: before, there is one.
func TestAnErasedOwnersAlarms(t *testing.T) {
	for of, q := range map[string]report.Question{"user": {User: "ann"}, "token": {Token: "tk1"}} {
		log, dir := alarmed(t)
		x := index.New(filepath.Join(t.TempDir(), "index.db"), log, index.Options{})
		defer x.Close()
		ask := func() report.Report {
			verify := func(ctx context.Context) (audit.Verdict, error) {
				if err := audit.AwaitCovered(ctx, log, 1<<40); err != nil {
					return audit.Verdict{}, err
				}
				return audit.Verify(ctx, dir, audit.VerifyOptions{})
			}
			r, err := report.New(report.Config{Index: x, Verify: verify}).Answer(t.Context(), "alarms", q)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := ask(); r.Found != 1 {
			t.Fatalf("INCONCLUSIVE: of the %s: %+v", of, r)
		}
		if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1"}); err != nil {
			t.Fatal(err)
		}
		if r := ask(); r.Found == 0 && r.Unjudged == 0 && !strings.Contains(r.Verdict+r.Verified+r.Asked, "erased") {
			t.Errorf("of the %s, once it is erased whose the run was: %q, verified: %q, nothing unjudged", of, r.Verdict, r.Verified)
		}
	}
}
