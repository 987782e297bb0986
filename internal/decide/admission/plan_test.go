package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// planHouse is a house whose sandbox makes a plan under a policy.
func planHouse(t *testing.T, document string) *house {
	t.Helper()
	h := newHouse(t, Limits{})
	h.Unregister("sb1")
	h.policy = parse(t, document)
	r := h.run()
	r.Plan = true
	must(t, h.Register(r))
	return h
}

const planPolicy = `
packages: { default: DEFAULT, min_release_age: 7d }
allowed_packages: { python: [ { name: requests, with_dependencies: true } ] }
blocked_packages: { python: [ { name: evil } ] }
namespaces: [ { ecosystem: python, pattern: "acme-*", upstream: "https://private.example/simple/" } ]
`

func (h *house) shows(t *testing.T, ask door.IndexAsk) []bool {
	t.Helper()
	a, err := h.Index(t.Context(), ask)
	must(t, err)
	if a.NeedFiles {
		t.Fatalf("the files of %s are asked for again", ask.Package)
	}
	shown := make([]bool, len(a.OfFile))
	for i, v := range a.OfFile {
		shown[i] = a.Verdicts[v].Allowed()
	}
	return shown
}

func choice(name, version string) planning.Choice {
	return planning.Choice{Package: python(name, version), Digests: []string{"sha256:" + hexOf(name+version)}}
}

// TestAPlanShowsWhatWaits: the resolver is shown what would wait, and what only
// no list names; all other refusals stay.
func TestAPlanShowsWhatWaits(t *testing.T) {
	for _, byDefault := range []string{"hold", "deny"} {
		h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", byDefault, 1))
		young := wheel("rich", "14.0")
		young.Published = noon().AddDate(0, 0, -1)
		sdist := door.File{Name: "rich-13.0.tar.gz", Version: "13.0", Kind: policy.KindSdist, Digest: "sha256:" + hexOf("sdist"), Published: noon().AddDate(-1, 0, 0)}
		if got := h.shows(t, indexOf("rich", "d1", wheel("rich", "13.0"), young, sdist)); !slices.Equal(got, []bool{true, false, false}) {
			t.Errorf("%s: of rich are shown %v", byDefault, got)
		}
		if got := h.shows(t, indexOf("evil", "d2", wheel("evil", "1.0"))); got[0] {
			t.Errorf("%s: what is blocked is shown", byDefault)
		}
		private := indexOf("acme-core", "d3", wheel("acme-core", "1.0"))
		private.Upstream = "https://public.example/simple/"
		if got := h.shows(t, private); got[0] {
			t.Errorf("%s: another upstream's private name is shown", byDefault)
		}
		for name, allowed := range map[string]bool{"rich": true, "requests": true, "evil": false} {
			a, err := h.Serve(t.Context(), serving(name, "13.0"))
			must(t, err)
			if a.Decision.Allowed() != allowed || a.Decision.Admitted() != (name == "requests") {
				t.Errorf("%s: the file of %s: %+v", byDefault, name, a.Decision)
			}
		}
		records := h.records(t, audit.Planned)
		if len(records) != 2 || len(h.records(t, audit.Served, audit.Pending)) != 0 {
			t.Fatalf("%s: records %+v", byDefault, h.records(t))
		}
		for _, r := range records {
			want := map[string]string{"requests": "allow", "rich": byDefault}[r.Package]
			if r.Detail["effect"] != want || r.Detail["read"] != "true" || r.SHA256 == "" || r.Policy != h.policy.Digest() {
				t.Errorf("%s: the record of %s: %+v", byDefault, r.Package, r)
			}
		}
	}
}

