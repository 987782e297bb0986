package approval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// TestRenewForgetsWhatWasErased: what is erased from the log is in no file of the
// queue afterwards, and the answers hold as before.
func TestRenewForgetsWhatWasErased(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	db, err := store.OpenApprovals(t.Context(), filepath.Join(dir, "queue", "approvals.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q, err := approval.Open(t.Context(), approval.Config{Store: db, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	ask := ask("r1", wheel("sha256:"+strings.Repeat("a", 64)))
	ask.Task, ask.Because = "find-the-secret-task", "the-secret-reason"
	r, err := q.Ask(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	other := ask
	other.Package.Version, other.Run, other.Task = "13.7.0", "r2", "another-task"
	if _, err := q.Ask(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := approvaltest.AnswerShown(t.Context(), q, "ann", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved}); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1", Reason: "asked for", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := q.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	grants, _, err := q.Grants(t.Context(), rich(), asks("r1", ask.Policy))
	if err != nil || len(grants) != 1 || grants[0].ID != r.ID {
		t.Errorf("the answer does not hold any more: %+v, %v", grants, err)
	}
	requests, _, err := q.List(t.Context(), approval.Filter{States: []approval.State{approval.Pending}})
	if err != nil || len(requests) != 1 || requests[0].Asks[0].Task != "another-task" {
		t.Errorf("%+v, %v", requests, err)
	}
	for _, secret := range []string{"find-the-secret-task", "another-task"} {
		found := false
		paths, err := filepath.Glob(filepath.Join(dir, "queue", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), secret)
		}
		if found != (secret == "another-task") {
			t.Errorf("%s is found: %v", secret, found)
		}
	}
}

// TestErasedArguments: of a call whose arguments were erased the digest is left, by which its
// request and its answer are still those of the same call.
func TestErasedArguments(t *testing.T) {
	log, err := audit.Open(filepath.Join(t.TempDir(), "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	asks := []approval.Ask{askCall("r1", callOf("refund", `{"of":"a person"}`)), askCall("r1", callOf("refund", `{"of":"another"}`))}
	var ids []string
	for _, a := range asks {
		r, err := q.Ask(t.Context(), a)
		if err != nil || r.Call != a.Call {
			t.Fatal(r, err)
		}
		ids = append(ids, r.ID)
	}
	if _, err := approvaltest.AnswerShown(t.Context(), q, "ann", approval.Verdict{IDs: ids[:1], State: approval.Approved, Scope: approval.ScopeRun}); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1", Reason: "asked for", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := q.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, a := range asks {
		r, err := q.Get(t.Context(), ids[i])
		if err != nil || r.Call.Arguments != "" || r.Call.Digest != a.Call.Digest || r.Call.Tool != "refund" {
			t.Errorf("%+v %v", r.Call, err)
		}
		if again, err := q.Ask(t.Context(), a); err != nil || again.ID != ids[i] {
			t.Errorf("asked again it is %+v %v", again, err)
		}
	}
}

// TestAnErasedOwnerIsStillTheOwner: an answer for a token's run holds for that token's run after
// whose it was is erased, and for no other's of the same id.
func TestAnErasedOwnerIsStillTheOwner(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	db, err := store.OpenApprovals(t.Context(), filepath.Join(dir, "approvals.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q, err := approval.Open(t.Context(), approval.Config{Store: db, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	keys := audit.NewOwnerKeys([]byte("the installation's"))
	ask := ask("r1", wheel("sha256:"+strings.Repeat("a", 64)))
	ask.Token, ask.OwnerKey = "t1", keys.Of("r1", "t1")
	r, err := q.Ask(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := approvaltest.AnswerShown(t.Context(), q, "ann", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved}); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			what  string
			who   approval.Asker
			holds bool
		}{
			{"the token's run", approval.Asker{Run: "r1", Policy: ask.Policy, User: "ann", Token: "t1", OwnerKey: keys.Of("r1", "t1")}, true},
			{"another token's", approval.Asker{Run: "r1", Policy: ask.Policy, User: "ann", Token: "t2", OwnerKey: keys.Of("r1", "t2")}, false},
			{"the host's", approval.Asker{Run: "r1", Policy: ask.Policy, User: "ann"}, false},
		} {
			grants, _, err := q.Grants(t.Context(), rich(), c.who)
			if err != nil || (len(grants) == 1) != c.holds {
				t.Errorf("%s, %s: %+v, %v", when, c.what, grants, err)
			}
		}
	}
	check("before")
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := q.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after it was erased")
}

// TestAnErasureThatTheQueueMissed: the daemon ended after the log was erased and before the queue
// was made anew from it; the next one makes up for it, and the answer still holds.
func TestAnErasureThatTheQueueMissed(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	db, err := store.OpenApprovals(t.Context(), filepath.Join(dir, "approvals.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	open := func() *approval.Queue {
		q, err := approval.Open(t.Context(), approval.Config{Store: db, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	ask := ask("r1", wheel("sha256:"+strings.Repeat("a", 64)))
	ask.Task, ask.User, ask.Token, ask.OwnerKey = "the task", "ann", "tk_secret", "0123"
	r, err := q.Ask(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := approvaltest.AnswerShown(t.Context(), q, "ben", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved}); err != nil {
		t.Fatal(err)
	}
	q.Close()
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1", By: "ben"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		q = open()
		got, err := q.Get(t.Context(), r.ID)
		if err != nil || got.State != approval.Approved || len(got.Asks) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if asker := got.Asks[0]; asker.User != "" || asker.Token != "" || asker.Task != "" || asker.OwnerKey == "" {
			t.Errorf("the queue still says whose it was: %+v", asker)
		}
		q.Close()
	}
}
