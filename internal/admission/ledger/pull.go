package ledger

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Pull is how a run's clients are led to what a page withholds, as far as this can be known.
type Pull string

// The pulls.
const (
	PullUnknown  Pull = ""         // by nothing that was read: a command or a project asks for it
	PullMet      Pull = "met"      // what requires the project can have a release that is shown, as far as a client would choose it
	PullOptional Pull = "optional" // what lacks a release is installed without it
	PullStale    Pull = "stale"    // no release that a client would choose is known to require it
	PullUnmet    Pull = "unmet"    // a release that a client would choose lacks one
)

// maxChosen bounds the requirements that are looked at to find out what a client would choose.
const maxChosen = 5_000

// Pull tells how clients are led to a project of which a page withholds something. lacking are
// the edges to it that no shown release satisfies.
func (l *Ledger) Pull(project pkgref.Ref, lacking []policy.Edge) Pull {
	l.mu.Lock()
	defer l.mu.Unlock()
	edges := slices.DeleteFunc(slices.Clone(l.edges.byPackage[project.Project()].List), func(e policy.Edge) bool { return e.Parent.Name == project.Name })
	c := chooser{ledger: l, known: map[pkgref.Ref]bool{}, left: maxChosen}
	chosen := func(lacks bool) func(policy.Edge) bool {
		return func(e policy.Edge) bool {
			return slices.Contains(lacking, e) == lacks && !e.Optional && c.takes(e.Parent)
		}
	}
	stale := func(e policy.Edge) bool { return !e.Optional && slices.Contains(lacking, e) }
	switch {
	case len(edges) == 0:
		return PullUnknown
	case len(lacking) == 0:
		return PullMet
	case slices.ContainsFunc(edges, chosen(true)):
		return PullUnmet
	case !slices.ContainsFunc(edges, stale):
		return PullOptional
	case slices.ContainsFunc(edges, chosen(false)):
		return PullMet
	}
	return PullStale
}

// chooser finds out which releases a client would choose that takes the highest one within
// each requirement. What it can't find out, a client may choose.
type chooser struct {
	ledger *Ledger // whose mu is held
	known  map[pkgref.Ref]bool
	left   int // requirements that are still looked at
}

func (c *chooser) takes(release pkgref.Ref) bool {
	if taken, known := c.known[release]; known {
		return taken
	}
	c.known[release] = false // that a release leads to itself is no reason to choose it
	taken := c.look(release)
	c.known[release] = taken
	return taken
}

// look finds it out. Where pages say nothing of requirements, those that are known were read of
// a release by itself, which is what clients do of the one that they choose.
func (c *chooser) look(release pkgref.Ref) bool {
	project := release.Project()
	versions := c.ledger.releases.Page(project).parsed(project.Ecosystem)
	if len(versions) == 0 || !project.Ecosystem.Traits().RequirementsOnPages {
		return true
	}
	if highest(versions, nil) == release.Version {
		return true
	}
	for _, e := range c.ledger.edges.byPackage[project].List {
		if c.left--; c.left < 0 {
			return true
		}
		within, readable := pkgref.ParseRange(project.Ecosystem, e.Specifier)
		if readable && highest(versions, within.Match) == release.Version && c.takes(e.Parent) {
			return true
		}
	}
	return false
}

// parsed are the versions of the releases that the page shows.
func (p *Page) parsed(e pkgref.Ecosystem) []pkgref.Version {
	if p == nil {
		return nil
	}
	versions := make([]pkgref.Version, 0, len(p.versions))
	for _, text := range p.versions {
		if v, ok := pkgref.ParseVersion(e, text); ok {
			versions = append(versions, v)
		}
	}
	return versions
}

// highest is the highest release that is within (nil: whatever), a stable one if there is any;
// "" if none is.
func highest(versions []pkgref.Version, within func(pkgref.Version) bool) string {
	var best pkgref.Version
	for _, v := range versions {
		if within != nil && !within(v) {
			continue
		}
		if !best.Readable() || v.Stable() && !best.Stable() || v.Stable() == best.Stable() && v.CompareSpelled(best) > 0 {
			best = v
		}
	}
	return best.String()
}
