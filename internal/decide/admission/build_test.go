package admission

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// shop builds as a function says, and remembers its jobs.
type shop struct {
	do func(ctx context.Context, to io.Writer) error

	mu   sync.Mutex
	jobs []building.Job
}

// Make implements building.Maker.
func (s *shop) Make(ctx context.Context, job building.Job, to io.Writer) (building.Origin, error) {
	s.mu.Lock()
	s.jobs = append(s.jobs, job)
	s.mu.Unlock()
	return building.Origin{Run: "build-1", File: "docopt-0.6.2-py2.py3-none-any.whl", Template: "debian sha256:t", Engine: "strong"}, s.do(ctx, to)
}

const buildsApart = `
packages: { default: deny, sdist: throwaway }
allowed_packages: { python: [ { name: docopt }, { name: parent, with_dependencies: true } ] }
network_allowlist: [ api.example.com ]
`

// newBuildingHouse is a house whose policy has source distributions built apart.
func newBuildingHouse(t *testing.T, text string, do func(context.Context, io.Writer) error) (*house, *shop) {
	t.Helper()
	h, s := newHouse(t, Limits{}), &shop{do: do}
	h.Unregister("sb1")
	h.policy = parse(t, text)
	h.config.Workshops, h.config.BuildDir = s, t.TempDir()
	h.Builds = newBuilds(h.Controller)
	t.Cleanup(func() { h.Builds.desk.Close() })
	must(t, h.Register(h.run()))
	return h, s
}

func writes(text string) func(context.Context, io.Writer) error {
	return func(_ context.Context, to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	}
}

// toBuild asks for a build of a release's source distribution.
func toBuild(name, version string) door.BuildAsk {
	sum := hexOf("source of " + name)
	file := door.File{
		Name: name + "-" + version + "-0cofferdam-py3-none-any.whl", Version: version, Kind: policy.KindBuilt,
		Digest: "sha256:" + sum, Published: noon().AddDate(-1, 0, 0),
	}
	return door.BuildAsk{
		FileAsk: door.FileAsk{Sandbox: "sb1", Package: python(name, version), File: file, SourceURL: "https://files.example/" + file.Name},
		Source:  name + "-" + version + ".tar.gz", SHA256: sum, URL: "https://files.example/" + name + "-" + version + ".tar.gz",
	}
}

// TestNothingIsReadWhereNothingIsBuilt: a run whose daemon makes no wheels is told so.
func TestNothingIsReadWhereNothingIsBuilt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Limits{})
	if _, err := h.ReadBuilt(t.Context(), door.ReadBuiltAsk{Sandbox: "sb1", SHA256: strings.Repeat("a", 64)}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("it is %v", err)
	}
}

// TestABuildIsOnRecord: with the source's digest and its own, and it can be read.
func TestABuildIsOnRecord(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, buildsApart, writes("a wheel"))
	owner, err := h.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: python("docopt", "")})
	must(t, err)
	if owner.Builder == "" {
		t.Fatal("the run has no builder")
	}
	ask := toBuild("docopt", "0.6.2")
	a, err := h.Build(t.Context(), ask)
	must(t, err)
	if a.Built == nil {
		t.Fatalf("nothing was built: %+v", a)
	}
	piece, err := h.ReadBuilt(t.Context(), door.ReadBuiltAsk{Sandbox: "sb1", SHA256: a.Built.SHA256})
	if err != nil || string(piece) != "a wheel" {
		t.Errorf("it is %q, %v", piece, err)
	}
	if _, err := h.ReadBuilt(t.Context(), door.ReadBuiltAsk{Sandbox: "sb9", SHA256: a.Built.SHA256}); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a stranger reads it: %v", err)
	}
	built := h.records(t, audit.Built)
	if len(built) != 1 || built[0].Package != "docopt" || built[0].SHA256 != a.Built.SHA256 || built[0].File != ask.File.Name ||
		built[0].Detail[records.DetailSourceDigest] != "sha256:"+ask.SHA256 || built[0].Detail[records.DetailSource] != ask.Source || built[0].Detail[records.DetailBuildRun] != "build-1" {
		t.Errorf("on record is %+v", built)
	}
	job := s.jobs[0]
	if job.Sandbox != "sb1" || job.URL != ask.URL || job.SHA256 != ask.SHA256 || job.Policy.MakesApart(policy.KindBuilt, ask.Package) || len(job.Policy.NetworkAllowlist()) != 0 {
		t.Errorf("the job was %+v", job)
	}
	served, err := h.Serve(t.Context(), door.ServeAsk{FileAsk: ask.FileAsk, Bytes: door.Bytes{SHA256: a.Built.SHA256, Size: a.Built.Size}})
	must(t, err)
	if !served.Decision.Admitted() {
		t.Errorf("it is not served: %+v", served)
	}
}

