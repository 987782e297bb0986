package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// ReachAsk asks what to read so that it shows whether the policy's entries lead to a
// package: clients that install from a lockfile read no metadata, and ask for files in
// any order.
type ReachAsk struct {
	Sandbox string     `json:"sandbox"`
	Package pkgref.Ref `json:"package"` // without a version any release of it will do
	// Pages tells that an index page says what all releases on it require.
	Pages bool `json:"pages,omitempty"`
	// Metadata tells that only what resolvers read of the package is wanted: then it
	// does whoever requires it, and little is read.
	Metadata bool `json:"metadata,omitempty"`
	// Deep: a file is wanted, so that what only older releases require is read too.
	Deep bool `json:"deep,omitempty"`
	// Look asks for Reached alone.
	Look bool `json:"look,omitempty"`
	// Late, with Look, tells that no more is read for now: the request has waited long.
	Late bool `json:"late,omitempty"`
	// Again are projects that were to be read and could not be had.
	Again []pkgref.Ref `json:"again,omitempty"`
}

// ReachAnswer says what to read next. Reached: reading more would not change the
// answer about the package. Neither, and nothing to read: nothing leads to it.
type ReachAnswer struct {
	Reached bool     `json:"reached"`
	Next    []ToRead `json:"next,omitempty"`
	// Open, where nothing is left to read, tells that what the client asks for next may
	// lead to the package.
	Open bool `json:"open,omitempty"`
}

// ToRead is a project whose page is to be read, and, where pages do not say what
// releases require, the metadata of some releases.
type ToRead struct {
	Project pkgref.Ref `json:"project"`
	// Versions are to be read first: clients asked for them, or lockfiles pin them.
	Versions []string `json:"versions,omitempty"`
	// Round counts how often it was to be read before.
	Round int `json:"round"`
	// Anew: more leads to it now, so that releases may be had that could not.
	Anew bool `json:"anew,omitempty"`
}

// Reach implements Door. What is read in its course is asked about as ever, with Walk:
// so a release counts as it does for any client, and only that it is read is no record.
func (c *Controller) Reach(ctx context.Context, ask ReachAsk) (ReachAnswer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return ReachAnswer{}, err
	}
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) || len(ask.Again) > maxBatch {
		return ReachAnswer{}, fault.Invalid("a way is asked for to a package by its canonical name, not to %q", clip(ask.Package.String(), 200))
	}
	d, open, err := c.mayBeRequired(t, ask)
	if err != nil || !open {
		return ReachAnswer{Reached: err == nil}, err
	}
	near := d.ByLikeness() && !t.policy().AdmitsDependencies(ask.Package.Ecosystem)
	roots, now := t.policy().Roots(ask.Package.Ecosystem), c.config.Clock.Read().Now
	t.mu.Lock()
	defer t.mu.Unlock()
	if ask.Late {
		t.walk.stops(projectOfRef(ask.Package), "a request waits no longer for that", false)
	}
	if ask.Look {
		return ReachAnswer{}, nil
	}
	next := t.toRead(ask, near, roots, now)
	return ReachAnswer{Next: next, Open: near && ask.Deep && len(next) == 0}, nil
}

// mayBeRequired tells that a package is on no list and nothing that was read requires
// it, where that would let it in, with the decision as things stand.
func (c *Controller) mayBeRequired(t *tenant, ask ReachAsk) (d policy.Decision, open bool, err error) {
	law := t.policy()
	owner, _ := law.Owner(c.config.Namespaces, ask.Package)
	about, err := c.subject(t, ask.Package, origin{upstream: owner})
	if err != nil {
		return d, false, err
	}
	t.require(&about, ask.Package)
	j := c.judgeOf(law, about)
	if ask.Package.Version == "" {
		d = j.Name()
		return d, mayLift(law, ask.Package.Ecosystem, d, ask.Metadata && len(about.Edges) == 0), nil
	}
	d = j.Release(ask.Package.Version)
	return d, mayLift(law, ask.Package.Ecosystem, d, false), nil
}

// mayLift tells whether one more requirement can change a decision: let it in, or, of
// metadata that nothing requires, have it read.
func mayLift(law *policy.Policy, e pkgref.Ecosystem, d policy.Decision, metadata bool) bool {
	return d.ByNoList() && (law.AdmitsDependencies(e) || d.ByLikeness() || metadata && law.UsesEdges(e) && len(law.Roots(e)) > 0)
}

// unreached tells that a file's answer is not the last word: what requires the file may
// not have been read. A plan's resolver reads all that it weighs.
func (t *tenant) unreached(ask ArtifactAsk, w weighed) bool {
	return ask.MayWalk && !t.run.Plan && mayLift(t.policy(), ask.Package.Ecosystem, w.decision, false)
}
