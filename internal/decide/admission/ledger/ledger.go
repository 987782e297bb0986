package ledger

import (
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Origin is where a project was found.
type Origin struct {
	Upstream  string
	Toolchain bool
}

// Rules are what the run is judged by. They are asked while the ledger's lock is held,
// so they never ask the ledger.
type Rules interface {
	// Policy is the one in force now.
	Policy() *policy.Policy
	// Judge judges a project's releases by these edges, and by all that is known of the
	// project outside of the ledger.
	Judge(project pkgref.Ref, from Origin, edges []policy.Edge) (*policy.Judge, error)
}

// Limits bound what a ledger keeps.
type Limits struct {
	Edges          int   // requirements of admitted releases
	Requirements   int   // requirements of releases that were shown, admitted or not
	EdgesPerParent int   // requirements of one release
	Remembered     int64 // bytes, about, of all that it keeps
}

// Ledger is what one run knows of releases: where each stands, what each requires, and
// what was read to find that out. Safe for concurrent use.
type Ledger struct {
	limits Limits
	rules  Rules
	lock   *lockfile.Set // the run's lockfiles; nil: it has none

	mu       sync.Mutex // guards all below
	releases *Releases
	beside   int64                        // bytes that Reserve took, which are in those of releases
	origins  map[pkgref.Ref]Origin        // where projects were found
	required map[pkgref.Ref]*requirements // by projects
	count    int                          // of what is in required, together
	edges    edgeSet
	extras   extras
	walk     runWalk
}

// New makes an empty Ledger. Its memory comes out of a budget that it shares with others.
func New(limits Limits, shared *Budget, lock *lockfile.Set, rules Rules) *Ledger {
	return &Ledger{
		limits: limits, rules: rules, lock: lock, releases: NewReleases(limits.Remembered, shared),
		origins: map[pkgref.Ref]Origin{}, required: map[pkgref.Ref]*requirements{}, edges: newEdgeSet(), extras: extras{}, walk: newRunWalk(),
	}
}

// Close gives the memory back. Nothing is remembered after it.
func (l *Ledger) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releases.Close()
}

// Reserve takes bytes for what is kept beside the ledger; less than nothing gives them
// back. It is false if there is no room: the ledger keeps half of it for itself, since a page that
// it can't take is one that nobody is shown.
func (l *Ledger) Reserve(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes > 0 && l.beside+bytes > l.releases.Most()/2 || !l.releases.Take(bytes) {
		return false
	}
	l.beside += bytes
	return true
}

// Origin is where a project was found; the zero value if it is not known.
func (l *Ledger) Origin(project pkgref.Ref) Origin {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.origins[project.Project()]
}

// Standing is where a release stands.
func (l *Ledger) Standing(release pkgref.Ref) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.releases.Of(release)
}

// Counts are how many edges and requirements there are.
func (l *Ledger) Counts() (edges, requirements int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.edges.known), l.count
}

// Recall takes what a record says of a release. Nothing that it requires is known yet.
func (l *Ledger) Recall(ref pkgref.Ref, e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releases.Move(ref, e)
}

// tooMuch is the refusal of what a run can't be told, since it was told so much.
func (l *Ledger) tooMuch() error {
	return fault.New(fault.ErrForbidden, "what this run was shown and what that requires takes more than the %d MiB that are kept of one run, so no more is shown", l.releases.Most()>>20)
}
