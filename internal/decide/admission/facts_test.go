package admission

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// gazette is a source of facts that a test changes, or breaks.
type gazette struct {
	mu              sync.Mutex
	generation      string
	facts           map[string]advisory.Facts                 // by name
	vulnerabilities func(pkgref.Ref) advisory.Vulnerabilities // nil: none was imported
	err             error
}

func (g *gazette) Facts(pkg pkgref.Ref) (advisory.Facts, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts[pkg.Name], g.err
}

func (g *gazette) Vulnerabilities(pkg pkgref.Ref) (advisory.Vulnerabilities, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.vulnerabilities == nil {
		return advisory.Vulnerabilities{}, g.err
	}
	return g.vulnerabilities(pkg), g.err
}

func (g *gazette) Generation() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.generation
}

func (g *gazette) publish(generation, name string, facts advisory.Facts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generation, g.facts, g.vulnerabilities = generation, map[string]advisory.Facts{name: facts}, nil
}

func TestANewAdvisoryHoldsAtOnce(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	advisories := &gazette{generation: "1"}
	g.config.Advisories = advisories
	if shown := g.page(t, "a", nil, "1.0.0", "1.1.0"); shown != "1.0.0 1.1.0" {
		t.Fatalf("a shows %s", shown)
	}
	advisories.publish("2", "a", advisory.Facts{Malware: []policy.Malware{{ID: "MAL-2026-1", Versions: []string{"1.1.0"}}}})
	if shown := g.page(t, "a", nil, "1.0.0", "1.1.0"); shown != "1.0.0" {
		t.Errorf("after the advisory, a shows %s", shown)
	}
	if r := g.records(t, audit.Withheld); len(r) != 1 || r[0].Rule != "advisory.MAL-2026-1" || r[0].Detail["alarm"] != "" {
		t.Errorf("an old release that nobody gets is an alarm, or not on record: %+v", r)
	}
	g.expect(t, false, node("a", "1.1.0"))
	g.expect(t, true, node("a", "1.0.0"), node("b", "1.0.0"))
	if r := g.records(t, audit.Blocked); len(r) != 1 || r[0].Detail["alarm"] != "true" || r[0].ResolvedBy != "advisory" {
		t.Errorf("blocked: %+v", r)
	}
	if _, err := g.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: node("b", ""), ResolvedBy: policy.ByIntegrity, Reason: "it does not exist"}); err != nil {
		t.Fatal(err)
	}
	advisories.publish("3", "gone", advisory.Facts{Malware: []policy.Malware{{ID: "MAL-2026-2", Every: true}}})
	a, err := g.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: node("gone", ""), ResolvedBy: policy.ByIntegrity, Reason: "it does not exist"})
	must(t, err)
	if a.Decision.Rule != "advisory.MAL-2026-2" {
		t.Errorf("a burnt name that is gone: %+v", a.Decision)
	}
	list, err := g.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	var alarms []bool
	for _, r := range list {
		alarms = append(alarms, r.Alarm)
	}
	if diff := cmp.Diff([]bool{true, true, false}, alarms); diff != "" {
		t.Errorf("alarms do not come first: %s", diff)
	}
	sum, err := g.Summary(t.Context(), "run1")
	must(t, err)
	if len(sum.Refused) != 3 || !sum.Refused[0].Alarm || !sum.Refused[1].Alarm || sum.Refused[2].Alarm {
		t.Errorf("the summary: %+v", sum.Refused)
	}
}

// TestWhatIsNotKnownIsRefused, recorded and explained.
func TestWhatIsNotKnownIsRefused(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	advisories := &gazette{err: errors.New("the disk is gone")}
	g.config.Advisories = advisories
	ask := door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node("a", "1.0.0"), File: archive(node("a", "1.0.0"))}}
	page := door.IndexAsk{Sandbox: "sb1", Package: node("b", ""), IndexDigest: "d", Files: []door.File{archive(node("b", "1.0.0"))}}
	file, err := g.Judge(t.Context(), ask)
	must(t, err)
	index, err := g.Index(t.Context(), page)
	must(t, err)
	if file.Decision.Allowed() || file.RequestID == "" || index.Verdicts[index.OfFile[0]].Allowed() || index.RequestID == "" || index.WantEdges {
		t.Errorf("without facts: %+v, %+v", file, index)
	}
	list, err := g.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	if len(list) != 2 || !strings.Contains(list[0].Reason, "facts about packages can't be read") || !strings.Contains(list[1].Reason, "facts about packages can't be read") {
		t.Errorf("why: %+v", list)
	}
	if r := g.records(t, audit.Failed); len(r) != 1 || r[0].ResolvedBy != "advisory" || r[0].Rule != "advisory.unreadable" {
		t.Errorf("recorded: %+v", r)
	}
	advisories.mu.Lock()
	advisories.err = nil
	advisories.mu.Unlock()
	file, err = g.Judge(t.Context(), ask)
	must(t, err)
	index, err = g.Index(t.Context(), page)
	must(t, err)
	if !file.Decision.Allowed() || !index.Verdicts[index.OfFile[0]].Allowed() {
		t.Errorf("with facts again: %+v, %+v", file, index)
	}
}

