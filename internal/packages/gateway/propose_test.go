package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
)

func askingFor(items ...channel.RequestItem) channel.Request {
	return channel.Request{Items: items, Because: "tables"}
}

func item(name, version string) channel.RequestItem {
	return channel.RequestItem{Ecosystem: "python", Name: name, Version: version}
}

func effects(all []door.Proposed) []string {
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("%s %s", p.Package, p.Effect))
	}
	return out
}

// TestProposalsTakeTurns: what is asked for this way comes out of the same rate as
// requests for pages.
func TestProposalsTakeTurns(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.Requests, c.Limits.Queue = 1, 1 })
	ask := askingFor(item("probe", ""), item("probe", ""), item("probe", ""), item("probe", ""), item("probe", ""), item("probe", ""))
	got, err := b.gateway.Propose(t.Context(), sandboxA, ask)
	if err != nil || got[0].Effect != policy.Allow || got[5].Effect != policy.Deny || !strings.Contains(got[5].Reason, "faster than") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := b.gateway.Propose(t.Context(), "sb-b", askingFor(item("probe", ""))); err != nil || got[0].Effect != policy.Allow {
		t.Errorf("another run: %+v, %v", got, err)
	}
}

// TestPropose: what an agent asks for is looked up, judged and told; the newest
// stable release that is not denied stands for a name.
func TestPropose(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "rich", "1.0"), pypitest.Wheel(t, "rich", "2.0"), pypitest.Wheel(t, "rich", "3.0"), pypitest.Wheel(t, "rich", "4.0rc1"))
	b.publish(pypitest.Wheel(t, "evil", "1.0"))
	b.door.decide = func(ref pkgref.Ref, f door.File) policy.Decision {
		switch {
		case ref.Name == "evil":
			return policy.Decision{Effect: policy.Deny, Rule: "blocked", Reason: "it is blocked"}
		case f.Version == "3.0":
			return policy.Decision{Effect: policy.Deny, Rule: "age", Reason: "it is young"}
		case ref.Name == "rich":
			return policy.Decision{Effect: policy.Hold, Rule: "default", Reason: "nobody knows it"}
		}
		return policy.Decision{Effect: policy.Allow, Rule: "list", Reason: "it is on a list"}
	}
	got, err := b.gateway.Propose(t.Context(), sandboxA, askingFor(
		item("Rich", ""), item("rich", "1.0.0"), item("rich", "3.0"), item("evil", ""), item("probe", ""), item("absent", ""), item("rich", "9"), item("a b", ""),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"python rich 2.0 hold", "python rich 1.0 hold", "python rich 3.0 deny", "python evil deny", "python probe 1.0 allow",
		"python absent deny", "python rich 9 deny", "  deny",
	}
	have := effects(got)
	for i := range have {
		have[i] = strings.Join(strings.Fields(have[i]), " ")
		want[i] = strings.Join(strings.Fields(want[i]), " ")
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	asks := b.door.proposals
	if len(asks) != 1 || asks[0].Because != "tables" || len(asks[0].Items) != 3 || asks[0].Sandbox != sandboxA {
		t.Fatalf("the door was asked %+v", asks)
	}
	item := asks[0].Items[0]
	if len(item.Files) != 1 || !policy.StrongDigest(item.Files[0].Digest) || item.Evidence.Versions != 4 || item.Upstream == "" {
		t.Errorf("%+v", item)
	}
}

// TestProposeRefuses: what is too much or none at all is refused whole.
func TestProposeRefuses(t *testing.T) {
	b := newBench(t, nil)
	many := make([]channel.RequestItem, channel.MaxRequestItems+1)
	for name, r := range map[string]channel.Request{
		"nothing":     {},
		"too many":    {Items: many},
		"long reason": {Items: many[:1], Because: strings.Repeat("x", channel.MaxRequestReason+1)},
	} {
		if got, err := b.gateway.Propose(t.Context(), sandboxA, r); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b.door.broken = true
	if got, err := b.gateway.Propose(t.Context(), sandboxA, askingFor(item("probe", ""))); err == nil && got[0].Effect != policy.Deny {
		t.Errorf("with a door that is broken: %+v", got)
	}
}

// TestProposeIsNoWayOut: names that are asked for this way count with all others.
func TestProposeIsNoWayOut(t *testing.T) {
	b := newBench(t, nil)
	b.door.decide = func(pkgref.Ref, door.File) policy.Decision {
		return policy.Decision{Effect: policy.Deny, Rule: "r", Reason: "no"}
	}
	before := len(b.registry.Requests())
	for round := range 4 {
		var items []channel.RequestItem
		for i := range channel.MaxRequestItems {
			items = append(items, item(fmt.Sprintf("secret-%d-%d", round, i), ""))
		}
		if _, err := b.gateway.Propose(t.Context(), sandboxA, askingFor(items...)); err != nil {
			t.Fatal(err)
		}
	}
	if heard := len(b.registry.Requests()) - before; heard == 0 || heard > 2*channel.MaxRequestItems {
		t.Errorf("the upstream heard %d names", heard)
	}
}
