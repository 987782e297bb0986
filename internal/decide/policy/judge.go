package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Decide answers one question about one file. It is a function of its
// arguments, answers whatever it is given, and never panics. The order of its
// steps is in docs/policy.md.
func (p *Policy) Decide(now time.Time, in Input) Decision {
	return p.Judge(now, in.Subject).File(in.fileFacts())
}

// Judge answers about many files of one package at one time; each answer is
// Decide's. It remembers the last versions, so it is not for several
// goroutines at once.
type Judge struct {
	policy    *Policy
	narrowed  []*Judge // by the policies that narrow it
	now       time.Time
	ecosystem pkgref.Ecosystem
	name      string
	about     Subject
	owner     string // the only upstream that may have it; "" if nobody owns it
	allowed   []listEntry
	blocked   []listEntry
	edges     []*judgedEdge
	malware   []malware
	weighing  *weighing // of the known vulnerabilities
	pins      []pin
	answers   []parsedAnswer       // of people
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
	versions    pkgref.Range
	admits      bool // its Through is an entry with with_dependencies
	prereleases bool // which the entry also admits
}

// maxEdges bounds what is listed; all edges are judged.
const maxEdges = 16

// Judge prepares for the files of a package; its version is not looked at.
// Edges of other packages are left out.
func (p *Policy) Judge(now time.Time, about Subject) *Judge {
	pkg, edges := about.Package, about.Edges
	j := &Judge{
		policy: p, now: now, ecosystem: pkg.Ecosystem, name: pkg.Name, about: about, owner: about.Owner,
		releases: map[string]*Decision{}, shared: map[sharedKey]*Decision{},
	}
	j.weighing = &weighing{judge: j, decided: map[string]Decision{}}
	for _, by := range p.narrowed {
		j.narrowed = append(j.narrowed, by.Judge(now, about))
	}
	if !pkgref.IsCanonicalName(pkg.Ecosystem, pkg.Name) {
		j.always = &Decision{
			Effect: Deny, Rule: "canonical", ResolvedBy: ByCanonical,
			Reason: "the package name is not written in its canonical form",
		}
		return j
	}
	key := packageKey{pkg.Ecosystem, pkg.Name}
	j.allowed, j.blocked = p.packages.allowed[key], p.packages.blocked[key]
	if j.owner == "" {
		j.owner, _ = OwnerOf(p.namespaces, pkg)
	}
	for _, m := range about.Malware {
		j.malware = append(j.malware, parseMalware(pkg.Ecosystem, m))
	}
	j.pins = parsePins(pkg.Ecosystem, about.Lock)
	for _, a := range about.Approvals {
		parsed := parsedAnswer{Approval: a}
		parsed.release, _ = pkgref.ParseVersion(pkg.Ecosystem, a.Version)
		j.answers = append(j.answers, parsed)
	}
	for _, e := range edges {
		if e.Name == pkg.Name && e.Parent.Ecosystem == pkg.Ecosystem && e.Parent.Name != pkg.Name {
			j.edges = append(j.edges, p.judgeEdge(pkg.Ecosystem, e))
		}
	}
	return j
}

func (p *Policy) judgeEdge(ecosystem pkgref.Ecosystem, e Edge) *judgedEdge {
	je := &judgedEdge{edge: e}
	je.versions, je.readable = pkgref.ParseRange(ecosystem, e.Specifier)
	je.admits, je.prereleases = p.through(ecosystem, e.Through)
	je.admits = je.admits && e.Unasked == ""
	return je
}

// File answers about one file of a release.
func (j *Judge) File(f FileFacts) Decision {
	return j.underNarrowing(j.ownFile(f), func(by *Judge) Decision { return by.File(f) })
}

func (j *Judge) ownFile(f FileFacts) Decision {
	if j.always != nil {
		return *j.always
	}
	if f.Kind == KindMetadata {
		return observe(j.policy, j.metadata(f))
	}
	d := j.weighing.weighRelease(observe(j.policy, *j.judgePart(f, j.release(f.Version))), f.Version)
	if d.Effect == Deny {
		return d
	}
	return j.weighAnswers(j.narrow(d, f), f)
}

