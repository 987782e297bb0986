package policy

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Decide answers one question about one file. It is a function of its
// arguments, answers whatever it is given, and never panics. The order of its
// steps is in docs/policy.md.
func (p *Policy) Decide(now time.Time, in Input) Decision {
	return p.Judge(now, in.Subject).File(in.facts())
}

// Judge answers about many files of one package at one time; each answer is
// Decide's. It remembers the last versions, so it is not for several
// goroutines at once.
type Judge struct {
	policy    *Policy
	now       time.Time
	ecosystem pkgref.Ecosystem
	name      string
	allowed   []entry
	blocked   []entry
	edges     []judgedEdge
	always    *Decision            // decides whatever the version
	releases  map[string]*Decision // by version: what is known before a file is looked at
	shared    map[sharedKey]*Decision
}

// sharedKey is all that a decision without edges depends on, so that the many
// versions that one thing refuses share one decision.
type sharedKey struct {
	entry               int    // that admits, or none or unlisted
	limit               string // that does not
	pre                 bool
	epoch, major, minor int64
}

const (
	noEntry  = -1
	unlisted = -2
)

// judgedEdge is an edge with its specifier parsed.
type judgedEdge struct {
	edge        Edge
	readable    bool
	versions    versionRange
	admits      bool // its Through is an entry with with_dependencies
	prereleases bool // which the entry also admits
}

// maxEdges bounds what is listed; all edges are judged.
const maxEdges = 16

// Judge prepares for the files of a package; its version is not looked at.
// Edges of other packages are left out.
func (p *Policy) Judge(now time.Time, about Subject) *Judge {
	pkg, edges := about.Package, about.Edges
	j := &Judge{policy: p, now: now, ecosystem: pkg.Ecosystem, name: pkg.Name, releases: map[string]*Decision{}, shared: map[sharedKey]*Decision{}}
	if !pkgref.IsCanonicalName(pkg.Ecosystem, pkg.Name) {
		j.always = &Decision{
			Effect: Deny, Rule: "canonical", ResolvedBy: ByCanonical,
			Reason: "the package name is not written in its canonical form",
		}
		return j
	}
	key := packageKey{pkg.Ecosystem, pkg.Name}
	j.allowed, j.blocked = p.packages.allowed[key], p.packages.blocked[key]
	for _, e := range edges {
		if e.Name == pkg.Name && e.Parent.Ecosystem == pkg.Ecosystem && e.Parent.Name != pkg.Name {
			j.edges = append(j.edges, p.judgeEdge(pkg.Ecosystem, e))
		}
	}
	return j
}

func (p *Policy) judgeEdge(ecosystem pkgref.Ecosystem, e Edge) judgedEdge {
	je := judgedEdge{edge: e}
	je.versions, je.readable = parseRange(ecosystem, e.Specifier)
	je.admits, je.prereleases = p.through(ecosystem, e.Through)
	return je
}

// File answers about one file of a release.
func (j *Judge) File(f FileFacts) Decision {
	if j.always != nil {
		return *j.always
	}
	d := j.release(f.Version)
	if d.Effect == Deny {
		return *d
	}
	return j.narrow(*d, f.Kind, f.Published)
}

// Name answers whether any release could be allowed (or held), before an
// index is fetched. An Allow admits no file; a Deny means that none could be.
// Version ranges are not weighed: a release may still be denied.
func (j *Judge) Name() Decision {
	switch {
	case j.always != nil:
		return *j.always
	case j.blockedWhole():
		return j.blockedDecision(entry{})
	case j.policy.packages.locked[j.ecosystem]:
		return j.lockedDecision()
	case len(j.allowed) > 0:
		return Decision{
			Effect: Allow, Rule: entryRule("allowed_packages", j.ecosystem, j.name), ResolvedBy: ByAllowlist,
			Reason: short(j.name) + " is on the allowlist", Through: j.ownThrough(),
		}
	}
	for _, e := range j.edges {
		if e.admits && e.readable {
			return j.dependencyDecision(e)
		}
	}
	d := j.defaultDecision(j.edges)
	if d.Effect != Allow {
		d.Suggest = suggestion{ecosystem: j.ecosystem, name: j.name}.document()
	}
	return d
}

// release judges a version, once.
func (j *Judge) release(version string) *Decision {
	if d, known := j.releases[version]; known {
		return d
	}
	if len(j.releases) >= maxRemembered {
		clear(j.releases)
	}
	d := j.judgeRelease(version)
	j.releases[version] = d
	return d
}

// maxRemembered bounds what a Judge keeps of a hostile index.
const maxRemembered = 10_000

// judgeRelease takes the steps that do not look at the file: canonical form,
// blocklist, lockfile, allowlist, dependency edges, default.
func (j *Judge) judgeRelease(version string) *Decision {
	r, ok := parseRelease(j.ecosystem, version)
	if !ok || !isCanonicalVersion(j.ecosystem, version, r) {
		return &Decision{
			Effect: Deny, Rule: "canonical", ResolvedBy: ByCanonical,
			Reason: "the version of " + short(j.name) + " is not written in its canonical form",
		}
	}
	for _, b := range j.blocked {
		if b.versions.match(r) {
			d := j.blockedDecision(b)
			return &d
		}
	}
	if j.policy.packages.locked[j.ecosystem] {
		d := j.lockedDecision()
		return &d
	}
	key := j.keyOf(r)
	if len(j.edges) > 0 {
		d := j.judgeListed(key, r, j.wanted(r))
		return &d
	}
	if d, known := j.shared[key]; known {
		return d
	}
	d := j.judgeListed(key, r, nil)
	j.shared[key] = &d
	return &d
}

