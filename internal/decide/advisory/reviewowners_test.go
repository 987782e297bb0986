package advisory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
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

// TestEverySandboxHasItsAlarm: each sandbox into which malware was let has an alarm of its own, with its run, user and token,
// however many there are; a review that was cut short between them is made up for, and none is told twice, also
// where an earlier version told of several runs in one.
func TestEverySandboxHasItsAlarm(t *testing.T) {
	log := openLog(t)
	let := func(run, sandbox, user, token string) {
		t.Helper()
		r := audit.Record{Kind: audit.KindPackage, Outcome: audit.Served, Run: run, Sandbox: sandbox, User: user, Token: token, Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0", SHA256: "aa"}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	let("old-1", "sb-o1", "ann", "tk1")
	let("old-2", "sb-o2", "ann", "tk1")
	if _, err := log.Append(t.Context(), audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Alarm, User: "ann", Token: "tk1", Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0",
		Detail: map[string]string{"event": alarmEvent, "advisory": "MAL-0000-1", audit.DetailRuns: "old-1 old-2"},
	}); err != nil {
		t.Fatal(err)
	}
	const runs = 30 // of one owner: more than an answer names
	for n := range runs {
		let(fmt.Sprint("run-", n), fmt.Sprint("sb-", n), "ann", "tk1")
	}
	let("run-0", "sb-fork", "ann", "tk1")
	let("two", "sb-bob", "bob", "tk2")
	let("four", "sb-four", "", "")
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
			if r.Run != "" {
				all[fmt.Sprintf("%s %s: %s, %s, %s", r.User, r.Token, r.Run, r.Sandbox, r.Detail["records"])]++
			}
		}
		return all
	}
	if len(told()) != 2 {
		t.Fatalf("INCONCLUSIVE: %v", told())
	}
	mustReview(t, db, log)
	want := map[string]int{"ann tk1: run-0, sb-fork, 1": 1, "bob tk2: two, sb-bob, 1": 1, " : four, sb-four, 1": 1}
	for n := range runs {
		want[fmt.Sprintf("ann tk1: run-%d, sb-%d, 1", n, n)] = 1
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Error(diff)
	}
	if again := mustReview(t, db, log); len(again) != 0 {
		t.Errorf("told once more: %v", again)
	}
}
