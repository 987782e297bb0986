package policy_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
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

func TestDecideIsTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawDocument(rt)
		p := mustParse(rt, m.yaml())
		for range 20 {
			q := drawQuestion(rt)
			got := p.Decide(clock(), q.input())
			effect, by := m.decide(q)
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

// TestFactsOnlyNarrow: what is known against a file, or a lockfile that is not
// trusted, never allows what was not allowed without it.
func TestFactsOnlyNarrow(t *testing.T) {
	against := map[string]func(*question){
		"malware":   func(q *question) { q.malware = cmp.Or(q.malware, "==2.*") },
		"burnt":     func(q *question) { q.malware = "every" },
		"owned":     func(q *question) { q.owned, q.atOwner = true, false },
		"lookalike": func(q *question) { q.lookalike = true },
		"scripts":   func(q *question) { q.scripts = true },
		"weak":      func(q *question) { q.digest = "md5" },
		"frozen": func(q *question) {
			if q.lock == "" && !isPre(q.rank) { // a pin admits a pre-release to the default
				q.lock, q.trusted, q.pins = "frozen", false, []modelPin{{q.rank, []string{"sha256:aa"}}}
			}
		},
		"prefer": func(q *question) {
			if q.lock == "" {
				q.lock, q.trusted, q.pins = "prefer", false, nil
			}
		},
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := mustParse(rt, drawDocument(rt).yaml())
		for range 10 {
			q := drawQuestion(rt)
			before := p.Decide(clock(), q.input())
			for name, change := range against {
				if after := p.Decide(clock(), q.edited(change).input()); strict(after.Effect) < strict(before.Effect) {
					rt.Fatalf("%s: %s became %s\n%+v", name, before.Effect, after.Effect, q)
				}
			}
			if q.malware == "every" && before.Effect != policy.Deny {
				rt.Fatalf("malware is not denied: %+v", before)
			}
		}
	})
}

// TestAnApprovalAdmitsWhatItHas: people's answers decide what would wait and
// nothing else, and what they admit has a strong digest that was shown.
func TestAnApprovalAdmitsWhatItHas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := mustParse(rt, drawDocument(rt).yaml())
		for range 20 {
			q := drawQuestion(rt)
			after := p.Decide(clock(), q.input())
			before := p.Decide(clock(), q.edited(func(q *question) { q.answers = nil }).input())
			switch {
			case before.Effect != policy.Hold:
				if fmt.Sprintf("%+v", before) != fmt.Sprintf("%+v", after) {
					rt.Fatalf("an answer changed what does not wait: %+v became %+v", before, after)
				}
			case !p.MayHold():
				rt.Fatalf("a policy that holds nothing holds: %+v", before)
			case after.Allowed():
				admits := func(a modelAnswer) bool {
					return a.rank == q.rank && !a.denied && slices.ContainsFunc(a.digests, func(d string) bool {
						return policy.StrongDigest(d) && slices.Contains(q.digests, d)
					})
				}
				if !slices.ContainsFunc(q.answers, admits) || after.ResolvedBy != policy.ByApproval || after.Approval == "" {
					rt.Fatalf("admitted without a digest that was shown: %+v\n%+v", q, after)
				}
			case after.Effect == policy.Deny:
				if !slices.ContainsFunc(q.answers, func(a modelAnswer) bool { return a.rank == q.rank && a.denied }) || after.Approval == "" {
					rt.Fatalf("denied by nobody: %+v\n%+v", q, after)
				}
			}
		}
	})
}

// TestListingAdmitsNoFile: what an index page shows beyond what may be had is a
// matter of ecosystems with several versions in a tree, and of no other step.
func TestListingAdmitsNoFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := mustParse(rt, drawDocument(rt).yaml())
		for range 10 {
			in := drawQuestion(rt).input()
			listed := in
			listed.Listing = true
			if a, b := p.Decide(clock(), in), p.Decide(clock(), listed); a.Effect != b.Effect || a.Rule != b.Rule || a.Through != b.Through {
				rt.Fatalf("a python page shows what is refused: %+v, %+v", a, b)
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
