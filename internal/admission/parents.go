package admission

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// look is how often it is looked whether a parent has come.
const look = 5 * time.Millisecond

// awaitParents judges again what is on no list, once something that may be had
// requires it, or when nothing did in time. A client asks for several things at once: the
// go.mod of a Go module names its whole graph, so that a dependency's metadata may be
// asked for a moment before that of the module which requires it has been read; and
// whether it may be had must not hang on which of the two came first.
func (c *Controller) awaitParents(ctx context.Context, t *tenant, ask ArtifactAsk, w weighed) (weighed, error) {
	if w.decision.Allowed() || !w.decision.ByNoList() {
		return w, nil
	}
	lifts := t.policy().AdmitsDependencies(ask.Package.Ecosystem)
	if ask.File.Kind == policy.KindMetadata && w.decision.Effect == policy.Deny { // what an edge wants may be read, though not had
		lifts = t.policy().UsesEdges(ask.Package.Ecosystem)
	}
	if !lifts {
		return w, nil
	}
	before := t.edgesTo(ask.Package).epoch
	over := time.NewTimer(c.config.Limits.Parents)
	defer over.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for t.edgesTo(ask.Package).epoch == before {
		select {
		case <-tick.C:
		case <-over.C:
			return c.weigh(ctx, t, ask) // it may have come before the look began
		case <-ctx.Done():
			return w, ctx.Err()
		}
	}
	return c.weigh(ctx, t, ask)
}
