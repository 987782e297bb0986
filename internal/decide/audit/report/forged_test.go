package report_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
)

// TestAReportOfAForgedIndex: whoever can write to the index alone, while it is open or closed,
// does not choose what a report finds that says that it is verified. The control is the same
// report of what nobody verifies, which finds what the forger left, and says so.
func TestAReportOfAForgedIndex(t *testing.T) {
	dir, db := t.TempDir(), filepath.Join(t.TempDir(), "index.db")
	log, err := audit.Open(dir, audit.Options{CheckpointEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, r := range []audit.Record{
		started("a", ""),
		file("a", "left-pad", "1.0", func(r *audit.Record) { r.ResolvedBy, r.Rule = "default", "default" }),
		{Kind: audit.KindPackage, Outcome: audit.Alarm, Run: "a", Sandbox: "sb-a", Ecosystem: "python", Package: "left-pad", InstalledVersion: "1.0", Reason: "it is malware"},
		finished("a"),
	} {
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(verifies bool, name string) report.Report {
		t.Helper()
		x := index.New(db, log, index.Options{})
		defer x.Close()
		config := report.Config{Index: x}
		if verifies {
			config.Verify = func(ctx context.Context) (audit.Verdict, error) {
				if err := audit.AwaitCovered(ctx, log, time.Minute); err != nil {
					return audit.Verdict{}, err
				}
				return audit.Verify(ctx, dir, audit.VerifyOptions{})
			}
		}
		r, err := report.New(config).Answer(t.Context(), name, report.Question{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return r
	}
	names := []string{"alarms", "off-allowlist"}
	for _, name := range names {
		if before := ask(true, name); before.Found == 0 || before.Verified == "" {
			t.Fatalf("INCONCLUSIVE: %s: %+v", name, before)
		}
		ask(false, name) // so that there is an index
	}
	forge(t, db)
	for _, name := range names {
		if r := ask(false, name); r.Found != 0 || r.Verified != "" {
			t.Errorf("INCONCLUSIVE: the forger has not reached %s: found %d, verified %q", name, r.Found, r.Verified)
		}
		if r := ask(true, name); r.Found == 0 || r.Verified == "" {
			t.Errorf("%s: found %d, verified %q", name, r.Found, r.Verified)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(db), ".anew-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// forge takes out of an index what would be found, and has it look as if it had been closed so.
func forge(t *testing.T, db string) {
	t.Helper()
	s, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"UPDATE records SET flags = 0", "DELETE FROM records WHERE seq IN (1,2)", "DELETE FROM shapes", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode(delete)"} {
		if _, err := s.ExecContext(t.Context(), q); err != nil {
			t.Fatal(q, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(db + suffix)
	}
	data, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if err := os.WriteFile(db+".sha256", []byte(hex.EncodeToString(sum[:])), 0o600); err != nil {
		t.Fatal(err)
	}
}
