package policy_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// question is what the reference evaluator is asked.
type question struct {
	name                 string
	rank                 int
	kind                 policy.ArtifactKind
	age, seenAge         time.Duration
	known, seen          bool
	edges                []policy.Edge
	malware              string // "", "every", or a range of holds
	owned, atOwner       bool
	lookalike, toolchain bool
	lock                 string // "", "frozen", "prefer"
	trusted              bool
	pins                 []modelPin
	digest               string // the algorithm of the upstream's: "", "md5", "sha256"
	digests              []string
	complete, scripts    bool
	answers              []modelAnswer
}

// modelAnswer is a person's answer about a version.
type modelAnswer struct {
	rank    int
	denied  bool
	digests []string
}

type modelPin struct {
	rank    int
	digests []string
}

// pinsOf are the digests that pin a version. "1.0" and no other version has a
// second spelling, and that is not drawn.
func (q question) pinsOf(rank int) []string {
	var all []string
	for _, p := range q.pins {
		if p.rank == rank {
			all = append(all, p.digests...)
		}
	}
	return all
}

func drawQuestion(rt *rapid.T) question {
	flag := func(name string) bool { return rapid.IntRange(0, 3).Draw(rt, name) == 0 }
	ages := []time.Duration{-1, 0, 7*24*time.Hour - 1, 7 * 24 * time.Hour, 900 * 24 * time.Hour}
	q := question{
		name:      drawName(rt),
		rank:      drawRank(rt),
		kind:      rapid.SampledFrom([]policy.ArtifactKind{policy.KindWheel, policy.KindWheel, policy.KindPackage, policy.KindSdist, policy.KindBuilt, policy.KindRan, policy.KindOther}).Draw(rt, "kind"),
		age:       rapid.SampledFrom(ages).Draw(rt, "age"),
		seenAge:   rapid.SampledFrom(ages).Draw(rt, "age here"),
		known:     rapid.Bool().Draw(rt, "known"),
		seen:      rapid.Bool().Draw(rt, "seen"),
		edges:     drawEdges(rt),
		malware:   rapid.SampledFrom([]string{"", "", "", "", "every", "<2", "==2.*", "==1.0"}).Draw(rt, "malware"),
		owned:     flag("owned"),
		atOwner:   rapid.Bool().Draw(rt, "at its owner"),
		lookalike: flag("lookalike"),
		toolchain: flag("toolchain"),
		lock:      rapid.SampledFrom([]string{"", "", "frozen", "prefer"}).Draw(rt, "lock"),
		digest:    rapid.SampledFrom([]string{"", "md5", "sha256"}).Draw(rt, "digest"),
		scripts:   flag("scripts"),
		complete:  rapid.Bool().Draw(rt, "complete"),
	}
	q.digests = rapid.SliceOfDistinct(rapid.SampledFrom(someDigests()), rapid.ID).Draw(rt, "digests")
	if q.lock != "" {
		q.trusted = rapid.Bool().Draw(rt, "trusted")
		for range rapid.IntRange(0, 2).Draw(rt, "pins") {
			q.pins = append(q.pins, modelPin{
				rank:    rapid.SampledFrom([]int{q.rank, q.rank, drawRank(rt)}).Draw(rt, "pinned"),
				digests: rapid.SliceOfNDistinct(rapid.SampledFrom(someDigests()), 1, 3, rapid.ID).Draw(rt, "pinned digests"),
			})
		}
	}
	for range rapid.IntRange(0, 2).Draw(rt, "answers") {
		q.answers = append(q.answers, modelAnswer{
			rank:    rapid.SampledFrom([]int{q.rank, q.rank, drawRank(rt)}).Draw(rt, "answered"),
			denied:  flag("denied"),
			digests: rapid.SliceOfNDistinct(rapid.SampledFrom(append(someDigests(), "md5:00", "")), 0, 3, rapid.ID).Draw(rt, "shown digests"),
		})
	}
	return q
}

func drawRank(rt *rapid.T) int { return rapid.IntRange(0, len(someVersions())-1).Draw(rt, "version") }

func someDigests() []string { return []string{"sha256:aa", "sha256:bb", "sha512:cc", "sha512:dd"} }

func (q question) input() policy.Input {
	in := policy.Input{
		Subject: policy.Subject{
			Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: q.name, Version: someVersions()[q.rank]}, Edges: q.edges, Toolchain: q.toolchain,
		},
		FileFacts: policy.FileFacts{Kind: q.kind, Digests: q.digests, Complete: q.complete, Scripts: q.scripts},
	}
	if q.known {
		in.Published = clock().Add(-q.age)
	}
	if q.seen {
		in.FirstSeen = clock().Add(-q.seenAge)
	}
	if q.digest != "" {
		in.Digest = q.digest + ":00"
	}
	if q.lookalike {
		in.Lookalike = &policy.Lookalike{Name: "popular", How: "one letter differs"}
	}
	if q.owned {
		in.Owner = "https://own.example/"
	}
	if q.atOwner {
		in.Upstream = "https://own.example"
	}
	for i, a := range q.answers {
		in.Approvals = append(in.Approvals, policy.Approval{
			ID: fmt.Sprint("ap-", i), Version: someVersions()[a.rank], Denied: a.denied, By: "ann", Reason: "no \u202e!", Digests: a.digests,
		})
	}
	q.addMalware(&in)
	if q.lock != "" {
		in.Lock = &policy.Lock{Mode: policy.LockMode(q.lock), Trusted: q.trusted}
		for _, p := range q.pins {
			in.Lock.Pins = append(in.Lock.Pins, policy.Pin{Version: someVersions()[p.rank], Digests: p.digests, Lockfile: "dir/uv.lock", Line: 3})
		}
	}
	return in
}

func (q question) addMalware(in *policy.Input) {
	switch q.malware {
	case "":
	case "every":
		in.Malware = []policy.Malware{{ID: "MAL-1", Every: true}}
	case "<2": // to before the first pre-release of 2
		in.Malware = []policy.Malware{{ID: "MAL-2", Ranges: []policy.AffectedRange{{Introduced: "0", Fixed: "2.0a1"}}}}
	case "==2.*":
		in.Malware = []policy.Malware{{ID: "MAL-3", Ranges: []policy.AffectedRange{{Introduced: "2.0a1", LastAffected: "2.31"}}}}
	default:
		in.Malware = []policy.Malware{{ID: "MAL-4", Versions: []string{"0.1", "1.0.0"}}}
	}
}

// edited is the question about something else, so that answers that must not
// depend on it can be compared.
func (q question) edited(change func(*question)) question {
	q.edges, q.pins, q.digests, q.answers = slices.Clone(q.edges), slices.Clone(q.pins), slices.Clone(q.digests), slices.Clone(q.answers)
	change(&q)
	return q
}
