package admission

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestAnOlderReleaseIsNotSilent: an install that goes well with an older release, since newer ones are withheld, has these in the run's
// summary with the rule that withholds them, for whichever reason that is. The control is a page that lacks nothing.
func TestAnOlderReleaseIsNotSilent(t *testing.T) {
	newer := func(change func(f *door.File)) door.File {
		f := archive(node("root", "2.0.0"))
		change(&f)
		return f
	}
	const list = "allowed_packages: { node: [ { name: root, with_dependencies: true } ], python: [ { name: root } ] }\n"
	for name, c := range map[string]struct {
		policy    string
		ecosystem pkgref.Ecosystem
		newer     door.File
		rule      string // "": nothing is withheld
	}{
		"the control":        {list, pkgref.Node, newer(func(*door.File) {}), ""},
		"it runs scripts":    {list, pkgref.Node, newer(func(f *door.File) { f.Scripts = true }), "packages.install_scripts"},
		"nobody to be asked": {"packages: { install_scripts: hold }\n" + list, pkgref.Node, newer(func(f *door.File) { f.Scripts = true }), "packages.install_scripts"},
		"its scripts run":    {"packages: { install_scripts: allow }\n" + list, pkgref.Node, newer(func(f *door.File) { f.Scripts = true }), ""},
		"it is too young":    {"packages: { min_release_age: 7d }\n" + list, pkgref.Node, newer(func(f *door.File) { f.Published = noon().Add(-time.Hour) }), "packages.min_release_age"},
		"it is over the cap": {"allowed_packages: { node: [ { name: root, max_version: 1.x } ] }\n", pkgref.Node, newer(func(*door.File) {}), "allowed_packages.node.root.max_version"},
		"a source alone":     {list, pkgref.Python, newer(func(f *door.File) { f.Kind = policy.KindSdist }), "packages.sdist"},
		"a wheel, too young": {"packages: { min_release_age: 7d }\n" + list, pkgref.Python, newer(func(f *door.File) { f.Kind, f.Published = policy.KindWheel, noon() }), "packages.min_release_age"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrove(t, c.policy, Limits{})
			_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
			must(t, err)
			older := archive(node("root", "1.0.0"))
			if c.ecosystem == pkgref.Python {
				older.Kind = policy.KindWheel
			}
			project := pkgref.Ref{Ecosystem: c.ecosystem, Name: "root"}
			_, err = g.door.Index(t.Context(), door.IndexAsk{Sandbox: "sb1", Package: project, SourceURL: "https://x.example/root", IndexDigest: "of root", Files: []door.File{older, c.newer}})
			must(t, err)
			project.Version = "1.0.0"
			ask := door.FileAsk{Sandbox: "sb1", Package: project, File: older, SourceURL: "https://x.example/f"}
			if a, err := g.Serve(t.Context(), door.ServeAsk{FileAsk: ask, Bytes: door.Bytes{SHA256: hexOf("x")}}); err != nil || !a.Decision.Allowed() {
				t.Fatalf("the older one: %+v, %v", a, err)
			}
			must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Claimed: true}))
			sum, err := g.Summary(t.Context(), "run1")
			must(t, err)
			if c.rule == "" {
				if len(sum.Withheld) > 0 {
					t.Errorf("withheld: %+v", sum.Withheld)
				}
				return
			}
			if len(sum.Withheld) != 1 || sum.Withheld[0].Version != "2.0.0" || sum.Withheld[0].Rule != c.rule || sum.Withheld[0].Reason == "" {
				t.Errorf("withheld: %+v, want 2.0.0 by %s", sum.Withheld, c.rule)
			}
		})
	}
}
