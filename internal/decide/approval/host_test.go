package approval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func newHost() approval.Host { return approval.Host{Name: "new.example", Port: 443} }

func askHost(run string, host approval.Host) approval.Ask {
	a := ask(run)
	a.Package, a.Upstream, a.Host = pkgref.Ref{}, "", host
	a.Rule, a.Reason = "network_unlisted", "new.example waits"
	a.Evidence = evidence.Evidence{Host: &evidence.Host{Protocol: "tls", Commands: []string{"curl " + run}}}
	return a
}

// answer tells what the answers are that hold for a run about a host.
func (in *installation) answer(t *testing.T, run string, host approval.Host) string {
	t.Helper()
	grants, _, err := in.Grants(t.Context(), host.Project(), asks(run, "sha256:policy-of-"+run))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range grants {
		word := "approved"
		if g.Denied {
			word = "denied"
		}
		all = append(all, word+" "+g.ID+" by "+g.By)
	}
	return strings.Join(all, ", ")
}

// TestPushesThatAreNone: without a repository or a digest nobody could tell what is answered.
func TestPushesThatAreNone(t *testing.T) {
	in := install(t, approval.Limits{})
	digest := "sha256:" + strings.Repeat("ab", 32)
	push := func(repository, digest string) approval.Ask {
		return askHost("r1", approval.Host{Name: "new.example", Port: 443, Repository: repository, Push: digest})
	}
	if r := in.ask(t, push("acme/app", digest)); r.Kind != approval.KindPush { // the control
		t.Errorf("%+v", r)
	}
	for name, bad := range map[string]approval.Ask{
		"no repository": push("", digest), "no digest": push("acme/app", ""), "a digest that is none": push("acme/app", "sha256:x"),
		"a weak digest": push("acme/app", "md5:"+strings.Repeat("ab", 16)), "a long name": push(strings.Repeat("x", 501), digest), "a name that hides": push("acme/\u202eapp", digest), "a name that looks like another": push("\u0430cme/app", digest),
		"a name with an end of line": push("acme/app\n", digest), "a digest of another kind": push("acme/app", "h1:"+strings.Repeat("ab", 32)), "a host that hides": askHost("r1", approval.Host{Name: "new\u200b.example", Port: 443}),
	} {
		if r, err := in.Ask(t.Context(), bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestHost: a host is asked for once, by its name and port, however many want it; the
// answer is for those in its scope and for no other port, name or package.
func TestHost(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.ask(t, askHost("r1", newHost()))
	if r.Kind != approval.KindHost || r.What() != "host new.example:443" || r.State != approval.Pending {
		t.Fatalf("%+v", r)
	}
	again, other := in.ask(t, askHost("r1", newHost())), in.ask(t, askHost("r2", newHost()))
	port := in.ask(t, askHost("r1", approval.Host{Name: "new.example", Port: 80}))
	if again.ID != r.ID || other.ID != r.ID || other.Asked != 2 || port.ID == r.ID || port.Group != r.Group {
		t.Errorf("%s, %s (%d), %s", again.ID, other.ID, other.Asked, port.ID)
	}
	if commands := other.Evidence.Host.Commands; !slices.Equal(commands, []string{"curl r1", "curl r2"}) {
		t.Errorf("%q", commands)
	}
	if in.answer(t, "r1", newHost()) != "" {
		t.Error("something is answered that nobody answered")
	}
	in.approve(t, approval.ScopeRun, 0, r.ID)
	late := in.ask(t, askHost("r1", newHost()))
	if late.ID != r.ID || late.State != approval.Approved {
		t.Errorf("asked again: %+v", late)
	}
	want := "approved " + r.ID + " by bob"
	for run, answer := range map[string]string{"r1": want, "r2": want, "r3": ""} {
		if got := in.answer(t, run, newHost()); got != answer {
			t.Errorf("%s: %q, want %q", run, got, answer)
		}
	}
	for _, host := range []approval.Host{{Name: "new.example", Port: 80}, {Name: "a.new.example", Port: 443}, {Name: "new.example", Port: 4433}} {
		if got := in.answer(t, "r1", host); got != "" {
			t.Errorf("%s: %q", host, got)
		}
	}
	if len(in.granted(t, "r1")) > 0 {
		t.Error("an answer about a host admits a package")
	}

	// The log alone has it all.
	in.restart(t)
	in.store.Break(nil)
	if err := in.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := in.Get(t.Context(), r.ID)
	if err != nil || whole.Kind != approval.KindHost || whole.Host != newHost() || whole.Asked != 2 || in.answer(t, "r1", newHost()) != want {
		t.Errorf("%+v %v", whole, err)
	}
	text, err := json.Marshal(whole)
	if err != nil || !strings.Contains(string(text), `"kind":"host","host":{"name":"new.example","port":443}`) || strings.Contains(string(text), `"package"`) {
		t.Errorf("%s %v", text, err)
	}
	for _, rec := range in.log.All() {
		if rec.Kind == audit.KindApproval && (rec.Detail["name"] != "new.example" || rec.Package != "") {
			t.Errorf("a record without the host: %+v", rec)
		}
	}

	if _, err := in.Revoke(t.Context(), "bob", r.ID, "no more"); err != nil {
		t.Fatal(err)
	}
	if in.answer(t, "r1", newHost()) != "" {
		t.Error("a revoked answer holds")
	}
	next := in.ask(t, askHost("r1", newHost()))
	if next.ID == r.ID || next.State != approval.Pending || next.Evidence.LastApproved != r.ID+" by bob" || next.Evidence.FirstSeen.IsZero() {
		t.Errorf("after that: %+v", next)
	}
}

// TestHostDeniedAndExpired: a denial is the answer to who asks again, and an answer's time
// ends it.
func TestHostDeniedAndExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		defer in.Close()
		r := in.ask(t, askHost("r1", newHost()))
		if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Denied, Scope: approval.ScopePolicy, Reason: "no", Lasts: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if again := in.ask(t, askHost("r1", newHost())); again.State != approval.Denied || again.ID != r.ID {
			t.Errorf("%+v", again)
		}
		if got := in.answer(t, "r1", newHost()); got != "denied "+r.ID+" by bob" {
			t.Errorf("%q", got)
		}
		time.Sleep(2 * time.Hour) // fake
		synctest.Wait()
		if got := in.answer(t, "r1", newHost()); got != "" {
			t.Errorf("after its time: %q", got)
		}
		next := in.ask(t, askHost("r1", newHost()))
		in.approve(t, approval.ScopeEverywhere, time.Hour, next.ID)
		if got := in.answer(t, "r9", newHost()); got != "approved "+next.ID+" by bob" {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Hour) // fake
		synctest.Wait()
		if got := in.answer(t, "r9", newHost()); got != "" {
			t.Errorf("after its time: %q", got)
		}
	})
}