// TestAPlanIsWeighed joins a resolver's choices with what the run was shown.
func TestAPlanIsWeighed(t *testing.T) {
	h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1))
	scripts := wheel("rich", "13.0")
	scripts.Size = 100
	other := scripts
	other.Name, other.Digest = "rich-13.0-cp39-win.whl", "sha256:"+hexOf("win")
	h.shows(t, indexOf("rich", "d1", scripts, other, wheel("rich", "12.0")))
	h.shows(t, indexOf("requests", "d2", wheel("requests", "2.31.0")))
	h.shows(t, indexOf("idna", "d3", wheel("idna", "3.0")))
	must(t, h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna", Specifier: ">=2,<4"}}))
	h.shows(t, indexOf("tool", "d4", wheel("tool", "1.0")))
	must(t, h.Edges(t.Context(), "sb1", python("tool", "1.0"), []door.Requirement{{Name: "rich", Specifier: ">=13"}}))
	a, err := h.Serve(t.Context(), serving("setuptools", "80.0")) // a build's requirement
	must(t, err)
	if !a.Decision.Allowed() {
		t.Fatalf("setuptools: %+v", a.Decision)
	}
	lied := choice("idna", "3.0")
	lied.Digests = []string{"sha256:" + hexOf("other")}
	both := choice("rich", "13.0")
	both.Digests = append(both.Digests, other.Digest)
	out, err := h.Plan(t.Context(), "run1", []planning.Choice{
		choice("requests", "2.31.0"), both, choice("idna", "3.0"), choice("never", "1.0"), choice("rich", "9.9"),
		{Package: python("left", "1.0"), IfRead: true},
		choice("tool", "1.0"),
	})
	must(t, err)
	effects := map[string]string{}
	for _, r := range out.Releases {
		effects[r.Package.Name+" "+r.Package.Version] = string(r.Verdict.Effect) + r.Problem
	}
	want := map[string]string{
		"requests 2.31.0": "allow", "rich 13.0": "hold", "idna 3.0": "allow", "tool 1.0": "hold",
		"never 1.0": "the resolver names it, and the gateway never showed it in this run",
		"rich 9.9":  "the resolver names it, and the gateway never showed it in this run",
	}
	for name, effect := range want {
		if effects[name] != effect {
			t.Errorf("%s is %q, want %q", name, effects[name], effect)
		}
	}
	if len(effects) != len(want) || len(out.Read) != 1 || out.Read[0].Name != "setuptools" {
		t.Errorf("releases %v; read %v", effects, out.Read)
	}
	rich := out.Releases[1]
	if len(rich.Files) != 2 || rich.Files[0].Size != 100 && rich.Files[1].Size != 100 || len(rich.WantedBy) != 1 || rich.WantedBy[0].Text(rich.Package) != "tool 1.0 requires rich >=13" {
		t.Errorf("rich: %+v", rich)
	}
	if idna := out.Releases[2]; len(idna.WantedBy) != 1 || idna.Verdict.ResolvedBy != policy.ByDependency {
		t.Errorf("idna: %+v", idna)
	}
	if again, err := h.Plan(t.Context(), "run1", []planning.Choice{lied}); err != nil || again.Releases[0].Problem == "" || again.Releases[0].Verdict.Effect != "" {
		t.Errorf("another digest: %+v, %v", again, err)
	}
	named := choice("rich", "13.0")
	named.File = "rich-13.0-py3-none-any.zip"
	if again, err := h.Plan(t.Context(), "run1", []planning.Choice{named}); err != nil || again.Releases[0].Problem == "" {
		t.Errorf("another file: %+v, %v", again, err)
	}
}

// TestAPlanTellsExtrasApart: a release's extra that nothing asks for does not say that the release requires what it
// brings. It explains what nothing else does, as an extra; what is on the allowlist by itself it does not explain.
func TestAPlanTellsExtrasApart(t *testing.T) {
	h := planHouse(t, "packages: { default: deny }\nallowed_packages: { python: [ { name: requests, with_dependencies: true }, { name: pytest, with_dependencies: true } ] }\n")
	for i, name := range []string{"requests", "idna", "pytest", "numpy"} {
		h.shows(t, indexOf(name, fmt.Sprint("d", i), wheel(name, "1.0")))
	}
	must(t, h.Edges(t.Context(), "sb1", python("requests", "1.0"), []door.Requirement{{Name: "idna"}}))
	must(t, h.Edges(t.Context(), "sb1", python("idna", "1.0"), []door.Requirement{{Name: "pytest", Under: "all"}}))
	must(t, h.Edges(t.Context(), "sb1", python("pytest", "1.0"), []door.Requirement{{Name: "numpy", Specifier: ">=1", Under: "dev,test"}, {Name: "idna", Under: "dev"}}))
	out, err := h.Plan(t.Context(), "run1", []planning.Choice{choice("requests", "1.0"), choice("idna", "1.0"), choice("pytest", "1.0"), choice("numpy", "1.0")})
	must(t, err)
	want := map[string]string{"requests": "", "idna": "requests 1.0 requires idna", "pytest": "", "numpy": "pytest 1.0 requires numpy >=1 for its extra dev"}
	for _, r := range out.Releases {
		var by []string
		for _, w := range r.WantedBy {
			by = append(by, w.Text(r.Package))
		}
		if got := strings.Join(by, "; "); got != want[r.Package.Name] {
			t.Errorf("%s: %q, want %q", r.Package.Name, got, want[r.Package.Name])
		}
	}
}

// TestAPlanAdmitsNothingLater: neither in another sandbox of the run, nor in a
// page that is remembered.
func TestAPlanAdmitsNothingLater(t *testing.T) {
	h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1))
	page := indexOf("rich", "d1", wheel("rich", "13.0"))
	if !h.shows(t, page)[0] {
		t.Fatal("the plan is not shown rich")
	}
	_, err := h.Serve(t.Context(), serving("rich", "13.0"))
	must(t, err)
	r := h.run()
	r.Sandbox = "sb2"
	must(t, h.Register(r))
	page.Sandbox = "sb2"
	a, err := h.Index(t.Context(), page)
	must(t, err)
	if a.Verdicts[a.OfFile[0]].Allowed() {
		t.Error("the page that the plan was shown is another run's")
	}
	ask := serving("rich", "13.0")
	ask.Sandbox = "sb2"
	if a, err := h.Serve(t.Context(), ask); err != nil || a.Decision.Allowed() {
		t.Errorf("the file that the plan read is admitted: %+v, %v", a, err)
	}
	if err := h.Edges(t.Context(), "sb2", python("other", "1.0"), nil); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("edges: %v", err)
	}
	h.Unregister("sb1")
	if _, err := h.Plan(t.Context(), "run1", nil); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a plan of a sandbox that is gone: %v", err)
	}
}

