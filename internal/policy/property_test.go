package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

func mustParse(t interface{ Fatalf(string, ...any) }, document string) *policy.Policy {
	p, err := policy.Parse("p", []byte(document))
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return p
}

// clock is a fixed now; the package has none of its own.
func clock() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

type question struct {
	name      string
	rank      int
	kind      policy.ArtifactKind
	age       time.Duration
	known     bool
	published time.Time
	edges     []policy.Edge
}

func drawQuestion(rt *rapid.T) question {
	q := question{
		name:  drawName(rt),
		rank:  rapid.IntRange(0, len(someVersions())-1).Draw(rt, "version"),
		kind:  rapid.SampledFrom([]policy.ArtifactKind{policy.KindWheel, policy.KindWheel, policy.KindSdist, policy.KindOther}).Draw(rt, "kind"),
		age:   rapid.SampledFrom([]time.Duration{-1, 0, 7*24*time.Hour - 1, 7 * 24 * time.Hour, 900 * 24 * time.Hour}).Draw(rt, "age"),
		known: rapid.Bool().Draw(rt, "known"),
		edges: drawEdges(rt),
	}
	if q.known {
		q.published = clock().Add(-q.age)
	}
	return q
}

func (q question) input() policy.Input {
	return policy.Input{
		Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: q.name, Version: someVersions()[q.rank]}, Edges: q.edges},
		FileFacts: policy.FileFacts{Kind: q.kind, Published: q.published},
	}
}

func TestDecideIsTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawDocument(rt)
		p := mustParse(rt, m.yaml())
		for range 20 {
			q := drawQuestion(rt)
			got := p.Decide(clock(), q.input())
			effect, by := m.decide(q.name, q.rank, q.kind, q.age, q.known, q.edges)
			if got.Effect != effect || got.ResolvedBy != by {
				rt.Fatalf("%+v\nis %+v\nand not %s by %s\n%s", q, got, effect, by, m.yaml())
			}
			wellFormed(rt, got)
		}
	})
}

func TestDecideCommandIsTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawDocument(rt)
		p := mustParse(rt, m.yaml())
		for range 20 {
			fields, in := drawFields(rt)
			got := p.DecideCommand(in)
			if want := m.command(fields); got.Effect != want {
				rt.Fatalf("%v is %+v and not %s\n%s", fields, got, want, m.yaml())
			}
			wellFormed(rt, got)
		}
	})
}

// TestMoreDenialsDenyMore: a further blocked entry or a further rule that
// denies never allows what was not allowed.
func TestMoreDenialsDenyMore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawDocument(rt)
		p := mustParse(rt, m.yaml())
		more := *m
		more.blocked = append([]modelEntry{{name: drawName(rt)}}, m.blocked...)
		r := drawRule(rt)
		r.action = "deny"
		at := rapid.IntRange(0, len(m.rules)).Draw(rt, "at")
		more.rules = append(append(append([]modelRule{}, m.rules[:at]...), r), m.rules[at:]...)
		more.hasRules = true
		stricter := mustParse(rt, more.yaml())
		for range 10 {
			q := drawQuestion(rt)
			if before, after := p.Decide(clock(), q.input()), stricter.Decide(clock(), q.input()); after.Effect != before.Effect && after.Effect != policy.Deny {
				rt.Fatalf("%+v: %s became %s", q, before.Effect, after.Effect)
			}
			_, in := drawFields(rt)
			if !p.DecideCommand(in).Allowed() && stricter.DecideCommand(in).Allowed() {
				rt.Fatalf("%+v: a further denial allows it", in)
			}
		}
	})
}

// wellFormed holds for every decision: a known effect, a rule, a step, and a
// reason that a header line can carry.
func wellFormed(t interface{ Fatalf(string, ...any) }, d policy.Decision) {
	if d.Effect != policy.Allow && d.Effect != policy.Deny && d.Effect != policy.Hold {
		t.Fatalf("no effect: %+v", d)
	}
	if d.Rule == "" || d.ResolvedBy == "" || d.Reason == "" || len(d.Reason) > 150 {
		t.Fatalf("incomplete, or a reason of %d bytes: %+v", len(d.Reason), d)
	}
	for i := range len(d.Reason) {
		if d.Reason[i] < ' ' || d.Reason[i] > '~' {
			t.Fatalf("a reason that is not printable ASCII: %q", d.Reason)
		}
	}
}
