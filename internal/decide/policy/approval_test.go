package policy_test

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// TestAnApprovalIsBound walks what an approval of one file is asked to admit.
func TestAnApprovalIsBound(t *testing.T) {
	p := mustParse(t, "packages: { default: hold, sdist: hold }\nblocked_packages: { python: [ { name: evil } ] }\n")
	rich := func(change func(*policy.Input)) policy.Input {
		in := policy.Input{
			Subject: policy.Subject{
				Package:   pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"},
				Approvals: []policy.Approval{{ID: "ap-7k2m4q", Version: "13.7.1", By: "ann", Digests: []string{digestA, "md5:00"}}},
			},
			FileFacts: policy.FileFacts{File: "rich-13.7.1-py3-none-any.whl", Kind: policy.KindWheel, Digests: []string{digestA}},
		}
		change(&in)
		return in
	}
	for name, c := range map[string]struct {
		change func(*policy.Input)
		effect policy.Effect
		reason string
	}{
		"the file that was shown": {func(*policy.Input) {}, policy.Allow, "rich was approved by ann (ap-7k2m4q)"},
		"the same release, spelt otherwise": {
			func(in *policy.Input) { in.Approvals[0].Version = "13.7.1.0" }, policy.Allow, "rich was approved by ann (ap-7k2m4q)",
		},
		"another version": {func(in *policy.Input) { in.Package.Version = "13.7.2" }, policy.Hold, ""},
		"another file":    {func(in *policy.Input) { in.Digests = []string{digestB} }, policy.Hold, ""},
		"a file of which only a weak digest was shown": {func(in *policy.Input) { in.Digests = []string{"md5:00"} }, policy.Hold, ""},
		"a file of which no digest is known yet":       {func(in *policy.Input) { in.Digests = nil }, policy.Hold, ""},
		"the source distribution of it":                {func(in *policy.Input) { in.Kind, in.Digests = policy.KindSdist, []string{digestB} }, policy.Hold, ""},
		"the same file from another index": {
			func(in *policy.Input) {
				in.Approvals[0].Upstream, in.Upstream = "https://one.example", "https://two.example/"
			}, policy.Hold, "",
		},
		"the same file from that index": {
			func(in *policy.Input) {
				in.Approvals[0].Upstream, in.Upstream = "https://one.example", "https://one.example/"
			}, policy.Allow, "",
		},
		"another kind of file": {func(in *policy.Input) { in.Kind = policy.KindOther }, policy.Deny, ""},
		"malware": {
			func(in *policy.Input) { in.Malware = []policy.Malware{{ID: "MAL-1", Every: true}} }, policy.Deny, "rich is malware in every version (MAL-1)",
		},
		"a blocked name": {func(in *policy.Input) { in.Package.Name = "evil" }, policy.Deny, "evil is on the blocklist"},
		"a file that was denied too": {
			func(in *policy.Input) {
				in.Approvals = append(in.Approvals, policy.Approval{ID: "ap-2", Version: "13.7.1", Denied: true, By: "bob", Reason: "too\nnew"})
			}, policy.Deny, "rich was denied by bob (ap-2): too?new",
		},
	} {
		d := p.Decide(clock(), rich(c.change))
		if d.Effect != c.effect || c.reason != "" && d.Reason != c.reason {
			t.Errorf("%s: %s, %s", name, d.Effect, d.Reason)
		}
		wellFormed(t, d)
	}
}

// TestAnApprovedFileKeepsItsEntry: what a release is admitted through does not
// change because a person had to look at its file.
func TestAnApprovedFileKeepsItsEntry(t *testing.T) {
	p := mustParse(t, "packages: { sdist: hold }\nallowed_packages: { python: [ { name: docopt, with_dependencies: true } ] }\n")
	in := policy.Input{
		Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "docopt", Version: "0.6.2"}},
		FileFacts: policy.FileFacts{Kind: policy.KindSdist, Digests: []string{digestA}},
	}
	if d := p.Decide(clock(), in); d.Effect != policy.Hold || !d.Shown() || d.Through != "" {
		t.Errorf("not yet approved: %+v", d)
	}
	in.Approvals = []policy.Approval{{ID: "ap-1", Version: "0.6.2", Digests: []string{digestA}}}
	if d := p.Decide(clock(), in); !d.Allowed() || d.Through != "allowed_packages.python.docopt" {
		t.Errorf("approved: %+v", d)
	}
}

func TestOnHold(t *testing.T) {
	for document, want := range map[string]struct {
		mode    policy.HoldMode
		maxWait time.Duration
		holds   bool
	}{
		"packages: { default: deny }":                                          {policy.HoldFail, 0, false},
		"packages: { default: hold, on_hold: fail }":                           {policy.HoldFail, 0, true},
		"packages: { sdist: hold, on_hold: wait 1m30s }":                       {policy.HoldWait, 90 * time.Second, true},
		"packages: { min_release_age: 7d, on_hold: freeze }":                   {policy.HoldFreeze, 0, true},
		"packages: { min_release_age: 7d, age_source: ignore, on_hold: fail }": {policy.HoldFail, 0, false},
		"packages: { install_scripts: hold }":                                  {policy.HoldFail, 0, true},
		"packages: { toolchains: hold }":                                       {policy.HoldFail, 0, true},
		"packages: { default: allow, similar_names: hold }":                    {policy.HoldFail, 0, true},
	} {
		p := mustParse(t, document+"\n")
		if mode, maxWait := p.OnHold(); mode != want.mode || maxWait != want.maxWait || p.MayHold() != want.holds {
			t.Errorf("%s: %s %s, holds: %t", document, mode, maxWait, p.MayHold())
		}
		if notes := p.Notes(); len(notes) > 0 {
			t.Errorf("%s: not enforced: %v", document, notes)
		}
	}
}