// TestMalwareInsideOfAFile is refused, whatever the file's own name.
func TestMalwareInsideOfAFile(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }\nblocked_packages: { node: [ { name: inner, version: \"1.0.0\" } ] }", Limits{})
	g.config.Advisories = &gazette{facts: map[string]advisory.Facts{
		"inner": {Malware: []policy.Malware{{ID: "MAL-2026-1", Versions: []string{"1.0.0"}}}},
		"burnt": {Malware: []policy.Malware{{ID: "MAL-2026-2", Every: true}}},
	}}
	for bundled, allowed := range map[string]bool{"inner 1.0.0": false, "inner 1.0.1": true, "inner": true, "burnt": false, "burnt 7.0.0": false, "other 1.0.0": true} {
		ask := door.ServeAsk{FileAsk: door.FileAsk{
			Sandbox: "sb1", Package: node("a", "1.0.0"), File: archive(node("a", "1.0.0")), Bundled: []string{"x 1.0.0", bundled},
		}, Bytes: door.Bytes{SHA256: hexOf("a"), Size: 5}}
		a, err := g.Serve(t.Context(), ask)
		must(t, err)
		if a.Decision.Allowed() != allowed || !allowed && (!a.Decision.Alarm || !strings.Contains(a.Decision.Reason, "inside the file")) {
			t.Errorf("with %s inside: %+v", bundled, a.Decision)
		}
	}
	if n := len(g.records(t, audit.Served)); n != 3 {
		t.Errorf("%d files served, want 3", n)
	}
}

// TestMuchInsideOfAFile: as many names of packages as a file may bring along, each as
// long as it may be, come through the door.
func TestMuchInsideOfAFile(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	client, _ := serve(t, g)
	ask := door.ServeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node("a", "1.0.0"), File: archive(node("a", "1.0.0"))}, Bytes: door.Bytes{SHA256: hexOf("a"), Size: 5}}
	for range 500 {
		ask.Bundled = append(ask.Bundled, strings.Repeat("n", 500)+" "+strings.Repeat("1", 256))
	}
	if a, err := client.Serve(t.Context(), ask); err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestWhatCameInsideIsAccountedFor: a bundled package is on the disk without a
// file of its own.
func TestWhatCameInsideIsAccountedFor(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	_, err := g.Serve(t.Context(), door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: "sb1", Package: node("a", "1.0.0"), File: archive(node("a", "1.0.0")),
		Bundled: []string{"@s/inner 2.0.0", "other"},
	}, Bytes: door.Bytes{SHA256: hexOf("a"), Size: 5}})
	must(t, err)
	g.Unregister("sb1")
	must(t, g.Restore(t.Context(), g.run()))
	inv := channel.Inventory{Packages: []channel.InstalledPackage{
		{Ecosystem: "node", Name: "a", Version: "1.0.0"}, {Ecosystem: "node", Name: "@s/inner", Version: "2.0.0"}, {Ecosystem: "node", Name: "@s/inner", Version: "2.0.1"},
	}}
	must(t, installed(g.Installed(t.Context(), "sb1", provenance.Disk{Found: inv})))
	var got []string
	for _, r := range g.records(t, audit.Installed) {
		got = append(got, r.InstalledVersion+" "+r.Detail["bundled_in"]+" "+r.Detail["unaccounted"])
	}
	if diff := cmp.Diff([]string{"1.0.0  ", "2.0.0 node a 1.0.0 ", "2.0.1  true"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOwners(t *testing.T) {
	g := newGrove(t, `
packages: { default: allow }
namespaces: [ { ecosystem: node, pattern: "@acme/*", upstream: "https://npm.acme.example/" } ]
`, Limits{})
	g.config.Namespaces = []policy.Namespace{{Ecosystem: pkgref.Node, Pattern: "@acme/base", Upstream: "https://base.example/"}}
	for name, want := range map[string]string{"@acme/x": "https://npm.acme.example/", "@acme/base": "https://base.example/", "left-pad": ""} {
		a, err := g.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node(name, "")})
		if err != nil || a.Upstream != want {
			t.Errorf("%s is %q's: %v", name, a.Upstream, err)
		}
		ask := door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node(name, "1.0.0"), File: archive(node(name, "1.0.0")), Upstream: "https://npm.example/"}}
		elsewhere, err := g.Judge(t.Context(), ask)
		must(t, err)
		ask.Upstream = want
		home, err := g.Judge(t.Context(), ask)
		must(t, err)
		if elsewhere.Decision.Allowed() != (want == "") || !home.Decision.Allowed() {
			t.Errorf("%s elsewhere: %+v; at home: %+v", name, elsewhere.Decision, home.Decision)
		}
	}
	if _, err := g.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node("a b", "")}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("the owner of what is no name: %v", err)
	}
	for by, want := range map[policy.ResolvedBy]audit.Outcome{policy.ByNamespace: audit.Blocked, policy.ByToolchain: audit.Blocked, policy.ByIntegrity: audit.Failed, "nonsense": audit.Failed} {
		_, err := g.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: node("@acme/x", ""), ResolvedBy: by, Rule: "rule." + string(by), Reason: "said by " + string(by)})
		must(t, err)
		all := g.records(t)
		if r := all[len(all)-1]; r.Outcome != want || r.Rule != "rule."+string(by) {
			t.Errorf("%s: %+v", by, r)
		}
	}
}

