package advisory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// cutShort is a log that takes so many alarms and no more.
type cutShort struct {
	audit.Log
	left int
}

func (c *cutShort) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if c.left--; c.left < 0 {
		return r, errors.New("the daemon was killed")
	}
	return c.Log.Append(ctx, r)
}

// TestEveryOwnerIsTold: each owner of runs into which malware was let has an alarm of his own,
// with his own runs and no other's; a review that was cut short between them is made up for.
func TestEveryOwnerIsTold(t *testing.T) {
	log := openLog(t)
	for _, of := range []struct{ run, user, token string }{{"one", "ann", "tk1"}, {"two", "bob", "tk2"}, {"three", "ann", "tk1"}, {"four", "", ""}} {
		r := audit.Record{Kind: audit.KindPackage, Outcome: audit.Served, Run: of.run, User: of.user, Token: of.token, Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0", SHA256: "aa"}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name")}), Label: "x"})
	if _, err := db.Review(t.Context(), &cutShort{log, 2}); err == nil {
		t.Fatal("INCONCLUSIVE: the review was not cut short")
	}
	told := func() map[string]int {
		all := map[string]int{}
		for r, err := range log.Records(t.Context(), audit.Filter{Outcomes: []audit.Outcome{audit.Alarm}}) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s %s: %s, %s", r.User, r.Token, r.Detail["runs"], r.Detail["records"])]++
		}
		return all
	}
	if len(told()) != 2 {
		t.Fatalf("INCONCLUSIVE: %v", told())
	}
	mustReview(t, db, log)
	want := map[string]int{"ann tk1: one three, 2": 2, "bob tk2: two, 1": 2, " : four, 1": 1} // the first two were told before
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Error(diff)
	}
	if again := mustReview(t, db, log); len(again) != 0 {
		t.Errorf("told once more: %v", again)
	}
}