// TestOnlyWhatIsAdmittedIsBuilt: a refused name, another kind of file, another source than
// the index's, and a run whose policy builds nothing reach no workshop.
func TestOnlyWhatIsAdmittedIsBuilt(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, buildsApart, writes("a wheel"))
	other := toBuild("docopt", "0.6.2")
	other.SHA256 = hexOf("something else")
	kind := toBuild("docopt", "0.6.2")
	kind.File.Kind = policy.KindSdist
	for name, ask := range map[string]door.BuildAsk{"on no list": toBuild("other", "1.0"), "another source": other, "another kind": kind} {
		if a, err := h.Build(t.Context(), ask); a.Built != nil || err == nil && a.Decision.Allowed() {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if len(s.jobs) != 0 {
		t.Errorf("%d were built", len(s.jobs))
	}
	deny, d := newBuildingHouse(t, "packages: { default: allow, sdist: deny }\n", writes("a wheel"))
	if a, err := deny.Build(t.Context(), toBuild("docopt", "0.6.2")); err != nil || a.Decision.Allowed() || len(d.jobs) != 0 {
		t.Errorf("under sdist: deny: %+v, %v", a, err)
	}
	plain, _ := newBuildingHouse(t, "packages: { default: allow, sdist: allow }\n", writes("a wheel"))
	owner, err := plain.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: python("docopt", "")})
	if err != nil || owner.Builder != "" {
		t.Errorf("under sdist: allow there is a builder: %+v, %v", owner, err)
	}
}

// TestAFailedBuildIsARefusal: with the last line of what it wrote, harmless, and all of it
// on record; after some tries it is built no more.
func TestAFailedBuildIsARefusal(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, buildsApart, func(context.Context, io.Writer) error {
		return &building.Failure{Sentence: "its build failed", Output: "collecting\n\x1b[31merror: no compiler\u202e\n", Run: "build-1"}
	})
	for range maxAttempts + 2 {
		a, err := h.Build(t.Context(), toBuild("docopt", "0.6.2"))
		must(t, err)
		if a.Built != nil || a.Decision.Effect != policy.Deny || a.Decision.Rule != ruleBuild || a.RequestID == "" {
			t.Fatalf("it is %+v", a)
		}
		if strings.ContainsAny(a.Decision.Reason, "\x1b\u202e") {
			t.Errorf("the reason is %q", a.Decision.Reason)
		}
	}
	if len(s.jobs) != maxAttempts {
		t.Errorf("it was tried %d times", len(s.jobs))
	}
	blocked := h.records(t, audit.Blocked)
	if len(blocked) == 0 || !strings.Contains(blocked[0].Reason, `its build failed: "\x1b[31merror: no compiler\u202e"; on the host, see: cofferdam why --run build-1`) ||
		!strings.Contains(blocked[0].Detail[records.DetailBuildOutput], "collecting") {
		t.Errorf("on record is %+v", blocked)
	}
	refusals, err := h.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || !slices.ContainsFunc(refusals, func(r door.Refusal) bool { return strings.Contains(r.Reason, "no compiler") }) {
		t.Errorf("why tells %+v, %v", refusals, err)
	}
}

