package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// servedAs has a release served whose file consists of something.
func (g *grove) servedAs(tb testing.TB, ref pkgref.Ref, contents string, bundled ...string) {
	tb.Helper()
	file := archive(ref)
	file.Digest = "sha256:" + hexOf(contents)
	a, err := g.Serve(tb.Context(), door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: "sb1", Package: ref, File: file, SourceURL: "https://npm.example/f",
		Contents: contents, Bundled: bundled,
	}, Bytes: door.Bytes{SHA256: hexOf(contents), Size: 10}})
	must(tb, err)
	if !a.Decision.Allowed() {
		tb.Fatalf("%s: %+v", ref, a.Decision)
	}
}

// lying answers for directories as a guest does: by path, what is there.
func lying(there map[string]string) provenance.Contents {
	return func(_ context.Context, paths []string) (map[string][]string, error) {
		digests := map[string][]string{}
		for _, path := range paths {
			digests[path] = []string{"", there[path]}
		}
		return digests, nil
	}
}

// TestAStoreOfAnEarlierRun: what a client's store on a mount gives to a later run is no
// alarm where it is what was served, byte for byte, and this run may have it; and is one
// where anything of that is not so.
func TestAStoreOfAnEarlierRun(t *testing.T) {
	const at = "/workspace/node_modules/.pnpm/foo@1.0.0/node_modules/foo"
	found := []channel.InstalledPackage{on("node foo 1.0.0", at)}
	alarm := []string{"alarm foo 1.0.0 unaccounted true", "installed foo 1.0.0 unaccounted true"}
	known := []string{"installed foo 1.0.0 earlier"}
	for what, c := range map[string]struct {
		policy string // of the later run; "": the same
		token  string
		facts  map[string]advisory.Facts
		found  []channel.InstalledPackage
		there  map[string]string
		ask    provenance.Contents
		want   []string
	}{
		"as it was served":                {there: map[string]string{at: "sha256:good"}, want: known},
		"changed":                         {there: map[string]string{at: "sha256:evil"}, want: alarm},
		"that can't be compared":          {there: map[string]string{}, want: alarm},
		"of which the guest says nothing": {ask: func(context.Context, []string) (map[string][]string, error) { return nil, errors.New("no") }, want: alarm},
		"of a token":                      {token: "tk1", there: map[string]string{at: "sha256:good"}, want: alarm},
		"under another policy that lets it in": {
			policy: "allowed_packages: { node: [ { name: foo } ] }", there: map[string]string{at: "sha256:good"}, want: known,
		},
		"under another policy that does not":   {policy: "packages: { default: deny }", there: map[string]string{at: "sha256:good"}, want: alarm},
		"under another policy that would hold": {policy: "packages: { default: hold }", there: map[string]string{at: "sha256:good"}, want: alarm},
		"that is malware by now": {
			facts: map[string]advisory.Facts{"foo": {Malware: []policy.Malware{{ID: "MAL-2026-9", Every: true}}}}, there: map[string]string{at: "sha256:good"}, want: alarm,
		},
		"in another version": {found: []channel.InstalledPackage{on("node foo 1.0.1", at)}, there: map[string]string{at: "sha256:good"}, want: []string{"alarm foo 1.0.1 unaccounted true", "installed foo 1.0.1 unaccounted true"}},
		"twice, one of them changed": {
			found: append(found, on("node foo 1.0.0", "/workspace/other/foo")),
			there: map[string]string{at: "sha256:good", "/workspace/other/foo": "sha256:evil"},
			want:  []string{"alarm foo 1.0.0 unaccounted true", "installed foo 1.0.0 earlier", "installed foo 1.0.0 unaccounted true"},
		},
		"with what it brings": {
			found: append(found, on("node inner 2.0.0", at+"/node_modules/inner"), on("node beside 2.0.0", "/workspace/node_modules/beside")),
			there: map[string]string{at: "sha256:bundle"},
			want:  []string{"alarm beside 2.0.0 unaccounted true", "installed beside 2.0.0 unaccounted true", "installed foo 1.0.0 earlier", "installed inner 2.0.0 bundled node foo 1.0.0"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, "packages: { default: allow }", Limits{})
			g.servedAs(t, node("foo", "1.0.0"), "sha256:good")
			g.servedAs(t, node("foo", "1.0.0"), "sha256:bundle", "inner 2.0.0")
			g.Unregister("sb1")
			if c.facts != nil {
				g.config.Advisories = &gazette{generation: "2", facts: c.facts}
			}
			later := Run{Sandbox: "sb2", Run: "run2", Policy: g.policy, Token: c.token}
			if c.policy != "" {
				later.Policy = parse(t, c.policy)
			}
			must(t, g.Register(later))
			disk := provenance.Disk{Found: listing(found...), Contents: lying(c.there)}
			if c.found != nil {
				disk.Found = listing(c.found...)
			}
			if c.ask != nil {
				disk.Contents = c.ask
			}
			for range 2 {
				must(t, installed(g.Installed(t.Context(), "sb2", disk)))
			}
			if diff := cmp.Diff(c.want, recordsOfDisk(t, g.house)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLogKnowsEarlierRuns: it is read when that is asked for first, and a record of
// what was recognised names the one that it rests on. A package that was recognised is not asked about again.
func TestTheLogKnowsEarlierRuns(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	g.servedAs(t, node("foo", "1.0.0"), "sha256:good")
	again := New(Config{Clients: all.Asked, Log: g.log, Clock: g.house})
	must(t, again.Register(Run{Sandbox: "sb2", Run: "run2", Policy: g.policy}))
	asked := 0
	disk := provenance.Disk{Found: listing(on("node foo 1.0.0", "/w/foo")), Contents: func(_ context.Context, paths []string) (map[string][]string, error) {
		asked++
		return lying(map[string]string{"/w/foo": "sha256:good"})(t.Context(), paths)
	}}
	for range 3 {
		must(t, installed(again.Installed(t.Context(), "sb2", disk)))
	}
	all := g.records(t)
	last := all[len(all)-1]
	if last.Detail[provenance.DetailOrigin] != "earlier" || last.Detail[records.DetailServed] == "" || last.SHA256 != hexOf("sha256:good") || !strings.Contains(last.Reason, "byte for byte") {
		t.Errorf("the record is %+v", last)
	}
	var from string
	for _, r := range all {
		if r.Outcome == "served" {
			from = fmt.Sprint(r.Seq)
		}
	}
	if last.Detail[records.DetailServed] != from {
		t.Errorf("it rests on record %s, and the file was served by %s", last.Detail[records.DetailServed], from)
	}
	if asked != 1 {
		t.Errorf("the guest was asked %d times", asked)
	}
}

// TestWhatCantBeComparedIsTold: a guest that does not answer keeps nothing from being an
// alarm, and the operator and the log are told why.
func TestWhatCantBeComparedIsTold(t *testing.T) {
	const at, why = "/workspace/node_modules/foo", "did not answer when it was to be compared"
	for what, c := range map[string]struct {
		ask  provenance.Contents
		want bool // that it is told
	}{
		"no answer":         {func(context.Context, []string) (map[string][]string, error) { return nil, errors.New("no such guest") }, true},
		"another directory": {lying(map[string]string{at: "sha256:evil"}), false}, // the control
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, "packages: { default: allow }", Limits{})
			g.servedAs(t, node("foo", "1.0.0"), "sha256:good")
			var said strings.Builder
			again := New(Config{Log: g.log, Clock: g.house, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			must(t, again.Register(Run{Sandbox: "sb2", Run: "run2", Policy: g.policy}))
			must(t, installed(again.Installed(t.Context(), "sb2", provenance.Disk{Found: listing(on("node foo 1.0.0", at)), Contents: c.ask})))
			alarms := g.records(t, audit.Installed, audit.Alarm)
			if len(alarms) != 2 {
				t.Fatalf("the records are %+v", alarms)
			}
			for _, r := range alarms {
				if r.Detail[records.DetailUnaccounted] != "true" || strings.Contains(r.Reason, why) != c.want {
					t.Errorf("%s: %s, %v", r.Outcome, r.Reason, r.Detail)
				}
			}
			if line := said.String(); strings.Contains(line, "sandbox=sb2") != c.want || strings.Contains(line, "no such guest") != c.want {
				t.Errorf("the operator was told %q", line)
			}
		})
	}
}
