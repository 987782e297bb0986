package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func parsed(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNarrowedBy: what narrows a policy never lets anything through that the
// policy does not, in whichever order, and what it refuses is refused.
func TestNarrowedBy(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	documents := []string{
		"packages: { default: allow }\n",
		"packages: { default: hold }\n",
		"packages: { default: deny }\nallowed_packages: { python: [ { name: foo, version: '<2' } ] }\n",
		"packages: { default: allow }\nblocked_packages: { python: [ { name: foo, version: '>=1.5' } ] }\n",
		"packages: { default: deny, min_release_age: 7d }\nallowed_packages: { python: [ { name: foo } ] }\n",
		"packages: { default: allow }\nrules:\n  - { name: no-curl, condition: { field: command, operator: contains, value: curl }, action: deny, priority: 1 }\ndefaults: { action: allow }\n",
		"packages: { default: allow }\ndefaults: { action: deny }\n",
	}
	rank := map[policy.Effect]int{policy.Allow: 0, policy.Hold: 1, policy.Deny: 2}
	command := "curl x"
	for _, a := range documents {
		for _, b := range documents {
			p, by := parsed(t, a), parsed(t, b)
			both, ok := p.NarrowedBy(by)
			if !ok || both.Digest() != p.Digest() {
				t.Fatalf("%q narrowed by %q: %v, digest %s", a, b, ok, both.Digest())
			}
			if want := a != b; slices.Contains(both.Narrowings(), by.Digest()) != want {
				t.Errorf("%q narrowed by %q names %v", a, b, both.Narrowings())
			}
			for _, name := range []string{"foo", "bar"} {
				about := policy.Subject{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name}}
				for _, version := range []string{"1.0", "1.6", "2.0"} {
					f := policy.FileFacts{Version: version, Kind: policy.KindWheel, Digest: "sha256:00", Published: now.Add(-time.Hour)}
					for what, ask := range map[string]func(*policy.Judge) policy.Decision{
						"file":    func(j *policy.Judge) policy.Decision { return j.File(f) },
						"release": func(j *policy.Judge) policy.Decision { return j.Release(version) },
						"kept":    func(j *policy.Judge) policy.Decision { return j.Kept(version, nil) },
						"name":    func(j *policy.Judge) policy.Decision { return j.Name() },
					} {
						one, other, got := ask(p.Judge(now, about)), ask(by.Judge(now, about)), ask(both.Judge(now, about))
						if rank[got.Effect] != max(rank[one.Effect], rank[other.Effect]) {
							t.Errorf("%s %s %s under %q (%s) narrowed by %q (%s): %s", what, name, version, a, one.Effect, b, other.Effect, got.Effect)
						}
					}
				}
			}
			in := policy.CommandInput{Command: &command}
			if got, want := both.DecideCommand(in).Effect, max(rank[p.DecideCommand(in).Effect], rank[by.DecideCommand(in).Effect]); rank[got] != want {
				t.Errorf("a command under %q narrowed by %q: %s", a, b, got)
			}
			if both.JudgesCommands() != (p.JudgesCommands() || by.JudgesCommands()) || both.MayHold() != (p.MayHold() || by.MayHold()) || both.NeedsTimes() != (p.NeedsTimes() || by.NeedsTimes()) {
				t.Errorf("%q narrowed by %q forgets what one of them looks at", a, b)
			}
		}
	}
}

// TestNarrowedByFew: the policies that narrow one are bounded, and each counts
// once.
func TestNarrowedByFew(t *testing.T) {
	p := parsed(t, "packages: { default: allow }\n")
	for i := range 100 {
		by := parsed(t, fmt.Sprintf("packages: { default: allow }\nname: n%d\n", i/2))
		next, ok := p.NarrowedBy(by)
		if want := i < 32; ok != want {
			t.Fatalf("policy %d: %v", i, ok)
		}
		p = next
	}
	if n := len(p.Layers()); n != 17 {
		t.Errorf("%d layers, want 17", n)
	}
}
