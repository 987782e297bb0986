package copies

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// coveredProject is a project whose virtual environment is covered in the sandboxes that have it.
type coveredProject struct {
	t                   *testing.T
	dir, venv, state    string
	program, recordFile string
	kept                *Blueprints
}

func newCoveredProject(t *testing.T) *coveredProject {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &coveredProject{t: t, dir: dir, venv: filepath.Join(dir, ".venv"), state: t.TempDir()}
	p.program, p.recordFile = filepath.Join(p.venv, "bin", "runsc"), filepath.Join(p.state, "written")
	p.make()
	p.restart()
	return p
}

func (p *coveredProject) make() {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.program), 0o755), os.WriteFile(p.program, nil, 0o755)); err != nil {
		p.t.Fatal(err)
	}
}

// makeAnew makes the environment anew, as a person does.
func (p *coveredProject) makeAnew() {
	p.t.Helper()
	if err := os.RemoveAll(p.venv); err != nil {
		p.t.Fatal(err)
	}
	p.make()
}

// restart has another daemon.
func (p *coveredProject) restart() {
	p.t.Helper()
	record, err := written.Open(p.recordFile)
	if err != nil {
		p.t.Fatal(err)
	}
	p.kept = NewBlueprints(p.state, p.t.TempDir(), record, slog.New(slog.DiscardHandler))
}

