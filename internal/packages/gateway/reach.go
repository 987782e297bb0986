package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// stepTime is how long one step of a walk may take.
const stepTime = 2 * time.Minute

// destination is a package that a guest asks for and that nothing which was read
// requires.
type destination struct {
	ref       pkgref.Ref // without a version: any release
	metadata  bool       // only what resolvers read of it
	deep      bool       // a file: see door.ReachAsk
	now       bool       // the client asks for nothing more before it has the answer
	published time.Time  // of the release; zero: unknown
}

// walker reads for guests what may lead to what they ask for.
type walker struct {
	cfg         Config
	door        door.Packages
	sources     sources
	guests      *guestRates
	pages       *pages.Pages
	locator     *locator
	inspections *inspections
	attachments *attachments
	flights     *coalesce.Group
}

// reachPackage reads, as far as that is allowed, what may require a package, until something
// does or nothing is left to read. That is known to the door afterwards; whoever calls
// asks it again. An error is the end of the request.
func (wr *walker) reachPackage(ctx context.Context, s subject, to destination) error {
	_, pages := s.source.Protocol.(ecosystem.Lister)
	w := wr.guests.walkOf(s.sandbox, to.ref.Ecosystem)
	ask := door.ReachAsk{Sandbox: s.sandbox, Package: to.ref, Pages: pages, Metadata: to.metadata, Deep: to.deep}
	over := time.NewTimer(wr.cfg.Limits.WalkTime)
	defer over.Stop()
	for first := true; ; {
		next := w.nextAsked()
		mine, stepped := w.beginStep()
		var quiet <-chan time.Time
		if mine {
			if first {
				ask.Again = w.projectsToRetry(time.Now())
			}
			more, open, err := wr.takeStep(ctx, w, ask, to)
			if err != nil || !more && (!open || to.now) {
				return err
			}
			if !more { // what comes next may lead to it
				stepped, quiet = next, time.After(wr.cfg.Limits.QuietTime)
			}
			ask.Again, first = nil, false
		}
		select {
		case <-stepped:
		case <-quiet:
			return nil
		case <-over.C: // what was read counts; the next request goes on
			return wr.door.StopReaching(ctx, ask)
		case <-ctx.Done():
			return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the client gave up")
		}
		if mine {
			continue
		}
		if reached, err := wr.door.Reached(ctx, ask); err != nil || reached {
			return err
		}
	}
}

// takeStep asks what is to be read next and begins to read it; the step ends when that has
// been read, whether or not the client still waits. more is false if nothing is left,
// open if what the guest asks for next may lead on.
func (wr *walker) takeStep(ctx context.Context, w *guestWalk, ask door.ReachAsk, to destination) (more, open bool, err error) {
	a, err := wr.door.Reach(ctx, ask)
	if err != nil || a.Reached || len(a.Next) == 0 {
		w.endStep()
		return false, a.Open, err
	}
	life, cancel := context.WithTimeout(wr.flights.LifeFor(ctx), stepTime)
	started := wr.flights.Run(func() {
		defer w.endStep()
		defer cancel()
		together(a.Next, func(item door.ToRead) {
			if err := wr.flights.Contain(life, "walk "+item.Project.String(), func(ctx context.Context) error {
				return wr.readProject(ctx, w, ask.Sandbox, item, to)
			}); err != nil {
				wr.cfg.Log.Debug("what may lead to a package could not be read", "project", item.Project.String(), "error", err)
				w.noteFailed(item.Project, time.Now())
			}
		})
	})
	if !started {
		cancel()
		w.endStep()
		return false, false, fault.New(fault.ErrUnavailable, "the gateway is stopping")
	}
	return true, false, nil
}

// together does something with each of a list, a few at a time, and returns once all
// of it is done.
func together[T any](list []T, do func(T)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, stepWidth)
	for _, item := range list {
		turns <- struct{}{}
		safego.In(&all, func() {
			defer func() { <-turns }()
			do(item)
		})
	}
	all.Wait()
}
