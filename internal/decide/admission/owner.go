package admission

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Owner implements Door.
func (c *Controller) Owner(ctx context.Context, ask door.OwnerAsk) (door.OwnerAnswer, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.OwnerAnswer{}, err
	}
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) {
		return door.OwnerAnswer{}, fault.Invalid("an owner is asked for by a package's canonical name, not by %q", redact.Cut(ask.Package.String(), 200))
	}
	if !ask.Walk {
		if err := (leaving{c, t}).checkAsk(ctx, ask); err != nil {
			return door.OwnerAnswer{}, err
		}
	}
	law := t.policy()
	upstream := t.known.namespaceOwner(ask.Package)
	out := door.OwnerAnswer{Upstream: upstream}
	out.Builder, out.Makes = c.builder(t, ask.Package)
	if !ask.Walk {
		t.ledger.Asked(ask.Package, ask.Version)
	}
	about, err := t.known.subject(ask.Package, ledger.Origin{Upstream: upstream})
	if err != nil {
		out.Apart = pageShareKey(t, policy.Decision{})
		return out, nil //nolint:nilerr // it is refused, with a record, once it is judged
	}
	t.require(&about, ask.Package)
	d := t.known.judgeBy(law, about).Name()
	if sourceOf(t.run.Source, ask.Package) {
		d = sourceDecision(t.run.Source)
	}
	out.Apart = pageShareKey(t, d)
	out.Admitted = d.Admitted() && d.Would == "" && slices.Contains([]policy.ResolvedBy{policy.ByAllowlist, policy.ByDependency, policy.ByLockfile}, d.ResolvedBy)
	out.Unreached = ask.MayWalk && !t.run.Plan && !d.Shown() && !t.leadsOn(ask.Package) &&
		mayLift(law, ask.Package.Ecosystem, d, ask.Metadata && len(about.Edges) == 0)
	return out, nil
}

// leadsOn tells whether a name is the beginning of one that the policy or what was
// read names: resolvers that know an import and not its module try all of these.
func (t *tenant) leadsOn(p pkgref.Ref) bool {
	if !p.Ecosystem.Traits().NamesArePaths {
		return false
	}
	begins := func(name string) bool { return strings.HasPrefix(name, p.Name+"/") }
	if slices.ContainsFunc(t.policy().Roots(p.Ecosystem), begins) {
		return true
	}
	return t.ledger.LeadsBelow(p.Ecosystem, p.Name+"/")
}