// begin makes a sandbox as it is made with a project whose environment is covered as it is now.
func (p *coveredProject) begin(id string) {
	p.t.Helper()
	at, err := hostpath.Open(p.dir, hostpath.Identity{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer at.Close()
	if err := p.kept.Keep(id, Blueprint{Spec: engine.Spec{Mounts: []engine.Mount{
		{Source: p.dir, Destination: "/w", Origin: at.ID},
		{Source: p.venv, Destination: "/w/.venv", ReadOnly: true, Covers: hostpath.MarkAt(p.venv)},
	}}}); err != nil {
		p.t.Fatal(err)
	}
}

// expect tells whether an agent could have written the program, as the daemon sees it, and by the record alone, as
// everybody else does.
func (p *coveredProject) expect(when string, want bool) {
	p.t.Helper()
	recorded, err := written.Read(p.recordFile)
	if err != nil {
		p.t.Fatal(err)
	}
	for who, trees := range map[string][]hostpath.Tree{"the daemon": p.kept.Writable(), "the record": recorded} {
		if _, theirs, err := hostpath.Within(p.program, trees); err != nil || theirs != want {
			p.t.Errorf("%s: %s says %v, %v: %+v", when, who, theirs, err, trees)
		}
		if _, theirs, err := hostpath.Within(filepath.Join(p.dir, "src"), trees); err != nil || !theirs {
			p.t.Errorf("the control: %s: %s says that nobody could write beside it: %v", when, who, err)
		}
	}
}

// TestCoversAreLostWhileASandboxRuns: what a person makes anew while a sandbox runs lies open to it. The controls
// are those in which nothing runs at that time.
func TestCoversAreLostWhileASandboxRuns(t *testing.T) {
	t.Parallel()
	lives := func(string) bool { return true }
	gone := func(string) bool { return false }
	for name, run := range map[string]func(p *coveredProject){
		"while it runs": func(p *coveredProject) {
			p.begin("a")
			p.expect("it runs", false)
			p.makeAnew()
			p.expect("made anew", true)
			p.kept.Forget("a")
			p.expect("it has ended", true)
			p.makeAnew()
			p.expect("made anew again", true)
		},
		"control: after its end": func(p *coveredProject) {
			p.begin("a")
			p.kept.Forget("a")
			p.makeAnew()
			p.expect("made anew", false)
			p.begin("b")
			p.expect("another runs", false)
			p.kept.Forget("b")
			p.makeAnew()
			p.expect("and has ended", false)
		},
		"another has ended": func(p *coveredProject) {
			p.begin("a")
			p.begin("b")
			p.kept.Forget("a")
			p.expect("one runs", false)
			p.makeAnew()
			p.expect("made anew", true)
		},
		"control: both have ended": func(p *coveredProject) {
			p.begin("a")
			p.begin("b")
			p.kept.Forget("a")
			p.kept.Forget("b")
			p.makeAnew()
			p.expect("made anew", false)
		},
		"put back after another began": func(p *coveredProject) {
			p.begin("a")
			if err := os.Rename(p.venv, p.venv+".was"); err != nil {
				p.t.Fatal(err)
			}
			p.make()
			p.begin("b")
			p.kept.Forget("b")
			p.kept.Forget("a")
			p.restart()
			p.expect("both have ended", true)
		},
		"put back before its end": func(p *coveredProject) {
			p.begin("a")
			if err := os.Rename(p.venv, p.venv+".was"); err != nil {
				p.t.Fatal(err)
			}
			other := &coveredProject{t: p.t, dir: p.t.TempDir(), venv: "/none", kept: p.kept}
			other.begin("b") // has the record look
			if err := os.Rename(p.venv+".was", p.venv); err != nil {
				p.t.Fatal(err)
			}
			p.kept.Forget("a")
			p.expect("it has ended", true)
		},
		"another daemon": func(p *coveredProject) {
			p.begin("a")
			p.restart()
			p.kept.Sweep(lives)
			p.expect("adopted", false)
			p.makeAnew()
			p.expect("made anew", true)
		},
		"while no daemon runs": func(p *coveredProject) {
			p.begin("a")
			p.makeAnew()
			p.restart()
			p.expect("before it is adopted", true)
			p.kept.Sweep(gone)
			p.expect("it ended meanwhile", true)
		},
		"control: it ended while no daemon ran": func(p *coveredProject) {
			p.begin("a")
			p.restart()
			p.kept.Sweep(gone)
			p.makeAnew()
			p.expect("made anew", false)
		},
		"control: while it is paused": func(p *coveredProject) {
			p.begin("a")
			body := p.kept.Following("a", still{})
			must(p.t, body.Freeze(p.t.Context(), ""))
			p.makeAnew()
			p.expect("paused", false)
			p.restart()
			p.kept.Sweep(lives)
			p.expect("paused, and adopted", false)
			must(p.t, p.kept.Following("a", still{}).Thaw(p.t.Context(), ""))
			p.expect("it goes on", false)
		},
		"after a pause": func(p *coveredProject) {
			p.begin("a")
			body := p.kept.Following("a", still{})
			must(p.t, body.FreezeFiles(p.t.Context(), ""))
			must(p.t, body.Thaw(p.t.Context(), ""))
			p.makeAnew()
			p.expect("it goes on", true)
			p.kept.Forget("a")
			p.expect("it has ended", true)
		},
		"after a pause that could not be noted": func(p *coveredProject) {
			p.begin("a")
			path := p.kept.pathOf("a")
			blocked := path + ".was"
			must(p.t, os.Rename(path, blocked))
			must(p.t, os.Mkdir(path, 0o700)) // neither read nor written
			p.kept.settleSandbox("a")
			if err := p.kept.Following("a", still{}).Thaw(p.t.Context(), ""); err == nil {
				p.t.Error("it goes on, and nobody knows with which covers")
			}
			must(p.t, os.Remove(path))
			must(p.t, os.Rename(blocked, path)) // as it was before the pause
			must(p.t, p.kept.Following("a", still{}).Thaw(p.t.Context(), ""))
			p.expect("it goes on", false)
			p.makeAnew()
			p.expect("made anew", true)
		},
		"a freeze that failed": func(p *coveredProject) {
			p.begin("a")
			if err := p.kept.Following("a", still{errors.New("no")}).Freeze(p.t.Context(), ""); err == nil {
				p.t.Error("it froze")
			}
			p.makeAnew()
			p.expect("it runs on", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newCoveredProject(t)
			run(p)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// still is a Freezable that does nothing.
type still struct{ err error }

func (s still) Freeze(context.Context, string) error      { return s.err }
func (s still) FreezeFiles(context.Context, string) error { return s.err }
func (s still) Thaw(context.Context, string) error        { return s.err }
