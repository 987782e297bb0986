package ledger

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Pull is how a run's clients are led to what a page withholds, as far as this can be known.
type Pull string

// The pulls. A record without one is of an earlier version, which found none out.
const (
	PullUnknown  Pull = "unknown"  // by nothing that was read: a command or a project asks for it
	PullMet      Pull = "met"      // what requires the project can have a release that is shown, as far as a client would choose it
	PullOptional Pull = "optional" // what lacks a release is installed without it
	PullStale    Pull = "stale"    // no release that a client would choose is known to require it
	PullUnmet    Pull = "unmet"    // a release that a client would choose lacks one
)

// Pull tells how clients are led to a project of which a page withholds something. lacking are
// the specifiers that no shown release satisfies; unmet, of PullUnmet, are those of them by which a release
// lacks one that a client would choose, a few, sorted.
func (l *Ledger) Pull(project pkgref.Ref, lacking map[string]bool) (pull Pull, unmet []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return newChooser(l).pullProject(project.Project(), func(specifier string) bool { return lacking[specifier] })
}

// Unmet are those of these projects, of which pages withhold something, that are PullUnmet by all that
// the run has read by now: a client reads a project's page once, and what it lacks there
// may be required by a page that it reads later. whole are those that are withheld wholly, of which there is no page.
// Projects for which too much would have to be compared are none of them. Each has the specifiers that Pull tells.
func (l *Ledger) Unmet(projects []pkgref.Ref, whole map[pkgref.Ref]bool) map[pkgref.Ref][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, all := newChooser(l), map[pkgref.Ref][]string{}
	left := mostTogether * maxCompared
	for _, project := range projects {
		if left < 0 || l.releases.Page(project) == nil && !whole[project] {
			continue
		}
		pull, unmet := c.pullProject(project, c.lacksVersion(project))
		if left -= maxCompared - c.left; pull == PullUnmet && c.left >= 0 {
			all[project] = unmet
		}
	}
	return all
}

// maxUnmet bounds the specifiers that are told of one project.
const maxUnmet = 8

// unmetBy are the specifiers by which releases that a client would choose lack one.
func (c *chooser) unmetBy(asks []ask, lacks func(specifier string) bool) (unmet []string) {
	for _, a := range asks {
		if len(unmet) < maxUnmet && !slices.Contains(unmet, a.specifier) && lacks(a.specifier) && !a.optional && c.chosen(a) {
			unmet = append(unmet, a.specifier)
		}
	}
	slices.Sort(unmet)
	return unmet
}

// mostTogether is how many times maxCompared may be compared for all projects together.
const mostTogether = 20

// lacksVersion tells of a specifier whether no release that a project's page shows satisfies it.
func (c *chooser) lacksVersion(project pkgref.Ref) func(specifier string) bool {
	found := map[string]bool{}
	return func(specifier string) bool {
		lacks, known := found[specifier]
		if !known {
			shown := c.versions(project)
			within, readable := pkgref.ParseRange(project.Ecosystem, specifier)
			lacks = len(shown) == 0 || readable && c.spendVersions(len(shown)) && !slices.ContainsFunc(shown, within.Match)
			found[specifier] = lacks
		}
		return lacks
	}
}

func (c *chooser) pullProject(project pkgref.Ref, lacks func(specifier string) bool) (pull Pull, unmet []string) {
	clear(c.known)
	c.left = maxCompared
	asks := c.asksFor(project)
	some := func(of func(a ask) bool) bool { return slices.ContainsFunc(asks, of) }
	switch {
	case len(asks) == 0:
		return PullUnknown, nil
	case !some(func(a ask) bool { return lacks(a.specifier) }):
		return PullMet, nil
	}
	if unmet = c.unmetBy(asks, lacks); len(unmet) > 0 {
		return PullUnmet, unmet
	}
	switch {
	case !some(func(a ask) bool { return lacks(a.specifier) && !a.optional }):
		return PullOptional, nil
	case some(func(a ask) bool { return !lacks(a.specifier) && !a.optional && c.chosen(a) }):
		return PullMet, nil
	}
	return PullStale, nil
}
