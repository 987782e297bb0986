package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Limits of a walk from the policy's entries to what they require.
const (
	MaxBatch    = 16               // projects that are read at one time
	MaxWalked   = 3_000            // projects of a run, and of
	MaxWalkedBy = 400              // these such as only older releases lead to
	MaxDepth    = 64               // requirements from an entry
	maxRounds   = 8                // in which ever more releases of a project are read
	walkedFor   = 10 * time.Minute // after which a page is read again
	maxHints    = 16               // versions of a project that clients asked for
)

// runWalk is what a run's walks have read.
type runWalk struct {
	asked  map[pkgref.Ref][]string // projects that clients asked for, with versions
	visits map[pkgref.Ref]*projectVisit
	mains  map[pkgref.Ref]*mains
	aside  int // visits that only older releases led to
	// loose are the ecosystems in which a client asked for what nothing read required:
	// it knows its versions from elsewhere.
	loose map[pkgref.Ecosystem]bool
	// bounds are what kept a walk to a project from reading on, in words.
	bounds map[pkgref.Ref]string
}

// projectVisit is when and with what a project was given out to be read.
type projectVisit struct {
	at     time.Time
	edges  string // the epoch of those that lead to it
	hints  int
	depth  int
	rounds int
	wider  bool // more of its releases were read since nothing required what was wanted
}

func newRunWalk() runWalk {
	return runWalk{asked: map[pkgref.Ref][]string{}, visits: map[pkgref.Ref]*projectVisit{}, mains: map[pkgref.Ref]*mains{}, loose: map[pkgref.Ecosystem]bool{}, bounds: map[pkgref.Ref]string{}}
}

// noteWanted notes what a client asks for.
func (w *runWalk) noteWanted(project pkgref.Ref, version string) {
	versions, known := w.asked[project]
	if !known && len(w.asked) >= MaxWalked || len(versions) >= maxHints || slices.Contains(versions, version) {
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

// Next gives out what to read next on the way to a package: from the policy's roots, and,
// near, from what clients asked for and lockfiles pin.
func (l *Ledger) Next(ask door.ReachAsk, near bool, roots []string, now time.Time) []door.ToRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &l.walk
	for _, project := range ask.Again {
		delete(w.visits, project)
	}
	if ask.Package.Version == "" && !ask.Metadata {
		w.loose[ask.Package.Ecosystem] = true
	}
	q := l.search(ask, now)
	if len(roots) > 0 || !near {
		q.searchFrom(roots)
	}
	if q.near = near; near {
		q.fromAsked()
	}
	all := q.found
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.depth, b.depth), cmp.Compare(a.Project.Name, b.Project.Name))
	})
	var next []door.ToRead
	for _, c := range all {
		if len(next) == MaxBatch || c.rank != all[0].rank {
			break
		}
		if full := l.whyFull(c); full != "" {
			q.bound = full
			break
		}
		v := w.visitCandidate(c)
		v.at, v.edges, v.hints = now, l.edges.byPackage[c.Project].Epoch, len(c.Versions)
		next = append(next, c.ToRead)
	}
	w.noteStop(ask.Package.Project(), q.bound, len(next) > 0)
	return next
}

// visitCandidate returns the visit of a candidate, which is read now.
func (w *runWalk) visitCandidate(c candidate) *projectVisit {
	v := w.visits[c.Project]
	if v == nil {
		v = &projectVisit{depth: c.depth}
		w.visits[c.Project] = v
		if c.rank == rankAside {
			w.aside++
		}
	}
	v.rounds++
	if c.rank == rankWider {
		v.wider = true
	}
	return v
}

// noteStop notes what keeps the walk to a project from reading on, if it does not go on.
func (w *runWalk) noteStop(project pkgref.Ref, bound string, goesOn bool) {
	if goesOn || bound == "" || len(w.bounds) >= MaxWalked {
		delete(w.bounds, project)
		return
	}
	w.bounds[project] = bound
}

// Asked notes that a client asks for a project, in some version or "".
func (l *Ledger) Asked(project pkgref.Ref, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.walk.noteWanted(project, version)
}

// GiveUp notes that no more is read on the way to a project for now: a request has waited
// too long for it.
func (l *Ledger) GiveUp(project pkgref.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.walk.noteStop(project, "a request waits no longer for that", false)
}

// Bound is what kept the walk to a project from reading on, in words; "": nothing did.
func (l *Ledger) Bound(project pkgref.Ref) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.walk.bounds[project]
}

