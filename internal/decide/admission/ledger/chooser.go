package ledger

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// maxCompared bounds the versions that are compared to answer one question: the
// pages and what they require are a publisher's.
const maxCompared = 200_000

// chooser finds out which releases a client would choose that takes the highest one within
// each requirement. A release of which it can't find this out may be chosen. It goes by all that
// was read and not by edges, of which equal ones of many releases are one.
type chooser struct {
	ledger *Ledger              // whose mu is held
	asks   map[pkgref.Ref][]ask // by the project that is asked for; nil: not looked for yet
	pages  map[pkgref.Ref][]pkgref.Version
	leads  map[pkgref.Ref]map[string][]ask // by project and version: those that take this one
	known  map[pkgref.Ref]bool             // of one question: what leads back to a release is no reason to choose it
	tops   map[pkgref.Ref]string           // the highest release that a project's page shows
	left   int                             // versions that are still compared; below 0: no more are
}

// ask is a requirement of some releases of a project.
type ask struct {
	by        pkgref.Ref // the project; it has a version if a client had that one
	place     int        // in what its page lists
	specifier string
	optional  bool
}

func newChooser(l *Ledger) *chooser {
	return &chooser{
		ledger: l, pages: map[pkgref.Ref][]pkgref.Version{}, leads: map[pkgref.Ref]map[string][]ask{},
		known: map[pkgref.Ref]bool{}, tops: map[pkgref.Ref]string{}, left: maxCompared,
	}
}

// spendVersions tells whether so many versions may still be compared.
func (c *chooser) spendVersions(versions int) bool {
	c.left -= versions
	return c.left >= 0
}

// asksFor are the requirements of a project, but for its own, and for those of extras that nothing asks for.
// Where pages say nothing of requirements, those that are known were read of a release by
// itself, which is what clients do of the one that they choose.
func (c *chooser) asksFor(project pkgref.Ref) (asks []ask) {
	if project.Ecosystem.Traits().RequirementsOnPages {
		c.lookAtPages()
		return c.asks[project]
	}
	for _, e := range c.ledger.edges.byPackage[project].List {
		if e.Parent.Name != project.Name && e.Unasked == "" {
			asks = append(asks, ask{by: e.Parent, specifier: e.Specifier, optional: e.Optional})
		}
	}
	return asks
}

func (c *chooser) lookAtPages() {
	if c.asks != nil {
		return
	}
	c.asks = map[pkgref.Ref][]ask{}
	add := func(name string, a ask) {
		if name != a.by.Name {
			to := pkgref.Ref{Ecosystem: a.by.Ecosystem, Name: name}
			c.asks[to] = append(c.asks[to], a)
		}
	}
	for project, r := range c.ledger.required {
		for i, q := range r.list {
			add(q.Name, ask{by: project, place: i, specifier: q.Specifier, optional: q.Optional})
		}
		for version, own := range r.own {
			for _, q := range own {
				add(q.Name, ask{by: pkgref.Ref{Ecosystem: project.Ecosystem, Name: project.Name, Version: version}, specifier: q.Specifier, optional: q.Optional})
			}
		}
	}
}

// chosen tells whether a client would choose a release that asks so.
func (c *chooser) chosen(a ask) bool {
	if !c.spendVersions(1) {
		return true
	}
	versions := c.versions(a.by)
	if a.by.Version != "" || len(versions) == 0 {
		return true
	}
	r := c.ledger.required[a.by]
	asks := func(version string) bool {
		_, found := slices.BinarySearch(r.places[version], a.place) // they stand in order
		return found
	}
	top, known := c.tops[a.by]
	if !known {
		if !c.spendVersions(len(versions)) {
			return true
		}
		top = highest(versions, nil)
		c.tops[a.by] = top
	}
	if asks(top) {
		return true
	}
	leads, found := c.leadsTo(a.by)
	if !found || !c.spendVersions(len(leads)) {
		return true
	}
	for version, led := range leads {
		release := pkgref.Ref{Ecosystem: a.by.Ecosystem, Name: a.by.Name, Version: version}
		if c.known[release] || !asks(version) {
			continue
		}
		c.known[release] = true
		if slices.ContainsFunc(led, c.chosen) {
			return true
		}
	}
	return false
}

// leadsTo are the requirements of a project by the version that a client takes for them; false: there
// are too many to look at.
func (c *chooser) leadsTo(project pkgref.Ref) (map[string][]ask, bool) {
	if leads, known := c.leads[project]; known {
		return leads, true
	}
	versions, leads, takes := c.versions(project), map[string][]ask{}, map[string]string{}
	for _, a := range c.asksFor(project) {
		version, known := takes[a.specifier]
		if !known {
			if !c.spendVersions(len(versions)) {
				return nil, false
			}
			if within, readable := pkgref.ParseRange(project.Ecosystem, a.specifier); readable {
				version = highest(versions, within.Match)
			}
			takes[a.specifier] = version
		}
		if version != "" {
			leads[version] = append(leads[version], a)
		}
	}
	c.leads[project] = leads
	return leads, true
}

// versions are those of the releases that a project's page shows.
func (c *chooser) versions(project pkgref.Ref) []pkgref.Version {
	project = project.Project()
	versions, known := c.pages[project]
	if !known {
		if p := c.ledger.releases.Page(project); p != nil {
			versions = make([]pkgref.Version, 0, len(p.versions))
			for _, text := range p.versions {
				if v, ok := pkgref.ParseVersion(project.Ecosystem, text); ok {
					versions = append(versions, v)
				}
			}
		}
		c.pages[project] = versions
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
