package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Limits of a walk from the policy's entries to what they require.
const (
	maxBatch    = 16               // projects that are read at one time
	maxWalked   = 3_000            // projects of a run, and of
	maxWalkedBy = 400              // these such as only older releases lead to
	maxDepth    = 64               // requirements from an entry
	maxRounds   = 8                // in which ever more releases of a project are read
	walkedFor   = 10 * time.Minute // after which a page is read again
	maxHints    = 16               // versions of a project that clients asked for
)

// walk is what a run's walks have read. The tenant's mu guards it.
type walk struct {
	asked  map[pkgref.Ref][]string // projects that clients asked for, with versions
	visits map[pkgref.Ref]*visit
	mains  map[pkgref.Ref]*mains
	aside  int // visits that only older releases led to
	// loose are the ecosystems in which a client asked for what nothing read required:
	// it knows its versions from elsewhere.
	loose map[pkgref.Ecosystem]bool
	// bounds are what kept a walk to a project from reading on, in words.
	bounds map[pkgref.Ref]string
}

// visit is when and with what a project was given out to be read.
type visit struct {
	at     time.Time
	edges  string // the epoch of those that lead to it
	hints  int
	depth  int
	rounds int
	wider  bool // more of its releases were read since nothing required what was wanted
}

func newWalk() walk {
	return walk{asked: map[pkgref.Ref][]string{}, visits: map[pkgref.Ref]*visit{}, mains: map[pkgref.Ref]*mains{}, loose: map[pkgref.Ecosystem]bool{}, bounds: map[pkgref.Ref]string{}}
}

// wants notes what a client asks for.
func (w *walk) wants(project pkgref.Ref, version string) {
	versions, known := w.asked[project]
	if !known && len(w.asked) >= maxWalked || len(versions) >= maxHints || slices.Contains(versions, version) {
		return
	}
	if version != "" {
		versions = append(versions, version)
	}
	w.asked[project] = versions
}

// How soon a project is read: what clients ask for, and what the newest releases
// require, leads to most of what lockfiles pin.
const (
	rankAsked = iota
	rankMain
	rankAside  // only other releases lead to it
	rankAnew   // it was read, and may show more now
	rankDeeper // a release of it requires what is wanted, and others were not read
	rankWider  // nothing that was read requires that; other releases may
)

// candidate is a project that could be read next.
type candidate struct {
	door.ToRead
	rank, depth int
}

// toRead gives out what to read next; t.mu is held.
func (t *tenant) toRead(ask door.ReachAsk, near bool, roots []string, now time.Time) []door.ToRead {
	w := &t.walk
	for _, project := range ask.Again {
		delete(w.visits, project)
	}
	if ask.Package.Version == "" && !ask.Metadata {
		w.loose[ask.Package.Ecosystem] = true
	}
	q := t.search(ask, now)
	if q.near = near; near {
		q.fromAsked()
	} else {
		q.from(roots)
	}
	all := q.found
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.depth, b.depth), cmp.Compare(a.Project.Name, b.Project.Name))
	})
	var next []door.ToRead
	for _, c := range all {
		if len(next) == maxBatch || c.rank != all[0].rank {
			break
		}
		if full := t.full(c); full != "" {
			q.bound = full
			break
		}
		v := w.visits[c.Project]
		if v == nil {
			v = &visit{depth: c.depth}
			w.visits[c.Project] = v
			if c.rank == rankAside {
				w.aside++
			}
		}
		v.at, v.edges, v.hints = now, t.edges.byPackage[c.Project].epoch, len(c.Versions)
		v.rounds++
		if c.rank == rankWider {
			v.wider = true
		}
		next = append(next, c.ToRead)
	}
	w.stops(projectOfRef(ask.Package), q.bound, len(next) > 0)
	return next
}

// stops notes what keeps the walk to a project from reading on, if it does not go on.
func (w *walk) stops(project pkgref.Ref, bound string, goesOn bool) {
	if goesOn || bound == "" || len(w.bounds) >= maxWalked {
		delete(w.bounds, project)
		return
	}
	w.bounds[project] = bound
}

// bounded adds to a refusal that a walk's bound may have caused that it may, and what to do.
func (t *tenant) bounded(p pkgref.Ref, d policy.Decision) policy.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bound := t.walk.bounds[projectOfRef(p)]; bound != "" && mayLift(t.policy(), p.Ecosystem, d, false) {
		d.Reason += "; not all that may require it was read, since " + bound + "; a lockfile given with --lockfile is read first"
	}
	return d
}

// full says why nothing more of a kind is read; "": it is. It leaves room in the run's
// memory for what clients read themselves.
func (t *tenant) full(c candidate) string {
	w, most, size := &t.walk, t.releases.Most(), t.releases.Size()
	const memory = "what was read takes the memory that a run has for it"
	switch {
	case w.visits[c.Project] == nil && len(w.visits) >= maxWalked:
		return fmt.Sprintf("%d projects were read, which is the most", maxWalked)
	case c.rank == rankAside && w.aside >= maxWalkedBy:
		return fmt.Sprintf("%d projects that only older releases require were read, which is the most", maxWalkedBy)
	case c.rank == rankAside && size >= most/2, c.rank != rankAsked && size >= most/4*3:
		return memory
	}
	return ""
}

// depth is how far from an entry a project is, by the edges that admit it.
func (t *tenant) depth(ask door.ReachAsk, edges []policy.Edge) (depth int, ok bool) {
	for _, e := range edges {
		if e.Through == "" && !ask.Metadata {
			continue
		}
		d := 1
		if v := t.walk.visits[projectOfRef(e.Parent)]; v != nil {
			d = v.depth + 1
		}
		if !ok || d < depth {
			depth, ok = d, true
		}
	}
	return depth, ok
}

