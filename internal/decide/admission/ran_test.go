package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const scriptsApart = `
packages: { default: deny, install_scripts: throwaway }
allowed_packages:
  node: [ { name: esbuild, with_dependencies: true }, { name: husky, install_scripts: true } ]
  python: [ { name: docopt } ]
`

// toRun asks for a release's install scripts to be run.
func toRun(name string) door.BuildAsk {
	file := door.File{
		Name: name + "-1.0.0.0cofferdam.tgz", Version: "1.0.0", Kind: policy.KindRan,
		Digest: "sha512:" + hexOf(name) + hexOf(name), Published: noon().AddDate(-1, 0, 0),
	}
	return door.BuildAsk{
		FileAsk: door.FileAsk{Sandbox: "sb1", Package: node(name, "1.0.0"), File: file, SourceURL: "https://registry.example/" + file.Name},
		Source:  name + "-1.0.0.tgz", SHA256: hexOf("bytes of " + name), URL: "https://registry.example/" + name + "/-/" + name + "-1.0.0.tgz",
	}
}

// TestScriptsThatRanAreOnRecord: with what was published, and nothing else is made under
// their word.
func TestScriptsThatRanAreOnRecord(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, scriptsApart, writes("a package"))
	ask := toRun("esbuild")
	a, err := h.Build(t.Context(), ask)
	must(t, err)
	if a.Built == nil || len(s.jobs) != 1 {
		t.Fatalf("nothing was made: %+v", a)
	}
	built := h.records(t, audit.Built)
	if len(built) != 1 || built[0].Rule != "packages.install_scripts" || built[0].File != ask.File.Name || built[0].Detail[records.DetailSource] != ask.Source {
		t.Errorf("on record is %+v", built)
	}
	if job := s.jobs[0]; job.Makes != policy.KindRan || job.Digest != ask.File.Digest || job.Through != "allowed_packages.node.esbuild" || job.Policy.MakesApart(policy.KindRan, ask.Package) {
		t.Errorf("the job was %+v", job)
	}
	for name, ask := range map[string]door.BuildAsk{"of an entry that has them run in the sandbox": toRun("husky"), "on no list": toRun("evil"), "a source distribution": toBuild("docopt", "0.6.2")} {
		if a, err := h.Build(t.Context(), ask); err != nil || a.Built != nil || a.Decision.Allowed() {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if len(s.jobs) != 1 {
		t.Errorf("%d were made", len(s.jobs))
	}
	owner, err := h.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node("esbuild", "")})
	if err != nil || owner.Builder == "" || len(owner.Makes) != 1 || owner.Makes[0] != policy.KindRan {
		t.Errorf("its owner is %+v, %v", owner, err)
	}
	for _, project := range []door.OwnerAsk{{Sandbox: "sb1", Package: node("husky", "")}, {Sandbox: "sb1", Package: python("docopt", "")}} {
		if owner, err := h.Owner(t.Context(), project); err != nil || len(owner.Makes) > 0 && owner.Makes[0] != policy.KindRan || project.Package.Name == "husky" && owner.Builder != "" {
			t.Errorf("of %s it is %+v, %v", project.Package, owner, err)
		}
	}
}

// TestOneWordIsNotTheOther: where source distributions may be built in the run itself, nothing
// is made of them because scripts run apart.
func TestOneWordIsNotTheOther(t *testing.T) {
	t.Parallel()
	h, s := newBuildingHouse(t, "packages: { default: allow, sdist: allow, install_scripts: throwaway }\n", writes("a wheel"))
	if a, err := h.Build(t.Context(), toBuild("docopt", "0.6.2")); err != nil || a.Built != nil || len(s.jobs) != 0 {
		t.Errorf("%+v, %v, %d jobs", a, err, len(s.jobs))
	}
	if a, err := h.Build(t.Context(), toRun("esbuild")); err != nil || a.Built == nil {
		t.Errorf("scripts do not run: %+v, %v", a, err) // the control
	}
}

// TestAWorkshopForScripts has the package as it was published, and what that requires through
// the entry by which the run has it. Scripts of these may run there.
func TestAWorkshopForScripts(t *testing.T) {
	t.Parallel()
	h, _ := newBuildingHouse(t, scriptsApart, writes("a package"))
	ask := toRun("wrapped") // on no list: the run has it by an edge
	judge := func(sandbox, name, digest string, scripts bool) policy.Decision {
		t.Helper()
		a, err := h.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{
			Sandbox: sandbox, Package: node(name, "1.0.0"), SourceURL: "https://registry.example/" + name,
			File: door.File{Name: name + "-1.0.0.tgz", Version: "1.0.0", Kind: policy.KindPackage, Digest: digest, Scripts: scripts, Published: noon().AddDate(-1, 0, 0)},
		}})
		must(t, err)
		return a.Decision
	}
	shop := func(id, through string) {
		source := building.Source{Package: ask.Package, Makes: policy.KindRan, File: ask.Source, Digest: ask.File.Digest, SHA256: ask.SHA256, Through: through}
		must(t, h.Register(Run{Sandbox: id, Run: "build-" + id, Policy: h.policy.Apart(), Source: &source}))
		if d := judge(id, "wrapped", "sha512:"+hexOf("x")+hexOf("x"), true); d.Allowed() {
			t.Errorf("%s: other bytes are %+v", id, d)
		}
		if d := judge(id, "wrapped", ask.File.Digest, true); !d.Allowed() || d.Rule != "packages.install_scripts" {
			t.Errorf("%s: its source is %+v", id, d)
		}
		must(t, h.Edges(t.Context(), id, ask.Package, []door.Requirement{{Name: "dep"}}))
	}
	shop("ws", "allowed_packages.node.esbuild")
	shop("alone", "")
	if d := judge("ws", "dep", "sha512:"+hexOf("dep")+hexOf("dep"), true); !d.Allowed() {
		t.Errorf("what it requires is %+v", d)
	}
	if d := judge("alone", "dep", "sha512:"+hexOf("dep")+hexOf("dep"), true); d.Allowed() {
		t.Errorf("what it requires, where no entry admits that, is %+v", d)
	}
	if d := judge("sb1", "esbuild", "sha512:"+hexOf("e")+hexOf("e"), true); d.Allowed() {
		t.Errorf("in the run a script is %+v", d)
	}
}
