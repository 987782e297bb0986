package store_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestARequestOfTheVersionBefore, which joined what two owners asked for and counted no
// revisions, is there with all whom it would let in, whether the store has it or only the log:
// it takes an answer on its first revision, both owners' runs join their own hold, and a third
// owner's does not.
func TestARequestOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		log := &approvaltest.Log{}
		record := func(event, run, user, token string) {
			t.Helper()
			r := audit.Record{
				Kind: audit.KindApproval, Outcome: audit.Pending, Approval: "ap-k3m7qx", Ecosystem: "python", Package: "rich", InstalledVersion: "13.7.1",
				SourceURL: "https://index.example/simple/", Run: run, Sandbox: "sb-" + run, Policy: "sha256:p", User: user, Rule: "packages.default", Reason: "no list names rich",
				Detail: map[string]string{"event": event},
			}
			if token != "" {
				r.Detail["token"] = token
			}
			if event == "asked" {
				r.Detail["group"], r.Detail["expires"] = "apg-h4t9zc", time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
				r.Detail["files"] = `[{"name":"rich-13.7.1-py3-none-any.whl","kind":"wheel","digests":["sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}]`
			}
			if _, err := log.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		record("asked", "r1", "ann", "")
		record("joined", "r2", "token b", "tok-b")
		path := filepath.Join(t.TempDir(), "approvals.db")
		if kept {
			makeOld(t, path, log)
		}
		q, err := approval.Open(t.Context(), approval.Config{Store: open(t, path), Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		old, err := q.Get(t.Context(), "ap-k3m7qx")
		if err != nil || old.State != approval.Pending || old.Asked != 2 || !slices.Equal(old.Owners(), []string{"user ann", "token tok-b"}) {
			t.Fatalf("kept: %v: %+v, %v", kept, old, err)
		}
		if kept != (old.Revision == 1) {
			t.Errorf("kept: %v: it is at revision %d", kept, old.Revision)
		}
		ask := approval.Ask{
			Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"}, Upstream: "https://index.example/simple/", Files: old.Files,
			Policy: "sha256:p", Rule: "packages.default", Reason: "no list names rich",
		}
		for run, owner := range map[string][2]string{"r1": {"ann", ""}, "r2": {"token b", "tok-b"}, "r3": {"carol", ""}} {
			ask.Run, ask.User, ask.Token = run, owner[0], owner[1]
			r, err := q.Ask(t.Context(), ask)
			if err != nil || (r.ID == old.ID) != (run != "r3") {
				t.Errorf("%s is in %s, %v", run, r.ID, err)
			}
		}
		verdict := approval.Verdict{IDs: []string{old.ID}, State: approval.Approved}
		if _, err := q.Answer(t.Context(), "bob", verdict); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("without a revision: %v", err)
		}
		verdict.IDs = []string{old.AnswerID}
		answered, err := q.Answer(t.Context(), "bob", verdict)
		if err != nil || !slices.Equal(answered[0].Answer.Runs, []string{"r1", "r2"}) {
			t.Errorf("it is for %+v, %v", answered, err)
		}
	}
}

// makeOld makes a store of the log as the version before did.
func makeOld(t *testing.T, path string, log audit.Log) {
	t.Helper()
	s := open(t, path)
	q, err := approval.Open(t.Context(), approval.Config{Store: s, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	q.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	done, err := db.ExecContext(t.Context(), "UPDATE requests SET body = json_remove(body, '$.revision', '$.revisions', '$.answer_id')")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d requests, %v", n, err)
	}
}