const packageLock = `{
  "name": "app", "version": "1.0.0", "lockfileVersion": 3,
  "packages": {
    "": { "name": "app", "version": "1.0.0", "dependencies": { "a": "^1.0.0" } },
    "node_modules/a": { "version": "1.2.0", "resolved": "https://npm.example/a/-/a-1.2.0.tgz", "integrity": "sha512-` + integrity + `" }
  }
}
`

// integrity is 64 bytes, which are 0x2a each.
const integrity = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKg=="

func locked(tb testing.TB, trust bool) *lockfile.Set {
	tb.Helper()
	file, err := lockfile.Parse("package-lock.json", []byte(packageLock))
	must(tb, err)
	set, err := lockfile.NewSet(policy.LockRules{Given: true, Mode: policy.LockFrozen, Trust: trust}, []*lockfile.Lockfile{file})
	must(tb, err)
	return set
}

func TestALockfileIsEnforcedAndOnRecord(t *testing.T) {
	g := newGrove(t, "packages: { lockfile: { files: [package-lock.json], trust: true } }", Limits{})
	g.Unregister("sb1")
	run := g.run()
	must(t, g.Register(run))
	g.expect(t, false, node("a", "1.2.0")) // the document names a lockfile that the run does not have
	g.Unregister("sb1")
	run.Lock = locked(t, true)
	must(t, g.Register(run))
	must(t, g.SandboxStarted(t.Context(), "sb1"))
	if r := g.records(t, audit.Started); len(r) != 1 || r[0].Detail["lockfiles_digest"] != run.Lock.Digest() {
		t.Errorf("the start: %+v", r)
	}
	right, pinned := strings.Repeat("2a", 64), archive(node("a", "1.2.0"))
	pinned.Digest = "sha512:" + right
	ask := door.IndexAsk{Sandbox: "sb1", Package: node("a", ""), IndexDigest: "d", Files: []door.File{archive(node("a", "1.1.0")), pinned, archive(node("a", "1.3.0"))}}
	a, err := g.Index(t.Context(), ask)
	must(t, err)
	if a.Verdicts[a.OfFile[0]].Allowed() || !a.Verdicts[a.OfFile[1]].Allowed() || a.Verdicts[a.OfFile[2]].Allowed() {
		t.Errorf("the page: %+v", a)
	}
	serve := door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: "sb1", Package: node("a", "1.2.0"), File: pinned,
		Digests: []string{pinned.Digest, "sha256:" + hexOf("a")}, Bundled: []string{"b 1.0.0"}, Findings: []string{"it is odd"},
	}, Bytes: door.Bytes{SHA256: hexOf("a"), Size: 5}}
	got, err := g.Serve(t.Context(), serve)
	must(t, err)
	r := g.records(t, audit.Served)
	want := map[string]string{"upstream_digest": pinned.Digest, "bundled": "b 1.0.0", "findings": "it is odd"}
	if !got.Decision.Allowed() || len(r) != 1 || r[0].RequestedVersion != "1.2.0" || r[0].RequestedClaimed || r[0].ResolvedBy != "lockfile" {
		t.Errorf("served: %+v", r)
	} else if diff := cmp.Diff(want, r[0].Detail); diff != "" {
		t.Error(diff)
	}
	// Another file in its place: refused by the page already, and an alarm.
	other := ask
	other.IndexDigest, other.Files = "e", []door.File{archive(node("a", "1.1.0")), archive(node("a", "1.2.0")), archive(node("a", "1.3.0"))}
	if a, err = g.Index(t.Context(), other); err != nil || a.Verdicts[a.OfFile[1]].Allowed() {
		t.Errorf("another file in the page: %+v, %v", a, err)
	}
	withheld := g.records(t, audit.Withheld)
	if r := withheld[len(withheld)-1]; r.Detail["alarm"] != "true" || r.Rule != "packages.lockfile.digest" || withheld[0].Detail["alarm"] != "" {
		t.Errorf("withheld: %+v", withheld)
	}
	serve.File, serve.Digests = archive(node("a", "1.2.0")), nil
	if got, err = g.Serve(t.Context(), serve); err != nil || got.Decision.Allowed() || !got.Decision.Alarm {
		t.Errorf("another file: %+v, %v", got, err)
	}
	if r := g.records(t, audit.Blocked); r[len(r)-1].Detail["alarm"] != "true" || r[len(r)-1].RequestedVersion != "1.2.0" {
		t.Errorf("blocked: %+v", r[len(r)-1])
	}
}