// TestHostsThatNobodyIsAskedAbout: what is no host, or is one and a package at once; and a
// flood of them, past the run's share.
func TestHostsThatNobodyIsAskedAbout(t *testing.T) {
	in := install(t, approval.Limits{PerRun: 3})
	both := askHost("r1", newHost())
	both.Package = rich()
	files := askHost("r1", newHost())
	files.Files = []approval.File{wheel("sha256:aa")}
	for _, bad := range []approval.Ask{
		both, files, askHost("", newHost()), askHost("r1", approval.Host{Name: "new.example"}), askHost("r1", approval.Host{Port: 443}),
		askHost("r1", approval.Host{Name: "new.example", Port: 65536}), askHost("r1", approval.Host{Name: strings.Repeat("a", 254), Port: 443}),
	} {
		if _, err := in.Ask(t.Context(), bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", bad.Host, err)
		}
	}
	tree := approval.TreeAsk{Members: []approval.TreeMember{{Ask: askHost("r1", newHost())}, {Ask: ask("r1", wheel("sha256:aa"))}}}
	if _, err := in.AskTree(t.Context(), tree); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a host in a tree: %v", err)
	}
	for i := range 5 {
		_, err := in.Ask(t.Context(), askHost("r1", approval.Host{Name: fmt.Sprintf("n%d.example", i), Port: 443}))
		if (err == nil) != (i < 3) || err != nil && !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("the %dth: %v", i, err)
		}
	}
	capped := 0
	for _, rec := range in.log.All() {
		if rec.Outcome == audit.Exceeded {
			capped++
		}
	}
	if capped != 1 {
		t.Errorf("%d records of the flood", capped)
	}
}

func TestAlmostSame(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"api.example", "apl.example"}: true, {"api.example", "aip.example"}: true, {"api.example", "apii.example"}: true, {"my-api.example", "myapi.example"}: true,
		{"api.example", "api.example"}: false, {"api.example", "web.example"}: false,
	} {
		if got := approval.AlmostSame(pair[0], pair[1]); got != want {
			t.Errorf("%v: %t", pair, got)
		}
	}
}