// Release answers by the steps that do not look at a file, and so by nobody's
// approval. An Allow admits no file yet.
func (j *Judge) Release(version string) Decision {
	return j.underNarrowing(j.ownRelease(version), func(by *Judge) Decision { return by.Release(version) })
}

func (j *Judge) ownRelease(version string) Decision {
	if j.always != nil {
		return *j.always
	}
	return j.weighing.weighRelease(observe(j.policy, *j.release(version)), version)
}

// Name answers whether any release could be allowed (or held), before an
// index is fetched. An Allow admits no file; a Deny means that none could be.
// Version ranges are not weighed: a release may still be denied.
func (j *Judge) Name() Decision { return j.underNarrowing(j.ownName(), (*Judge).Name) }

func (j *Judge) ownName() Decision { return j.weighing.anyRelease(observe(j.policy, j.judgeName())) }

func (j *Judge) judgeName() Decision {
	if j.always != nil {
		return *j.always
	}
	if d := j.refusedName(); d != nil {
		return *d
	}
	if d := j.lockedName(); d != nil {
		return *d
	}
	switch {
	case len(j.pins) > 0 && j.about.Lock.Trusted:
		return Decision{Effect: Allow, Rule: ruleLockfile, ResolvedBy: ByLockfile, Reason: shortName(j.name) + " is in a lockfile that the policy trusts", Pinned: j.pinnedVersions()}
	case len(j.allowed) > 0:
		return Decision{
			Effect: Allow, Rule: entryRule("allowed_packages", j.ecosystem, j.name), ResolvedBy: ByAllowlist,
			Reason: shortName(j.name) + " is on the allowlist", Through: j.ownThrough(),
		}
	}
	if e := j.admittingEdge(); e != nil {
		return j.dependencyDecision(e)
	}
	d := j.unlisted(j.edges)
	if d.Effect != Allow && j.about.Lookalike == nil {
		s := suggestion{ecosystem: j.ecosystem, name: j.name}
		if more, ok := j.wanting(j.edges); ok {
			s = more
		}
		d.Suggest = s.document()
	}
	return d
}

// admittingEdge is an edge that admits some release; nil: there is none.
func (j *Judge) admittingEdge() *judgedEdge {
	for _, e := range j.edges {
		if e.admits && e.readable {
			return e
		}
	}
	return nil
}