// TestAHostilePlanIsBounded: what a resolver names is a guest's word. Many
// releases of one project, all of which require many of another, take no more
// memory than a table of them needs; and who no longer waits ends the work.
func TestAHostilePlanIsBounded(t *testing.T) {
	h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1))
	const many = 300
	var parents, children []door.File
	var versions []string
	var choices []planning.Choice
	for i := range many {
		v := fmt.Sprintf("%d.0", i+1)
		parents, children, versions = append(parents, wheel("parent", v)), append(children, wheel("child", v)), append(versions, v)
		choices = append(choices, choice("parent", v), choice("child", v))
	}
	h.shows(t, indexOf("parent", "d1", parents...))
	h.shows(t, indexOf("child", "d2", children...))
	must(t, h.EdgesOfIndex(t.Context(), "sb1", python("parent", ""), "d1", []door.IndexRequirement{{Name: "child", Versions: versions}}))
	out, err := h.Plan(t.Context(), "run1", choices)
	must(t, err)
	for _, r := range out.Releases {
		if r.Problem != "" || len(r.WantedBy) > 20 || r.Package.Name == "child" && len(r.WantedBy) == 0 {
			t.Fatalf("%s: wanted by %d, problem %q", r.Package, len(r.WantedBy), r.Problem)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Plan(gone, "run1", choices); !errors.Is(err, context.Canceled) {
		t.Errorf("a plan that nobody waits for: %v", err)
	}
}

func TestAPlanIsToldAsOne(t *testing.T) {
	h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1))
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	if r := h.records(t, audit.Started); len(r) != 1 || r[0].Detail["plan"] != "true" {
		t.Errorf("the started record: %+v", r)
	}
}

// asked are the asks that a plan filed.
type asked struct {
	Approvals

	asks []approval.Ask
	fail error
}

func (q *asked) Ask(_ context.Context, ask approval.Ask) (approval.Request, error) {
	q.asks = append(q.asks, ask)
	return approval.Request{ID: "ap-" + ask.Package.Name, State: approval.Pending}, q.fail
}

func (*asked) Grants(context.Context, pkgref.Ref, approval.Asker) ([]policy.Approval, string, error) {
	return nil, "", nil
}

func TestAPlanIsRequested(t *testing.T) {
	h := planHouse(t, strings.Replace(planPolicy, "DEFAULT", "hold", 1))
	h.shows(t, indexOf("rich", "d1", wheel("rich", "13.0")))
	h.shows(t, indexOf("requests", "d2", wheel("requests", "2.31.0")))
	out, err := h.Plan(t.Context(), "run1", []planning.Choice{choice("requests", "2.31.0"), choice("rich", "13.0"), choice("never", "1.0")})
	must(t, err)
	if err := h.RequestPlan(t.Context(), "run1", "charts", &out); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("without a queue: %v", err)
	}
	queue := &asked{}
	h.config.Approvals = queue
	must(t, h.RequestPlan(t.Context(), "run1", "charts", &out))
	if len(queue.asks) != 1 || out.Releases[1].Approval != "ap-rich" || out.Releases[0].Approval != "" {
		t.Fatalf("asks %+v, releases %+v", queue.asks, out.Releases)
	}
	ask := queue.asks[0]
	if ask.Because != "charts" || ask.Run != "run1" || ask.Policy != h.policy.Digest() || ask.User != "ann" || ask.Rule != "packages.default" ||
		len(ask.Files) != 1 || !slices.Equal(ask.Files[0].Digests, []string{"sha256:" + hexOf("rich13.0")}) || ask.Evidence.Published.IsZero() {
		t.Errorf("the ask: %+v", ask)
	}
	queue.fail = fault.New(fault.ErrForbidden, "full")
	out.Releases[1].Approval = ""
	must(t, h.RequestPlan(t.Context(), "run1", "", &out)) // the plan is worth reading all the same
	if rich := out.Releases[1]; rich.Approval != "" || !strings.HasSuffix(rich.Verdict.Reason, "; nobody is asked about it: full") {
		t.Errorf("a full queue: %+v", rich)
	}
	queue.fail = fault.New(fault.ErrUnavailable, "gone")
	if err := h.RequestPlan(t.Context(), "run1", "", &out); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a queue that fails: %v", err)
	}
}