// whyFull says why nothing more of a kind is read; "": it is. It leaves room in the run's
// memory for what clients read themselves.
func (l *Ledger) whyFull(c candidate) string {
	w, most, size := &l.walk, l.releases.Most(), l.releases.Size()
	const memory = "what was read takes the memory that a run has for it"
	switch {
	case w.visits[c.Project] == nil && len(w.visits) >= MaxWalked:
		return fmt.Sprintf("%d projects were read, which is the most", MaxWalked)
	case c.rank == rankAside && w.aside >= MaxWalkedBy:
		return fmt.Sprintf("%d projects that only older releases require were read, which is the most", MaxWalkedBy)
	case c.rank == rankAside && size >= most/2, c.rank != rankAsked && size >= most/4*3:
		return memory
	}
	return ""
}

// depthOf is how far from an entry a project is, by the edges that admit it.
func (l *Ledger) depthOf(ask door.ReachAsk, edges []policy.Edge) (depth int, ok bool) {
	for _, e := range edges {
		if e.Through == "" && !ask.Metadata {
			continue
		}
		d := 1
		if v := l.walk.visits[e.Parent.Project()]; v != nil {
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
	l, ask, wanted := q.l, q.ask, q.wanted
	hints := l.versionHints(project)
	c = candidate{ToRead: door.ToRead{Project: project, Versions: hints}, rank: rankAside, depth: depth}
	_, asked := l.walk.asked[project]
	v := l.walk.visits[project]
	c.Anew = v != nil && (q.now.Sub(v.at) > walkedFor || v.edges != l.edges.byPackage[project].Epoch)
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
	case ask.Metadata && (depth > 0 || q.near):
		return c, false
	case ask.Metadata: // a project may pin an older release of an entry, which the client has not asked for yet
		c.rank = rankWider
		return c, !v.wider && len(wanted) == 0
	case c.Anew:
		c.rank, c.Round = rankAnew, min(1, max(0, maxRounds-v.rounds)) // past them the newest alone
		return c, true
	case q.near:
		return c, false
	case ask.Deep && wanted[project.Name]:
		c.rank = rankDeeper
		if ok = v.rounds < maxRounds; !ok && l.unread(project) {
			q.bound = fmt.Sprintf("of %s only %d releases were read", project.Name, l.readOf(project))
		}
		return c, ok
	}
	c.rank = rankWider
	return c, !v.wider && len(wanted) == 0
}

// unread tells that a project's page shows releases of which nothing was read.
func (l *Ledger) unread(project pkgref.Ref) bool {
	page := l.releases.Page(project)
	return page != nil && page.Shown() > l.readOf(project)
}

// readOf counts the releases of a project whose metadata was read.
func (l *Ledger) readOf(project pkgref.Ref) int {
	if r := l.required[project]; r != nil {
		return len(r.own)
	}
	return 0
}

// versionHints are the versions of a project that are wanted most: clients asked for them, or
// lockfiles pin them.
func (l *Ledger) versionHints(project pkgref.Ref) []string {
	hints := slices.Clone(l.walk.asked[project])
	for _, pin := range l.lockfilePins(project) {
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
func (l *Ledger) mainly(ask door.ReachAsk) map[string]bool {
	names := map[string]bool{}
	for project, r := range l.required {
		if project.Ecosystem != ask.Package.Ecosystem {
			continue
		}
		versions := r.versions
		if ask.Pages {
			versions = append(l.versionHints(project), l.mainsOf(project, r)...)
		}
		for _, version := range versions {
			for _, q := range r.own[version] {
				names[q.Name] = names[q.Name] || l.counts(project, q)
			}
			for _, place := range r.places[version] {
				names[r.list[place].Name] = true
			}
		}
	}
	return names
}

func (l *Ledger) mainsOf(project pkgref.Ref, r *requirements) []string {
	key := strings.Join([]string{r.epoch, l.edges.byPackage[project].Epoch}, " ")
	if m := l.walk.mains[project]; m != nil && m.key == key {
		return m.versions
	}
	lines := map[[2]int64]pkgref.Version{}
	for _, text := range r.versions {
		release := project
		release.Version = text
		v, _ := pkgref.ParseVersion(project.Ecosystem, text)
		if !v.Stable() || l.releases.Of(release).Admits() == "" {
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
	l.walk.mains[project] = m
	return m.versions
}

// Loose tells whether a client asked for what nothing that was read requires: it knows
// its versions from elsewhere.
func (l *Ledger) Loose(e pkgref.Ecosystem) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.walk.loose[e]
}