// TestIncomparableDigests: an index with a weak digest leaves it open; the
// bytes decide.
func TestIncomparableDigests(t *testing.T) {
	g := newGrove(t, "allowed_packages: { node: [ { name: a } ] }", Limits{})
	g.Unregister("sb1")
	run := g.run()
	run.Lock = locked(t, false)
	must(t, g.Register(run))
	f := archive(node("a", "1.2.0"))
	f.Digest = "sha1:" + strings.Repeat("a", 40)
	about := door.FileAsk{Sandbox: "sb1", Package: node("a", "1.2.0"), File: f}
	before, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: about})
	must(t, err)
	if !before.Decision.Allowed() {
		t.Fatalf("before the bytes are here: %+v", before.Decision)
	}
	ask := door.ServeAsk{FileAsk: about, Bytes: door.Bytes{SHA256: hexOf("a")}}
	for digest, want := range map[string]bool{"sha512:" + strings.Repeat("2a", 64): true, "sha512:" + strings.Repeat("2b", 64): false, "sha256:" + hexOf("a"): false} {
		ask.Digests = []string{f.Digest, digest}
		a, err := g.Serve(t.Context(), ask)
		must(t, err)
		if a.Decision.Allowed() != want {
			t.Errorf("%s: %+v", digest, a.Decision)
		}
	}
	r := g.records(t, audit.Served)
	if len(r) != 1 || !strings.Contains(r[0].Detail["findings"], "only a weak digest") || r[0].RequestedVersion != "1.2.0" {
		t.Errorf("served: %+v", r)
	}
}

// TestTwoWheelsAndOnePin: a lockfile need not name all files of a release, so
// another one in the page is no alarm.
func TestTwoWheelsAndOnePin(t *testing.T) {
	g := newGrove(t, "allowed_packages: { python: [ { name: a } ] }", Limits{})
	file, err := lockfile.Parse("requirements.txt", []byte("a==1.0 --hash=sha256:"+strings.Repeat("2a", 32)+"\n"))
	must(t, err)
	set, err := lockfile.NewSet(policy.LockRules{Given: true}, []*lockfile.Lockfile{file})
	must(t, err)
	g.Unregister("sb1")
	run := g.run()
	run.Lock = set
	must(t, g.Register(run))
	mine, other := wheel("a", "1.0"), wheel("a", "1.0")
	mine.Digest, other.Name = "sha256:"+strings.Repeat("2a", 32), "a-1.0-cp312-cp312-win_amd64.whl"
	a, err := g.Index(t.Context(), indexOf("a", "d", other, mine))
	must(t, err)
	if d := a.Verdicts[a.OfFile[0]]; d.Allowed() || d.Alarm || !a.Verdicts[a.OfFile[1]].Allowed() {
		t.Errorf("the page: %+v", a)
	}
	a, err = g.Index(t.Context(), indexOf("a", "e", other))
	must(t, err)
	if d := a.Verdicts[a.OfFile[0]]; d.Allowed() || !d.Alarm {
		t.Errorf("a page without the pinned file: %+v", a)
	}
}