// TestABuildEndsWithItsRun: when nobody else wants it.
func TestABuildEndsWithItsRun(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	h, _ := newBuildingHouse(t, buildsApart, func(ctx context.Context, _ io.Writer) error {
		close(began)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	done := make(chan error, 1)
	go func() {
		_, err := h.Build(t.Context(), toBuild("docopt", "0.6.2"))
		done <- err
	}()
	<-began
	h.Unregister("sb1")
	<-ended
	if err := <-done; err == nil {
		t.Error("the build came to something")
	}
}

// TestAWorkshopHasItsSource and no other source distribution, and builds nothing itself.
func TestAWorkshopHasItsSource(t *testing.T) {
	t.Parallel()
	h, _ := newBuildingHouse(t, buildsApart, writes("a wheel"))
	ask := toBuild("dep", "1.0") // on no list: the run that wants it built has it by an edge
	source := building.Source{Package: ask.Package, Makes: policy.KindBuilt, File: ask.Source, Digest: ask.File.Digest, SHA256: ask.SHA256}
	must(t, h.Register(Run{Sandbox: "ws", Run: "build-1", Policy: h.policy.Apart(), Source: &source}))
	file := func(name string, change func(*door.FileAsk)) door.JudgeAsk {
		f := door.FileAsk{
			Sandbox: "ws", Package: python(name, "1.0"), SourceURL: "https://files.example/" + name,
			File: door.File{Name: name + "-1.0.tar.gz", Version: "1.0", Kind: policy.KindSdist, Digest: "sha256:" + ask.SHA256, Published: noon().AddDate(-1, 0, 0)},
		}
		change(&f)
		return door.JudgeAsk{FileAsk: f}
	}
	for name, tt := range map[string]struct {
		ask   door.JudgeAsk
		given bool
	}{
		"its source":      {file("dep", func(*door.FileAsk) {}), true},
		"other bytes":     {file("dep", func(f *door.FileAsk) { f.File.Digest = "sha256:" + hexOf("x") }), false},
		"another project": {file("docopt", func(*door.FileAsk) {}), false},
		"something built": {file("docopt", func(f *door.FileAsk) { f.File.Kind = policy.KindBuilt }), false},
		"a wheel of it":   {file("dep", func(f *door.FileAsk) { f.File.Kind = policy.KindWheel }), false},
		"another sandbox": {file("dep", func(f *door.FileAsk) { f.Sandbox = "sb1" }), false},
		"a listed wheel":  {file("docopt", func(f *door.FileAsk) { f.File.Kind = policy.KindWheel }), true},
	} {
		if a, err := h.Judge(t.Context(), tt.ask); err != nil || a.Decision.Allowed() != tt.given {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	owner, err := h.Owner(t.Context(), door.OwnerAsk{Sandbox: "ws", Package: python("dep", ""), MayWalk: true})
	if err != nil || owner.Builder != "" || owner.Unreached {
		t.Errorf("its owner is %+v, %v", owner, err)
	}
	proposal := door.ProposalAsk{Sandbox: "ws", Because: "please", Items: []door.ProposedAsk{{Package: python("docopt", "1.0")}}}
	if out, err := h.Propose(t.Context(), proposal); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("it speaks to people: %+v, %v", out, err)
	}
	proposal.Sandbox = "sb1"
	if _, err := h.Propose(t.Context(), proposal); err != nil {
		t.Errorf("the run does not: %v", err) // the control
	}
	if a, err := h.Name(t.Context(), door.NameAsk{Sandbox: "ws", Name: "api.example.com"}); err != nil || a.Answer.Decision.Allowed() {
		t.Errorf("it reaches a host: %+v, %v", a, err)
	}
	if a, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "api.example.com"}); err != nil || !a.Answer.Decision.Allowed() {
		t.Errorf("the run does not: %+v, %v", a, err) // the control
	}
}

// TestAPlanBuildsWhatIsAllowed and nothing that would wait for a person.
func TestAPlanBuildsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, strings.Replace(buildsApart, "default: deny", "default: hold", 1), writes("a wheel"))
	run := h.run()
	run.Sandbox, run.Run, run.Plan = "plan", "plan1", true
	must(t, h.Register(run))
	for name, built := range map[string]bool{"docopt": true, "other": false} {
		ask := toBuild(name, "0.6.2")
		ask.Sandbox = "plan"
		a, err := h.Build(t.Context(), ask)
		if err != nil || (a.Built != nil) != built {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if len(s.jobs) != 1 {
		t.Errorf("%d were built", len(s.jobs))
	}
}
