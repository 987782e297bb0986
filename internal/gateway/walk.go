package gateway

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Limits of walks: how long one step may take, and when what could not be had is tried
// again.
const (
	stepTime  = 2 * time.Minute
	tryAgain  = 5 * time.Second
	stepWidth = 8 // pages, and releases of each, that are read at one time
)

// walk reads, for one guest and ecosystem, what leads from the policy's entries to what
// they require: one step at a time, whoever of the guest's requests needs it. All
// others wait for the step and look again. What was read the door knows.
type walk struct {
	mu      sync.Mutex // guards all below
	stepped chan struct{}
	busy    bool
	news    chan struct{}                  // closed and replaced when the guest asks for something
	failed  map[pkgref.Ref]time.Time       // what could not be had, and since when
	read    map[pkgref.Ref]map[string]bool // releases whose metadata was read, by project; false: it may not be, as things stand
}

// begin gives the step to the caller, or what to wait for.
func (w *walk) begin() (mine bool, stepped <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false, w.stepped
	}
	w.busy, w.stepped = true, make(chan struct{})
	return true, w.stepped
}

func (w *walk) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	close(w.stepped)
}

// hears is what is closed once the guest asks for something more.
func (w *walk) hears() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.news
}

// tells wakes those that wait for what the guest asks for next.
func (w *walk) tells() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.news)
	w.news = make(chan struct{})
}

// again are some projects that could not be had and may be by now.
func (w *walk) again(now time.Time) (projects []pkgref.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for project, at := range w.failed {
		if now.Sub(at) >= tryAgain && len(projects) < stepWidth {
			projects = append(projects, project)
			delete(w.failed, project)
		}
	}
	return projects
}

func (w *walk) fails(project pkgref.Ref, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[project] = now
}

// reads tells whether a release's metadata is still to be read, and that it is now.
func (w *walk) reads(project pkgref.Ref, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	versions := w.read[project]
	if versions == nil {
		versions = map[string]bool{}
		w.read[project] = versions
	}
	if _, known := versions[version]; known {
		return false
	}
	versions[version] = true
	return true
}

// waits notes that a release's metadata may not be read, as things stand.
func (w *walk) waits(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[project][version] = false
}

// asks has it asked again whether metadata of a project may be read that might not be:
// more leads to the project now.
func (w *walk) asks(project pkgref.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.read[project], func(_ string, read bool) bool { return !read })
}

// knows tells whether a release's metadata was read, or may not be.
func (w *walk) knows(project pkgref.Ref, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.read[project][version]
	return known
}

// forgets has a release's metadata read again when there is another reason to.
func (w *walk) forgets(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.read[project], version)
}

// walkOf is a guest's walk in an ecosystem.
func (gs *guests) walkOf(id string, e pkgref.Ecosystem) *walk {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.get(id)
	w := g.walks[e]
	if w == nil {
		w = &walk{news: make(chan struct{}), failed: map[pkgref.Ref]time.Time{}, read: map[pkgref.Ref]map[string]bool{}}
		g.walks[e] = w
	}
	return w
}

// destination is a package that a guest asks for and that nothing which was read
// requires.
type destination struct {
	ref       pkgref.Ref // without a version: any release
	metadata  bool       // only what resolvers read of it
	deep      bool       // a file: see admission.ReachAsk
	published time.Time  // of the release; zero: unknown
}

// reach reads, as far as that is allowed, what may require a package, until something
// does or nothing is left to read. That is known to the door afterwards; whoever calls
// asks it again. An error is the end of the request.
func (g *Gateway) reach(ctx context.Context, q *query, to destination) error {
	_, pages := q.source.Protocol.(ecosystem.Lister)
	w := g.guests.walkOf(q.sandbox, to.ref.Ecosystem)
	ask := door.ReachAsk{Sandbox: q.sandbox, Package: to.ref, Pages: pages, Metadata: to.metadata, Deep: to.deep}
	over := time.NewTimer(g.cfg.Limits.WalkTime)
	defer over.Stop()
	for first := true; ; {
		news := w.hears()
		mine, stepped := w.begin()
		var quiet <-chan time.Time
		if mine {
			if first {
				ask.Again = w.again(time.Now())
			}
			more, open, err := g.step(ctx, w, ask, to)
			if err != nil || !more && !open {
				return err
			}
			if !more { // what comes next may lead to it
				stepped, quiet = news, time.After(g.cfg.Limits.QuietTime)
			}
			ask.Again, first = nil, false
		}
		select {
		case <-stepped:
		case <-quiet:
			return nil
		case <-over.C: // what was read counts; the next request goes on
			late := ask
			late.Look, late.Late = true, true
			_, err := g.door.Reach(ctx, late)
			return err
		case <-ctx.Done():
			return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the client gave up")
		}
		if mine {
			continue
		}
		look := ask
		look.Look = true
		if a, err := g.door.Reach(ctx, look); err != nil || a.Reached {
			return err
		}
	}
}

// step asks what is to be read next and begins to read it; the step ends when that has
// been read, whether or not the client still waits. more is false if nothing is left,
// open if what the guest asks for next may lead on.
func (g *Gateway) step(ctx context.Context, w *walk, ask door.ReachAsk, to destination) (more, open bool, err error) {
	a, err := g.door.Reach(ctx, ask)
	if err != nil || a.Reached || len(a.Next) == 0 {
		w.end()
		return false, a.Open, err
	}
	life, cancel := context.WithTimeout(g.flights.LifeFor(ctx), stepTime)
	started := g.flights.Run(func() {
		defer w.end()
		defer cancel()
		together(a.Next, func(item door.ToRead) {
			if err := g.flights.Contain(life, "walk "+item.Project.String(), func(ctx context.Context) error {
				return g.readProject(ctx, w, ask.Sandbox, item, to)
			}); err != nil {
				g.log.Debug("what may lead to a package could not be read", "project", item.Project.String(), "error", err)
				w.fails(item.Project, time.Now())
			}
		})
	})
	if !started {
		cancel()
		w.end()
		return false, false, fault.New(fault.ErrUnavailable, "the gateway is stopping")
	}
	return true, false, nil
}
