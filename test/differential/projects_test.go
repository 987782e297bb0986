package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	wants "github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// planner is a client that plans an installation.
type planner struct {
	ask    func(t *testing.T, dir string) askedAnswer
	places *strings.Replacer // of fakePlace and fakeRepository; nil: it asks none
}

// manager is a client that is asked which names it asks a registry for.
type manager struct {
	name      string
	ecosystem pkgref.Ecosystem
	few, many int
	start     func(t *testing.T) planner
	make      func(d dice) *madeProject
}

// Places in projects, which are those of the test's own server and of a repository on disk when a client reads them.
const (
	fakePlace      = "http://registry.example"
	fakeRepository = "file:///repository.example"
)

// write puts a project's files into a directory.
func (p *madeProject) write(t *testing.T, dir string, places *strings.Replacer) {
	t.Helper()
	for name, text := range p.files {
		if places != nil {
			text = places.Replace(text)
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *madeProject) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		fmt.Fprintf(&text, "--- %s\n%s\n", name, p.files[name])
	}
	return text.String()
}

// conditions completes an answer with names that may be asked for: those of conditions that need not be met, and those that a
// registry's packages brought.
func (p *madeProject) conditions(ecosystem pkgref.Ecosystem, theirs *askedAnswer) {
	has := func(names map[string]bool, name string) bool {
		canonical, _ := canonicalName(ecosystem, name)
		for one := range names {
			if c, ok := canonicalName(ecosystem, one); ok && c == canonical {
				return true
			}
		}
		return false
	}
	for name := range p.aliased {
		if p.plain[name] {
			theirs.May = append(theirs.May, askedName{Name: name})
		}
	}
	for _, name := range p.struck {
		theirs.May = append(theirs.May, askedName{Name: name})
	}
	for _, name := range p.may {
		if !has(p.firm, name) {
			theirs.May = append(theirs.May, askedName{Name: name})
		}
	}
	theirs.Names = slices.DeleteFunc(theirs.Names, func(n askedName) bool {
		firm := has(p.firm, n.Name) && theirs.Error == "" // one that gives up may have come to no more than what others bring
		inner := (strings.HasPrefix(n.Name, "inner-") || has(p.brought, n.Name)) && !firm
		if inner {
			theirs.May = append(theirs.May, n)
		}
		return inner
	})
}

// tellUntold says which names a client has asked for, before it gave up, that nothing is said of.
func tellUntold(ecosystem pkgref.Ecosystem, w *wants.Wants, roots []wants.Root, theirs askedAnswer) []string {
	return slices.DeleteFunc(tellAsked(ecosystem, w, roots, theirs), func(fault string) bool { return !strings.HasPrefix(fault, "nothing is said") })
}

// tellReasons says what was left out without a reason, or without its line.
func tellReasons(w *wants.Wants) (faults []string) {
	for _, l := range w.LeftOut() {
		if l.Why == "" || l.File == "" || l.Line == 0 && l.Text != "" {
			faults = append(faults, fmt.Sprintf("%q is left out without a line or a reason", l))
		}
	}
	return faults
}

// TestProjectsAreReadAsTheirClientsDo: of projects made at random, each name that the client itself asks a registry for is allowed, or named
// with its line and why it is not, and no other is allowed. The parts of npm, packaging and pip run in one process, for 100,000 projects in
// the long run; pnpm, uv and go are programs that start for each project, so that these are fewer.
func TestProjectsAreReadAsTheirClientsDo(t *testing.T) {
	t.Parallel()
	for _, m := range []manager{
		{"npm", pkgref.Node, 15, 10_000, startArborist, func(d dice) *madeProject { return d.nodeProject(false) }},
		{"pnpm", pkgref.Node, 6, 500, startPNPM, func(d dice) *madeProject { return d.nodeProject(true) }},
		{"uv", pkgref.Python, 10, 1_000, startUVProjects, dice.uvManifests},
		{"packaging", pkgref.Python, 40, 10_000, startPackaging("pyproject.toml", ""), dice.uvManifests},
		{"pip", pkgref.Python, 80, 80_000, startPackaging("requirements", "requirements.txt"), dice.requirementsManifest},
		{"go", pkgref.Go, 10, 1_000, startGo, dice.goModules},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.compare(t)
		})
	}
}

// mostShown is how many projects that are read in two ways a test shows.
const mostShown = 5

// rollAgain rolls, with the same projects in each short run: a new kind of them is for the long one to find.
func rollAgain(t *testing.T) dice {
	t.Helper()
	if os.Getenv("COFFERDAM_SEED") == "" && os.Getenv("COFFERDAM_LONG") == "" {
		return dice{rand.New(rand.NewPCG(1, 0))}
	}
	return roll(t)
}

// tally counts what came of a client's projects.
type tally struct{ read, refused, theirsRefused, odd int }

func (m manager) compare(t *testing.T) {
	t.Helper()
	d, client, n := rollAgain(t), m.start(t), rounds(m.few, m.many)
	top, sums := t.TempDir(), tally{}
	for i := range n {
		dir, p := filepath.Join(top, strconv.Itoa(i)), m.make(d)
		p.write(t, dir, client.places)
		m.one(t, client, dir, p, &sums)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if sums.odd == mostShown {
			return
		}
	}
	if t.Logf("%d read, %d refused by us, %d by the client", sums.read, sums.refused, sums.theirsRefused); sums.read < n/5 {
		t.Error("INCONCLUSIVE: four of five projects are refused")
	}
}

// one compares what is asked for by one project.
func (m manager) one(t *testing.T, client planner, dir string, p *madeProject, sums *tally) {
	t.Helper()
	w, roots, err := askedHere(projectOnDisk{dir: dir}, m.ecosystem, "", "")
	if err != nil {
		if sums.refused++; sums.refused <= mostShown {
			t.Logf("we refuse: %.300s", err)
		}
		if !strings.Contains(err.Error(), "can't be read: ") {
			t.Errorf("the refusal names no file: %v\n%s", err, p)
		}
		return
	}
	theirs := client.ask(t, dir)
	p.conditions(m.ecosystem, &theirs)
	faults := tellReasons(w)
	if theirs.Error != "" {
		if sums.theirsRefused++; sums.theirsRefused <= mostShown {
			t.Logf("the client refuses: %.600s", theirs.Error)
		}
		faults = append(faults, tellUntold(m.ecosystem, w, roots, theirs)...)
	} else {
		sums.read++
		faults = append(faults, tellAsked(m.ecosystem, w, roots, theirs)...)
	}
	if len(faults) > 0 {
		sums.odd++
		t.Errorf("%s (the client: %q)\nleft out: %v\n%s", strings.Join(faults, "\n"), theirs.Error, w.LeftOut(), p)
	}
}