func (j *Judge) keyOf(r release) sharedKey {
	key := sharedKey{entry: unlisted, pre: r.preRelease(), epoch: r.epoch(), major: r.segment(0), minor: r.segment(1)}
	if len(j.allowed) == 0 {
		return key
	}
	for i := range j.allowed {
		if j.allowed[i].admits(r) {
			return sharedKey{entry: i}
		}
	}
	key.entry, key.limit = noEntry, j.whichLimit(r)
	return key
}

func (j *Judge) judgeListed(key sharedKey, r release, wanted []judgedEdge) Decision {
	switch key.entry {
	case unlisted:
		return j.judgeUnlisted(r, wanted)
	case noEntry:
		return j.outsideDecision(key.limit, r, wanted)
	}
	return j.entryDecision(&j.allowed[key.entry], r, wanted)
}

func isCanonicalVersion(ecosystem pkgref.Ecosystem, version string, r release) bool {
	return ecosystem != pkgref.Python || r.python.Is(version)
}

// wanted are the edges that this release would satisfy, or whose specifier
// nobody can read.
func (j *Judge) wanted(r release) []judgedEdge {
	var wanted []judgedEdge
	for _, e := range j.edges {
		if !e.readable || e.versions.match(r) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// judgeUnlisted judges a name that only edges or the default can admit.
func (j *Judge) judgeUnlisted(r release, wanted []judgedEdge) Decision {
	for _, e := range wanted {
		if e.admitsRelease(r) {
			d := j.dependencyDecision(e)
			d.WantedBy = edgesOf(wanted)
			return d
		}
	}
	d := j.defaultDecision(wanted)
	if r.preRelease() && d.Effect != Deny {
		d = Decision{Effect: Deny, Rule: "packages.prereleases", ResolvedBy: ByDefault, WantedBy: d.WantedBy}
		d.Reason = "this version of " + short(j.name) + " is a pre-release, which only an entry with prereleases: true allows"
	}
	if d.Effect != Allow {
		d.Suggest = addition(j.ecosystem, j.name, r).document()
	}
	return d
}

// narrow applies what looks at the file to a release that is not denied: the
// strictest of kind, age and what was decided stands.
func (j *Judge) narrow(d Decision, kind ArtifactKind, published time.Time) Decision {
	if effect, decided := j.judgeKind(kind, d); effect == Deny || (effect == Hold && d.Effect == Allow) {
		d = decided
	}
	if d.Effect == Deny {
		return d
	}
	if effect, decided := j.judgeAge(published, d); effect == Deny || (effect == Hold && d.Effect == Allow) {
		d = decided
	}
	return d
}

func (j *Judge) judgeKind(kind ArtifactKind, d Decision) (Effect, Decision) {
	refusal := Decision{Rule: "packages.sdist", ResolvedBy: ByAllowlist, WantedBy: d.WantedBy}
	switch kind {
	case KindWheel:
		return Allow, d
	case KindSdist:
		switch j.policy.packages.sdist {
		case Allow:
			return Allow, d
		case Hold:
			refusal.Effect = Hold
			refusal.Reason = "a source distribution waits for approval; packages.sdist is hold"
		case Deny:
			refusal.Effect = Deny
			refusal.Reason = "only wheels are allowed; packages.sdist is deny"
		default:
			refusal.Effect = Deny
			refusal.Reason = "only wheels are allowed; packages.sdist is not set"
		}
		refusal.Suggest = "packages:\n  sdist: allow\n"
	case KindOther:
		fallthrough
	default:
		refusal.Effect, refusal.Rule = Deny, "packages.kind"
		refusal.Reason = "this kind of file is never allowed; only wheels and source distributions are known"
	}
	return refusal.Effect, refusal
}

// eraBegins is when the oldest registries began; an older time is a
// placeholder (1970) and so unknown.
func eraBegins() time.Time { return time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC) }

func (j *Judge) judgeAge(published time.Time, d Decision) (Effect, Decision) {
	rules := &j.policy.packages
	if rules.minAge <= 0 || rules.ageSource == ageIgnored {
		return Allow, d
	}
	refusal := Decision{Effect: Hold, Rule: "packages.min_release_age", ResolvedBy: ByAllowlist, WantedBy: d.WantedBy}
	switch {
	case rules.ageSource == ageFirstSeen:
		refusal.Reason = "the age of this file of " + short(j.name) + " is unknown; age_source first-seen is not kept yet"
	case published.Before(eraBegins()):
		refusal.Reason = "the age of this file of " + short(j.name) + " is unknown, and packages.min_release_age asks for one"
	case published.After(j.now):
		refusal.Reason = "this file of " + short(j.name) + " is dated in the future, so its age is unknown"
	case j.now.Sub(published) < rules.minAge:
		refusal.Effect = Deny
		refusal.Reason = "this file of " + short(j.name) + " is younger than packages.min_release_age"
	default:
		return Allow, d
	}
	return refusal.Effect, refusal
}