func TestAgeFromWhenAFileWasFirstSeen(t *testing.T) {
	g := newGrove(t, "packages: { default: allow, min_release_age: 7d, age_source: first-seen }", Limits{})
	f := archive(node("a", "1.0.0"))
	f.FirstSeen = noon().Add(-6 * 24 * time.Hour)
	ask := door.IndexAsk{Sandbox: "sb1", Package: node("a", ""), IndexDigest: "d", Files: []door.File{f}}
	a, err := g.Index(t.Context(), ask)
	must(t, err)
	if a.Verdicts[0].Allowed() {
		t.Fatalf("a file of six days: %+v", a)
	}
	g.advance(24 * time.Hour)
	ask.Files = nil
	if a, err = g.Index(t.Context(), ask); err != nil || !a.NeedFiles || a.NeedTimes {
		t.Fatalf("at the time: %+v, %v", a, err)
	}
	ask.Files = []door.File{f}
	if a, err = g.Index(t.Context(), ask); err != nil || !a.Verdicts[0].Allowed() {
		t.Errorf("a file of seven days: %+v, %v", a, err)
	}
}

func TestTimesAreAskedFor(t *testing.T) {
	for document, want := range map[string]bool{
		"packages: { min_release_age: 7d }": true, "packages: { min_release_age: 7d, age_source: ignore }": false, "packages: { default: allow }": false,
	} {
		g := newGrove(t, document, Limits{})
		a, err := g.Index(t.Context(), door.IndexAsk{Sandbox: "sb1", Package: module("example.com/a", ""), IndexDigest: "d"})
		if err != nil || !a.NeedFiles || a.NeedTimes != want {
			t.Errorf("%s: %+v, %v", document, a, err)
		}
	}
}

func TestAWitnessVouches(t *testing.T) {
	g := newGrove(t, "packages: { default: allow, require_hashes: true }", Limits{})
	f := archive(module("example.com/a", "v1.0.0"))
	f.Digest = ""
	about := door.FileAsk{Sandbox: "sb1", Package: module("example.com/a", "v1.0.0"), File: f}
	if a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: about}); err != nil || !a.Decision.Allowed() {
		t.Errorf("before the witness is asked: %+v, %v", a, err)
	}
	ask := door.ServeAsk{FileAsk: about, Bytes: door.Bytes{SHA256: hexOf("a")}}
	ask.Digests = []string{"sha256:" + hexOf("a")}
	if a, err := g.Serve(t.Context(), ask); err != nil || a.Decision.Rule != "packages.require_hashes" {
		t.Errorf("nobody vouches for it: %+v, %v", a, err)
	}
	ask.Digests = append(ask.Digests, "h1:abc=") // that the gateway could compute it vouches for nothing
	if a, err := g.Serve(t.Context(), ask); err != nil || a.Decision.Rule != "packages.require_hashes" {
		t.Errorf("nobody but the gateway vouches for it: %+v, %v", a, err)
	}
	ask.File.Digest = "h1:abc="
	if a, err := g.Serve(t.Context(), ask); err != nil || !a.Decision.Allowed() {
		t.Errorf("a witness vouches for it: %+v, %v", a, err)
	}
	if r := g.records(t, audit.Served); len(r) != 1 || r[0].Detail["upstream_digest"] != "h1:abc=" || r[0].Detail["findings"] != "" {
		t.Errorf("served: %+v", r)
	}
	ask.Digests = make([]string, 100)
	if _, err := g.Serve(t.Context(), ask); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a hundred digests: %v", err)
	}
}

// TestQueriesAreJudgedByTheName: what a branch leads to has no version yet.
func TestQueriesAreJudgedByTheName(t *testing.T) {
	g := newGrove(t, "allowed_packages: { go: [ { name: example.com/a, version: \">=v1.0.0,<v2\" } ] }", Limits{})
	ask := func(name string, kind policy.ArtifactKind) (door.Answer, error) {
		return g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: module(name, ""), File: door.File{Name: "main.info", Kind: kind}}})
	}
	if a, err := ask("example.com/a", policy.KindMetadata); err != nil || !a.Decision.Allowed() {
		t.Errorf("a listed name: %+v, %v", a, err)
	}
	if a, err := ask("example.com/b", policy.KindMetadata); err != nil || a.Decision.Allowed() {
		t.Errorf("another name: %+v, %v", a, err)
	}
	if a, err := ask("example.com/a", policy.KindPackage); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a file without a version: %+v, %v", a, err)
	}
}
