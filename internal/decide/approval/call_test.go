package approval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func callOf(tool, arguments string) approval.Call {
	return approval.Call{Tool: tool, Source: approval.SourceHost, Definition: approval.DigestOf(tool), Digest: approval.DigestOf(arguments), Arguments: arguments}
}

func askCall(run string, call approval.Call) approval.Ask {
	a := ask(run)
	a.Package, a.Upstream, a.Call = pkgref.Ref{}, "", call
	a.Rule, a.Reason = "rules.refunds", "rule refunds has a person asked first"
	a.Evidence = evidence.Evidence{Call: &evidence.Call{Description: "pays back", Commands: []string{"agent " + run}}}
	return a
}

// lets tells what the answers are that hold for a run about a call.
func (in *installation) lets(t *testing.T, run string, call approval.Call) string {
	t.Helper()
	grants, _, err := in.Grants(t.Context(), call.Project(), asks(run, "sha256:policy-of-"+run))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range grants {
		if slices.Equal(g.Digests, call.Bound()) {
			all = append(all, fmt.Sprint(g.ID, " ", g.Denied))
		}
	}
	return strings.Join(all, ", ")
}

// TestCall: a call is asked for once, by its tool and its arguments, however many want it;
// the answer is for those in its scope and for no other arguments, tool, host or package.
func TestCall(t *testing.T) {
	in := install(t, approval.Limits{})
	seven := callOf("refund", `{"order":"7"}`)
	r := in.ask(t, askCall("r1", seven))
	if r.Kind != approval.KindCall || r.What() != "tool "+seven.Named() || r.State != approval.Pending || r.Call != seven {
		t.Fatalf("%+v", r)
	}
	again, other := in.ask(t, askCall("r1", seven)), in.ask(t, askCall("r2", seven))
	eight := in.ask(t, askCall("r1", callOf("refund", `{"order":"8"}`)))
	if again.ID != r.ID || other.ID != r.ID || other.Asked != 2 || eight.ID == r.ID || eight.Group != r.Group || len(eight.Near) > 0 {
		t.Errorf("%s, %s (%d), %+v", again.ID, other.ID, other.Asked, eight)
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved, Digests: map[string][]string{r.ID: {eight.Call.Digest}}}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("approved as other arguments were shown: %v", err)
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved, Scope: approval.ScopePolicy, Digests: map[string][]string{r.ID: {seven.Digest}}}); err != nil {
		t.Fatal(err)
	}
	for _, use := range []int{1, 2} {
		if err := in.Use(t.Context(), r.ID); err != nil {
			t.Errorf("the %d. use: %v", use, err)
		}
	}
	want := r.ID + " false"
	for run, answer := range map[string]string{"r1": want, "r2": want, "r3": ""} {
		if got := in.lets(t, run, seven); got != answer {
			t.Errorf("%s: %q, want %q", run, got, answer)
		}
	}
	for _, call := range []approval.Call{callOf("refund", `{"order":"8"}`), callOf("refund", `{"order":"7" }`), callOf("refunds", `{"order":"7"}`)} {
		if got := in.lets(t, "r1", call); got != "" {
			t.Errorf("%+v: %q", call, got)
		}
	}
	if len(in.granted(t, "r1")) > 0 {
		t.Error("an answer about a call admits a package")
	}

	// The log alone has it all.
	in.restart(t)
	if err := in.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := in.Get(t.Context(), r.ID)
	if err != nil || whole.Kind != approval.KindCall || whole.Call != seven || whole.Asked != 2 || in.lets(t, "r1", seven) != want {
		t.Errorf("%+v %v", whole, err)
	}
	text, err := json.Marshal(whole)
	if err != nil || !strings.Contains(string(text), `"kind":"call","call":{"tool":"refund","source":"host","definition":"sha256:`) || strings.Contains(string(text), `"package"`) {
		t.Errorf("%s %v", text, err)
	}
	for _, rec := range in.log.All() {
		if rec.Kind == audit.KindApproval && (rec.Detail["tool"] != "refund" || len(rec.Detail["arguments_sha256"]) != 64 || rec.Package != "") {
			t.Errorf("a record without the call: %+v", rec)
		}
	}
	if _, err := in.Revoke(t.Context(), "bob", r.ID, "no more"); err != nil {
		t.Fatal(err)
	}
	if err := in.Use(t.Context(), r.ID); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a revoked answer is used: %v", err)
	}
	next := in.ask(t, askCall("r1", seven))
	e := next.Evidence
	if next.ID == r.ID || e.LastApproved != r.ID+" by bob" || e.FirstSeen.IsZero() || e.Call.Approved != 1 || e.Call.Others != 0 || e.Call.Denied != 0 || e.Call.Description != "pays back" {
		t.Errorf("after that: %+v", next)
	}
}

// TestNothingIsComparedWithAnother: what was approved of something else is no evidence.
func TestNothingIsComparedWithAnother(t *testing.T) {
	in := install(t, approval.Limits{})
	push := newHost()
	push.Repository, push.Push = "acme/app", "sha256:"+strings.Repeat("a", 64)
	in.approve(t, approval.ScopeRun, 0, in.ask(t, ask("r1", wheel("sha256:"+strings.Repeat("b", 64)))).ID)
	for what, a := range map[string]approval.Ask{"a host": askHost("r1", newHost()), "a push": askHost("r1", push), "a call": askCall("r1", callOf("refund", `{}`))} {
		r := in.ask(t, a)
		if r.Evidence.LastApproved != "" || len(r.Evidence.Changes) > 0 {
			t.Errorf("%s: %+v", what, r.Evidence)
		}
		in.approve(t, approval.ScopeRun, 0, r.ID)
		if _, err := in.Revoke(t.Context(), "bob", r.ID, ""); err != nil {
			t.Fatal(err)
		}
		if again := in.ask(t, a); again.Evidence.LastApproved != r.ID+" by bob" {
			t.Errorf("%s, later: %+v", what, again.Evidence)
		}
	}
}

