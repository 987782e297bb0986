package admission

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/clock"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// fileOfFacts is a file by what policy weighed of it.
func fileOfFacts(f policy.FileFacts) door.File {
	return door.File{
		Name: f.File, Version: f.Version, Kind: f.Kind, Digest: f.Digest,
		Published: f.Published, FirstSeen: f.FirstSeen, Scripts: f.Scripts, PartOf: f.PartOf,
	}
}

// origin is where a project was found.
type origin struct {
	upstream  string
	toolchain bool
}

// subject gathers what is known of a project, its edges and people's answers aside.
func (c *Controller) subject(t *tenant, project pkgref.Ref, from origin) (policy.Subject, error) {
	project.Version = ""
	s := policy.Subject{Package: project, Upstream: from.upstream, Toolchain: from.toolchain}
	s.Owner, _ = t.policy().Owner(c.config.Namespaces, project)
	if t.run.Lock != nil {
		s.Lock = t.run.Lock.For(project)
	}
	if c.config.Advisories == nil {
		return s, nil
	}
	facts, err := c.config.Advisories.Facts(project)
	if err != nil {
		return s, errUnknown(project, err)
	}
	s.Malware, s.Lookalike = facts.Malware, facts.Lookalike
	return s, nil
}

// judgeOf judges by the time that it is.
func (c *Controller) judgeOf(p *policy.Policy, about policy.Subject) *policy.Judge {
	return judgeAt(p, c.config.Clock.Read(), about)
}

// judgeAt judges by the time of a reading; where the host's clock has jumped, by what
// the time may be as well.
func judgeAt(p *policy.Policy, now clock.Reading, about policy.Subject) *policy.Judge {
	if now.Jumped() {
		about.Otherwise = now.Wall
	}
	return p.Judge(now.Now, about)
}

// generation names the state of all facts that subject gathers for a tenant.
func (c *Controller) generation(t *tenant, from origin) string {
	parts := []string{from.upstream, "", "", ""}
	if from.toolchain {
		parts[1] = "toolchain"
	}
	if t.run.Lock != nil {
		parts[2] = t.run.Lock.Digest()
	}
	if c.config.Advisories != nil {
		parts[3] = c.config.Advisories.Generation()
	}
	return strings.Join(parts, "\x00")
}

// Owner implements Door.
func (c *Controller) Owner(ctx context.Context, ask door.OwnerAsk) (door.OwnerAnswer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return door.OwnerAnswer{}, err
	}
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) {
		return door.OwnerAnswer{}, fault.Invalid("an owner is asked for by a package's canonical name, not by %q", clip(ask.Package.String(), 200))
	}
	law := t.policy()
	upstream, _ := law.Owner(c.config.Namespaces, ask.Package)
	out := door.OwnerAnswer{Upstream: upstream}
	if !ask.Walk {
		t.mu.Lock()
		t.walk.wants(ask.Package, ask.Version)
		t.mu.Unlock()
	}
	about, err := c.subject(t, ask.Package, origin{upstream: upstream})
	if err != nil {
		out.Apart = apart(t, policy.Decision{})
		return out, nil //nolint:nilerr // it is refused, with a record, once it is judged
	}
	t.require(&about, ask.Package)
	d := c.judgeOf(law, about).Name()
	out.Apart = apart(t, d)
	out.Admitted = d.Admitted() && slices.Contains([]policy.ResolvedBy{policy.ByAllowlist, policy.ByDependency, policy.ByLockfile}, d.ResolvedBy)
	out.Unreached = ask.MayWalk && !t.run.Plan && !d.Shown() && !t.leadsOn(ask.Package) &&
		mayLift(law, ask.Package.Ecosystem, d, ask.Metadata && len(about.Edges) == 0)
	return out, nil
}

// leadsOn tells whether a name is the beginning of one that the policy or what was
// read names: resolvers that know an import and not its module try all of these.
func (t *tenant) leadsOn(p pkgref.Ref) bool {
	if p.Ecosystem != pkgref.Go {
		return false
	}
	begins := func(name string) bool { return strings.HasPrefix(name, p.Name+"/") }
	if slices.ContainsFunc(t.policy().Roots(p.Ecosystem), begins) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for project := range t.edges.byPackage {
		if project.Ecosystem == p.Ecosystem && begins(project.Name) {
			return true
		}
	}
	return false
}

// apart says whose pages of a name a run is not told of, by how soon or with which
// times one comes: of a name that it may not have, those of all other sandboxes;
// where ages count from when a file was seen first, those of other tokens.
func apart(t *tenant, name policy.Decision) string {
	own := "sandbox " + t.run.Sandbox
	if !name.Shown() {
		return own
	}
	if t.policy().AgesFromFirstSeen() && t.run.Token != "" {
		return "token " + t.run.Token
	}
	return ""
}
