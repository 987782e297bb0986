package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
)

// asRead is a request as /v1 has it, without what differs between any two.
func asRead(t *testing.T, r approval.Request) string {
	t.Helper()
	r.ID, r.AnswerID, r.Group, r.Created, r.Updated, r.Expires = "", "", "", time.Time{}, time.Time{}, time.Time{}
	for i := range r.Asks {
		r.Asks[i].At = time.Time{}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTwoThatDifferNeverLookTheSame: whatever two requests differ in is in what a person reads
// of them, though it be cut; two that are equal read the same (the control).
func TestTwoThatDifferNeverLookTheSame(t *testing.T) {
	for _, p := range approvaltest.Pairs() {
		t.Run(p.Name, func(t *testing.T) {
			file := func(ask approval.Ask) approval.Request {
				in := install(t, approval.Limits{}) // its own: what one queue knows of the other is not compared
				return in.ask(t, ask)
			}
			a, again, b := file(p.A), file(p.A), file(p.B)
			if asRead(t, a) != asRead(t, again) || a.Fingerprint() != again.Fingerprint() {
				t.Fatalf("the control: one ask reads as two requests:\n%s\n%s", asRead(t, a), asRead(t, again))
			}
			if asRead(t, a) == asRead(t, b) {
				t.Errorf("they read the same:\n%.2000s", asRead(t, a))
			}
			if p.Differ == approvaltest.Named && a.What() == b.What() {
				t.Errorf("both are named %q", a.What())
			}
			if p.Differ != approvaltest.Known && a.Fingerprint() == b.Fingerprint() {
				t.Errorf("both have the fingerprint %q", a.Fingerprint())
			}
		})
	}
}

// TestRefsAreWhole: what a push changes is never cut, and one that has no room is not asked about.
func TestRefsAreWhole(t *testing.T) {
	in := install(t, approval.Limits{})
	host := func(push string) approval.Host {
		return approval.Host{Name: "git.example", Port: 443, Repository: "acme/app", Push: "sha256:" + strings.Repeat(push, 64)}
	}
	longest := strings.Repeat(`\u0430`, 90) + ": " + strings.Repeat("a", 64) + " -> " + strings.Repeat("b", 64)
	a := ask("r1")
	a.Package, a.Upstream, a.Host = approval.Ask{}.Package, "", host("a")
	a.Evidence = evidence.Evidence{Host: &evidence.Host{}}
	for range 50 { // the findings of so many refs have no room beside them
		a.Evidence.Host.Refs = append(a.Evidence.Host.Refs, longest)
		a.Evidence.Findings = append(a.Evidence.Findings, "it deletes "+longest, longest+" has letters beyond ASCII")
	}
	r := in.ask(t, a)
	for _, ref := range r.Evidence.Host.Refs {
		if ref != longest {
			t.Fatalf("a ref is shown as %q", ref)
		}
	}
	if cut := r.Evidence.Cut["findings"]; len(r.Evidence.Host.Refs) != 50 || cut.Total != 100 || r.Evidence.Count("findings") != 100 || len(r.Evidence.Findings) == 0 || r.Evidence.Findings[0][:11] != "it deletes " {
		t.Errorf("%d refs, %+v, %d findings", len(r.Evidence.Host.Refs), cut, len(r.Evidence.Findings))
	}
	a.Host = host("b")
	for range 200 {
		a.Evidence.Host.Refs = append(a.Evidence.Host.Refs, longest)
	}
	if _, err := in.Ask(t.Context(), a); err == nil || !strings.Contains(err.Error(), "can't be shown whole") {
		t.Errorf("it is asked about, though no person sees all of it: %v", err)
	}
}

// TestWhatIsCutIsNoNews: asking again what was cut changes nothing, and another ask that tells
// something else is told, though there is no room for it.
func TestWhatIsCutIsNoNews(t *testing.T) {
	in := install(t, approval.Limits{})
	pairs := approvaltest.Pairs()
	for _, p := range pairs {
		if p.Name != "a release: the last of many findings" {
			continue
		}
		first := in.ask(t, p.A)
		if again := in.ask(t, p.A); again.Revision != first.Revision {
			t.Errorf("the same again made a revision: %+v", again.Revisions)
		}
		other := in.ask(t, p.B)
		if other.ID != first.ID || other.Revision != first.Revision+1 || len(other.Evidence.Cut["findings"].Digests) != 2 {
			t.Errorf("another finding beyond the bound made none: %+v, %+v", other.Revisions, other.Evidence.Cut)
		}
		for _, ask := range []approval.Ask{p.A, p.B} {
			if again := in.ask(t, ask); again.Revision != other.Revision {
				t.Errorf("the same again made a revision: %+v", again.Revisions)
			}
		}
		return
	}
	t.Fatal("there is no such pair")
}