// TestOnce: an approval of a call is for one of them unless somebody says more; of many that
// use it at a time one is let through, and the others ask again, before a restart or after it.
func TestOnce(t *testing.T) {
	in := install(t, approval.Limits{})
	call := callOf("refund", `{}`)
	r := in.ask(t, askCall("r1", call))
	in.approve(t, "", 0, r.ID)
	if in.lets(t, "r1", call) == "" || in.lets(t, "r2", call) != "" {
		t.Error("it is for the run that asked")
	}
	var wait sync.WaitGroup
	used := make(chan error, 8)
	for range cap(used) {
		wait.Go(func() { used <- in.Use(t.Context(), r.ID) })
	}
	wait.Wait()
	good := 0
	for range cap(used) {
		switch err := <-used; {
		case err == nil:
			good++
		case !errors.Is(err, fault.ErrConflict):
			t.Error(err)
		}
	}
	if good != 1 {
		t.Errorf("%d were let through", good)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if after, err := in.Get(t.Context(), r.ID); err != nil || after.State != approval.Expired || !strings.Contains(after.Ended, "one call") || in.lets(t, "r1", call) != "" {
			t.Errorf("%s: %+v %v", when, after, err)
		}
		in.restart(t)
	}
	next := in.ask(t, askCall("r1", call))
	if next.ID == r.ID || next.Evidence.Call.Approved != 1 {
		t.Errorf("%+v", next)
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{next.ID}, State: approval.Denied, Scope: approval.ScopeOnce}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("denied once: %v", err)
	}
	host := in.ask(t, askHost("r1", newHost()))
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{host.ID}, State: approval.Approved, Scope: approval.ScopeOnce}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a host once: %v", err)
	}
	// Without a record nothing is let through.
	in.approve(t, "", 0, next.ID)
	in.log.FailWhen(func(audit.Record) error { return errors.New("the disk is full") })
	if err := in.Use(t.Context(), next.ID); err == nil {
		t.Error("used without a record")
	}
	in.log.FailWhen(nil)
}

// TestCallDeniedAndExpired: a denial is the answer to who asks again, and an answer's time
// ends it.
func TestCallDeniedAndExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		defer in.Close()
		call := callOf("refund", `{}`)
		r := in.ask(t, askCall("r1", call))
		if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Denied, Reason: "no", Lasts: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if again := in.ask(t, askCall("r1", call)); again.State != approval.Denied || again.ID != r.ID || again.Answer.Scope != approval.ScopeRun {
			t.Errorf("%+v", again)
		}
		time.Sleep(2 * time.Hour) // fake
		synctest.Wait()
		next := in.ask(t, askCall("r1", call))
		if next.ID == r.ID || next.Evidence.Call.Denied != 1 {
			t.Errorf("%+v", next)
		}
		in.approve(t, "", time.Minute, next.ID)
		time.Sleep(time.Minute) // fake
		synctest.Wait()
		if err := in.Use(t.Context(), next.ID); !errors.Is(err, fault.ErrConflict) || in.lets(t, "r1", call) != "" {
			t.Errorf("after its time: %v", err)
		}
	})
}

// TestCallsThatNobodyIsAskedAbout: what is no call, or one and something else; more than a
// person reads; and what others control stays within a record.
func TestCallsThatNobodyIsAskedAbout(t *testing.T) {
	in := install(t, approval.Limits{})
	call := callOf("refund", `{}`)
	both, host, files, forged := askCall("r1", call), askCall("r1", call), askCall("r1", call), askCall("r1", call)
	both.Package, host.Host, files.Files = rich(), newHost(), []approval.File{wheel("sha256:aa")}
	forged.Call.Arguments = `{"order":"8"}`
	for what, bad := range map[string]approval.Ask{
		"a package": both, "a host": host, "files": files, "nobody": askCall("", call), "other arguments": forged,
		"no tool": askCall("r1", callOf("", `{}`)), "a long name": askCall("r1", callOf(strings.Repeat("a", 301), `{}`)),
	} {
		if _, err := in.Ask(t.Context(), bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := in.Ask(t.Context(), askCall("r1", callOf("refund", strings.Repeat("x", approval.MaxCallArguments+1)))); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("too long: %v", err)
	}
	tree := approval.TreeAsk{Members: []approval.TreeMember{{Ask: askCall("r1", call)}, {Ask: ask("r1", wheel("sha256:aa"))}}}
	if _, err := in.AskTree(t.Context(), tree); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a call in a tree: %v", err)
	}
	if _, err := in.AskTree(t.Context(), approval.TreeAsk{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a tree of nothing: %v", err)
	}
	worst := in.ask(t, askCall("r1", callOf("refund", strings.Repeat("\x01", approval.MaxCallArguments))))
	for _, rec := range in.log.All() {
		if text, err := json.Marshal(rec); err != nil || len(text) > audit.MaxRecord {
			t.Errorf("a record of %d bytes, %v", len(text), err)
		}
	}
	if len(worst.Call.Arguments) != approval.MaxCallArguments {
		t.Errorf("%d bytes are shown", len(worst.Call.Arguments))
	}
}