// candidate tells whether a project is worth reading for what is asked, and how soon.
func (q *search) candidate(project pkgref.Ref, depth int) (c candidate, ok bool) {
	t, ask, wanted := q.t, q.ask, q.wanted
	hints := t.hints(project)
	c = candidate{ToRead: door.ToRead{Project: project, Versions: hints}, rank: rankAside, depth: depth}
	_, asked := t.walk.asked[project]
	v := t.walk.visits[project]
	c.Anew = v != nil && (q.now.Sub(v.at) > walkedFor || v.edges != t.edges.byPackage[project].epoch)
	if v == nil || q.now.Sub(v.at) > walkedFor {
		switch {
		case asked || depth == 0:
			c.rank = rankAsked
		case q.main[project.Name]:
			c.rank = rankMain
		}
		return c, c.rank == rankAsked || !ask.Metadata && (c.rank == rankMain || ask.Deep && ask.Pages)
	}
	c.Round = v.rounds
	switch {
	case ask.Pages:
		c.rank = rankAnew
		return c, c.Anew && asked
	case len(hints) > v.hints:
		c.rank, c.Round = rankAsked, 0
		return c, true
	case ask.Metadata:
		return c, false
	case c.Anew:
		c.rank, c.Round = rankAnew, min(1, max(0, maxRounds-v.rounds)) // past them the newest alone
		return c, true
	case q.near:
		return c, false
	case ask.Deep && wanted[project.Name]:
		c.rank = rankDeeper
		if ok = v.rounds < maxRounds; !ok && t.unread(project) {
			q.bound = fmt.Sprintf("of %s only %d releases were read", project.Name, t.readOf(project))
		}
		return c, ok
	}
	c.rank = rankWider
	return c, !v.wider && len(wanted) == 0
}

// unread tells that a project's page shows releases of which nothing was read.
func (t *tenant) unread(project pkgref.Ref) bool {
	page := t.releases.Page(project)
	return page != nil && page.Shown() > t.readOf(project)
}

// readOf counts the releases of a project whose metadata was read.
func (t *tenant) readOf(project pkgref.Ref) int {
	if r := t.required[project]; r != nil {
		return len(r.own)
	}
	return 0
}

// hints are the versions of a project that are wanted most: clients asked for them, or
// lockfiles pin them.
func (t *tenant) hints(project pkgref.Ref) []string {
	hints := slices.Clone(t.walk.asked[project])
	if t.run.Lock == nil {
		return hints
	}
	for _, pin := range t.run.Lock.For(project).Pins {
		if len(hints) < 2*maxHints && !slices.Contains(hints, pin.Version) {
			hints = append(hints, pin.Version)
		}
	}
	return hints
}

// mains are a project's main releases: the newest admitted one of each line.
type mains struct {
	key      string
	versions []string
}

const maxMains = 12

// mainly are the names that the main releases of what was read require, or such as
// clients asked for. Where metadata is read release by release, that is all of it.
func (t *tenant) mainly(ask door.ReachAsk) map[string]bool {
	names := map[string]bool{}
	for project, r := range t.required {
		if project.Ecosystem != ask.Package.Ecosystem {
			continue
		}
		versions := r.versions
		if ask.Pages {
			versions = append(t.hints(project), t.mainsOf(project, r)...)
		}
		for _, version := range versions {
			for _, q := range r.own[version] {
				names[q.Name] = names[q.Name] || t.counts(project, q)
			}
			for _, place := range r.places[version] {
				names[r.list[place].Name] = true
			}
		}
	}
	return names
}

func (t *tenant) mainsOf(project pkgref.Ref, r *requirements) []string {
	key := strings.Join([]string{r.epoch, t.edges.byPackage[project].epoch}, " ")
	if m := t.walk.mains[project]; m != nil && m.key == key {
		return m.versions
	}
	lines := map[[2]int64]pkgref.Version{}
	for _, text := range r.versions {
		release := project
		release.Version = text
		v, _ := pkgref.ParseVersion(project.Ecosystem, text)
		if !v.Stable() || t.releases.Of(release).Admits() == "" {
			continue
		}
		if old, known := lines[v.Compatible()]; !known || v.CompareSpelled(old) > 0 {
			lines[v.Compatible()] = v
		}
	}
	newest := make([]pkgref.Version, 0, len(lines))
	for _, v := range lines {
		newest = append(newest, v)
	}
	slices.SortFunc(newest, func(a, b pkgref.Version) int { return b.CompareSpelled(a) })
	m := &mains{key: key}
	for _, v := range newest[:min(len(newest), maxMains)] {
		m.versions = append(m.versions, v.String())
	}
	t.walk.mains[project] = m
	return m.versions
}

// loose tells whether pages also show what is older than what is required.
func (t *tenant) loose(e pkgref.Ecosystem) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e == pkgref.Python && t.walk.loose[e]
}

// highestRequired is the highest release on a page that a requirement admits.
func highestRequired(j *policy.Judge, ask door.IndexAsk) string {
	var highest pkgref.Version
	for _, f := range ask.Files {
		v, ok := pkgref.ParseVersion(ask.Package.Ecosystem, f.Version)
		if ok && v.CompareSpelled(highest) > 0 && j.Release(f.Version).ResolvedBy == policy.ByDependency {
			highest = v
		}
	}
	return highest.String()
}