// refusedName is what no version escapes: the blocklist, an advisory, another
// upstream than the name's own, an unknown one included; nil: nothing.
func (j *Judge) refusedName() *Decision {
	var d Decision
	if j.blockedWhole() {
		d = j.blockedDecision(listEntry{})
	} else if m, burnt := j.findBurnt(); burnt {
		d = j.malwareDecision(m)
	} else if j.owner != "" && !SameUpstream(j.about.Upstream, j.owner) {
		d = j.namespaceDecision()
	} else {
		return nil
	}
	return &d
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
// blocklist, malware, namespace, lockfile, allowlist, dependency edges, default.
func (j *Judge) judgeRelease(version string) *Decision {
	r, _ := pkgref.ParseVersion(j.ecosystem, version)
	if !r.Canonical() {
		d := j.notCanonical()
		return &d
	}
	if d := j.refusedRelease(r); d != nil {
		return d
	}
	if j.about.Lock != nil {
		wanted := j.wanted(r)
		d := j.trusted(r, wanted)
		if d == nil {
			judged := j.judgeListed(j.sharedKeyOf(r), r, wanted)
			d = &judged
		}
		d.Pinned = j.pinnedVersionOf(r)
		return d
	}
	key := j.sharedKeyOf(r)
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

func (j *Judge) notCanonical() Decision {
	return Decision{
		Effect: Deny, Rule: "canonical", ResolvedBy: ByCanonical,
		Reason: "the version of " + shortName(j.name) + " is not written in its canonical form",
	}
}

// refusedRelease is the refusal by a list, an advisory, a namespace or a
// lockfile; nil: there is none.
func (j *Judge) refusedRelease(r pkgref.Version) *Decision {
	for _, b := range j.blocked {
		if b.versions.Covers(r) {
			d := j.blockedDecision(b)
			return &d
		}
	}
	for _, m := range j.malware {
		if m.coversVersion(r) {
			d := j.malwareDecision(m)
			return &d
		}
	}
	if d := j.refusedName(); d != nil {
		return d
	}
	return j.lockedRelease(r)
}

func (j *Judge) sharedKeyOf(r pkgref.Version) sharedKey {
	key := sharedKey{entry: unlisted, pre: r.PreRelease(), epoch: r.Epoch(), major: r.Segment(0), minor: r.Segment(1)}
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

func (j *Judge) judgeListed(key sharedKey, r pkgref.Version, wanted []*judgedEdge) Decision {
	switch key.entry {
	case unlisted:
		return j.judgeUnlisted(r, wanted)
	case noEntry:
		return j.outsideDecision(key.limit, r, wanted)
	}
	return j.entryDecision(&j.allowed[key.entry], r, wanted)
}

// wanted are the edges that this release would satisfy, or whose specifier
// nobody can read.
func (j *Judge) wanted(r pkgref.Version) []*judgedEdge {
	var wanted []*judgedEdge
	for _, e := range j.edges {
		if e.satisfiedBy(r) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// judgeUnlisted judges a name that only edges or the default can admit.
func (j *Judge) judgeUnlisted(r pkgref.Version, wanted []*judgedEdge) Decision {
	named := len(j.pins) > 0 // by now the release is pinned
	for _, e := range wanted {
		if e.admitsRelease(r) {
			d := j.dependencyDecision(e)
			d.WantedBy = edgesOf(wanted)
			return d
		}
		named = named || e.namesPreRelease(r)
	}
	if e := j.admittingEdge(); j.about.Listing && e != nil && (j.ecosystem.Traits().SeveralVersions || j.isBelowAdmitted(r)) && !r.PreRelease() {
		d := j.dependencyDecision(e)
		d.Through = ""
		return d
	}
	d := j.unlisted(wanted)
	switch edge := j.admittingEdge() != nil; {
	case r.PreRelease() && !named && (d.Effect != Deny || edge && d.Rule == ruleDefault):
		d = Decision{Effect: Deny, Rule: rulePrereleases, ResolvedBy: ByDefault, WantedBy: d.WantedBy}
		d.Reason = "this version of " + shortName(j.name) + " is a pre-release, which only an entry with prereleases: true allows"
	case edge && len(wanted) == 0 && d.Rule == ruleDefault && d.Effect == Deny:
		d.Reason = reason("this version of %s is outside what is required: %s", shortName(j.name), j.requirers())
	}
	if d.Effect != Allow && j.about.Lookalike == nil {
		s, ok := j.wanting(wanted)
		if !ok || r.PreRelease() {
			s = addition(j.ecosystem, j.name, r)
		}
		d.Suggest = s.document()
	}
	return d
}

// requirers names who requires which versions, a few of them, and each once.
func (j *Judge) requirers() string {
	const most = 3
	var all []string
	for _, e := range j.edges {
		if !e.admits || !e.readable {
			continue
		}
		who := shortName(e.edge.Parent.Name) + " requires " + cmp.Or(plainASCII(e.edge.Specifier, 20), "any")
		switch {
		case slices.Contains(all, who):
			continue
		case len(all) == most:
			return strings.Join(all, ", ") + ", ..."
		}
		all = append(all, who)
	}
	return strings.Join(all, ", ")
}

// isBelowAdmitted tells whether a page shows a release since a higher one is admitted.
func (j *Judge) isBelowAdmitted(r pkgref.Version) bool {
	highest, ok := pkgref.ParseVersion(j.ecosystem, j.about.Below)
	return ok && j.ecosystem.Traits().Backtracks && r.Compare(highest) <= 0
}

// unlisted is for a name that no list has and no edge admits: toolchains and
// names near to a popular one are classes of their own.
func (j *Judge) unlisted(wanted []*judgedEdge) Decision {
	if j.about.Toolchain {
		return j.toolchainDecision(wanted)
	}
	d := j.defaultDecision(wanted)
	if j.about.Lookalike != nil && !j.about.Declared {
		return j.lookalikeDecision(d)
	}
	return d
}
