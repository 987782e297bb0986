package approval_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installation is a queue with its log and store, which outlive it.
type installation struct {
	*approval.Queue
	log    *approvaltest.Log
	store  *approvaltest.Memory
	limits approval.Limits
	jump   atomic.Int64 // of the host's clock, in nanoseconds
}

// Read implements clock.Source: the time passes, and the host's clock is elsewhere.
func (in *installation) Read() clock.Reading {
	now := time.Now().Round(0)
	return clock.Reading{Now: now, Wall: now.Add(time.Duration(in.jump.Load()))}
}

func install(t *testing.T, limits approval.Limits) *installation {
	t.Helper()
	in := &installation{log: &approvaltest.Log{}, store: approvaltest.NewMemory(), limits: limits}
	in.open(t)
	t.Cleanup(func() { in.Close() })
	return in
}

func (in *installation) open(t *testing.T) {
	t.Helper()
	q, err := approval.Open(context.Background(), approval.Config{Store: in.store, Log: in.log, Limits: in.limits, Clock: in, Mask: func(text string) string { return strings.ReplaceAll(text, "the-secret", "**********") }})
	if err != nil {
		t.Fatal(err)
	}
	in.Queue = q
}

// Answer is that of a person who has just looked.
func (in *installation) Answer(ctx context.Context, who string, v approval.Verdict) ([]approval.Request, error) {
	return approvaltest.AnswerShown(ctx, in.Queue, who, v)
}

// restart is a daemon that ended and came again.
func (in *installation) restart(t *testing.T) {
	t.Helper()
	in.Close()
	in.open(t)
}

func rich() pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"}
}

func wheel(digest string) approval.File {
	return approval.File{Name: "rich-13.7.1-py3-none-any.whl", Kind: "wheel", Digests: []string{digest}}
}

func sdist(digest string) approval.File {
	return approval.File{Name: "rich-13.7.1.tar.gz", Kind: "sdist", Digests: []string{digest}}
}

func ask(run string, files ...approval.File) approval.Ask {
	return approval.Ask{
		Package: rich(), Upstream: "https://index.example/simple/", Files: files,
		Run: run, Sandbox: "sb-" + run, Policy: "sha256:policy-of-" + run, PolicyName: "/p.yaml", User: "ann", Task: "make a table",
		Rule: "packages.default", Reason: "no list names rich",
	}
}

func (in *installation) ask(t *testing.T, a approval.Ask) approval.Request {
	t.Helper()
	r, err := in.Ask(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (in *installation) approve(t *testing.T, scope approval.Scope, lasts time.Duration, ids ...string) {
	t.Helper()
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: ids, State: approval.Approved, Scope: scope, Lasts: lasts, Reason: "fine"})
	if err != nil {
		t.Fatal(err)
	}
}

func (in *installation) state(t *testing.T, id string) approval.State {
	t.Helper()
	r, err := in.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// asks is a run of the user whose runs ask returns asks of.
func asks(run, policy string) approval.Asker {
	return approval.Asker{Run: run, Policy: policy, User: "ann"}
}

// granted are the answers that hold for a run about rich.
func (in *installation) granted(t *testing.T, run string) []policy.Approval {
	t.Helper()
	grants, _, err := in.Grants(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich"}, asks(run, "sha256:policy-of-"+run))
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// admits tells whether a run may have a file with this digest of rich 13.7.1.
func (in *installation) admits(t *testing.T, run, digest string) bool {
	t.Helper()
	return slices.ContainsFunc(in.granted(t, run), func(g policy.Approval) bool {
		return !g.Denied && g.Version == "13.7.1" && slices.Contains(g.Digests, digest)
	})
}

func (in *installation) outcomes() []audit.Outcome {
	var all []audit.Outcome
	for _, r := range in.log.All() {
		if r.Kind == audit.KindApproval {
			all = append(all, r.Outcome)
		}
	}
	return all
}

func wantErr(t *testing.T, err, category error, sentence string) {
	t.Helper()
	if !errors.Is(err, category) || err.Error() != sentence {
		t.Errorf("%v (want %v: %s)", err, category, sentence)
	}
}
