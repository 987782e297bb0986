package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// The rules of lockfiles.
const (
	ruleLockfile   = "packages.lockfile"
	ruleLockDigest = "packages.lockfile.digest"
)

// pin is a Pin with its version parsed.
type pin struct {
	Pin
	release pkgref.Version
}

func parsePins(ecosystem pkgref.Ecosystem, lock *Lock) []pin {
	if lock == nil {
		return nil
	}
	pins := make([]pin, len(lock.Pins))
	for i, p := range lock.Pins {
		pins[i].Pin = p
		pins[i].release, _ = pkgref.ParseVersion(ecosystem, p.Version)
	}
	return pins
}

func (p *pin) isOfRelease(r pkgref.Version) bool { return r.Same(p.release) }

// pinned are the pins of a release: those with digests of its files, or with
// metadata those with digests of that.
func (j *Judge) pinned(r pkgref.Version, metadata bool) []pin {
	var pins []pin
	for i := range j.pins {
		p := &j.pins[i]
		if p.isOfRelease(r) && (len(p.Digests) > 0 && !metadata || len(p.Metadata) > 0 && metadata) {
			pins = append(pins, *p)
		}
	}
	return pins
}

// pinnedVersions lists the versions in which the package is pinned.
func (j *Judge) pinnedVersions() string {
	var versions []string
	for _, p := range j.pins {
		if len(p.Digests) > 0 && !slices.Contains(versions, p.Version) {
			versions = append(versions, plainASCII(p.Version, 40))
		}
	}
	const most = 3
	if len(versions) > most {
		return strings.Join(versions[:most], ", ") + ", ..."
	}
	return strings.Join(versions, ", ")
}

// pinnedVersionOf is the release's version as a lockfile writes it, "" if none
// pins it.
func (j *Judge) pinnedVersionOf(r pkgref.Version) string {
	if pins := j.pinned(r, false); len(pins) > 0 {
		return plainASCII(pins[0].Version, 80)
	}
	return ""
}

func (p Pin) placeOf() string { return lineOf(p.Lockfile, p.Line) }

// lineOf is "package-lock.json line 12".
func lineOf(lockfile string, line int) string {
	where := plainASCII(lockfile[strings.LastIndexByte(lockfile, '/')+1:], 40)
	if line > 0 {
		where += " line " + strconv.Itoa(line)
	}
	return where
}

// unpinned is the refusal of what an entry names that can be held to no file.
func (j *Judge) unpinned(u Unpinned) *Decision {
	return j.lockRefusal("%s in %s %s, so nothing says which file is meant", shortName(j.name), lineOf(u.Lockfile, u.Line), plainASCII(u.Reason, 80))
}

func (j *Judge) lockRefusal(format string, args ...any) *Decision {
	return &Decision{Effect: Deny, Rule: ruleLockfile, ResolvedBy: ByLockfile, Reason: reason(format, args...), Pinned: j.pinnedVersions()}
}

// lockedName is the refusal of a name that the lockfiles leave out; nil: none.
func (j *Judge) lockedName() *Decision {
	switch {
	case j.about.Lock == nil && j.policy.packages.locked[j.ecosystem]:
		return j.lockRefusal("packages.lockfile names a lockfile of %s, and this run was given none", j.ecosystem)
	case j.about.Lock == nil || len(j.pins) > 0:
		return nil
	case len(j.about.Lock.Unpinned) > 0:
		return j.unpinned(j.about.Lock.Unpinned[0])
	case j.about.Lock.Mode == LockPrefer:
		return nil
	}
	return j.lockRefusal("%s is in none of this run's lockfiles, and they are frozen", shortName(j.name))
}

// lockedRelease is the refusal of a release that the lockfiles leave out.
func (j *Judge) lockedRelease(r pkgref.Version) *Decision {
	if d := j.lockedName(); d != nil {
		return d
	}
	if len(j.pins) == 0 || len(j.pinned(r, false)) > 0 {
		return nil
	}
	for _, u := range j.about.Lock.Unpinned {
		if version, ok := pkgref.ParseVersion(j.ecosystem, u.Version); ok && r.Same(version) {
			return j.unpinned(u)
		}
	}
	if versions := j.pinnedVersions(); versions != "" {
		return j.lockRefusal("this version of %s is not the one in %s (%s)", shortName(j.name), j.pins[0].placeOf(), versions)
	}
	return j.lockRefusal("%s has no digest of any file of %s", j.pins[0].placeOf(), shortName(j.name))
}

// judgeDigest compares a file with the digests of its pins.
func (j *Judge) judgeDigest(f FileFacts, d Decision) Decision {
	if len(j.pins) == 0 {
		return Decision{}
	}
	r, _ := pkgref.ParseVersion(j.ecosystem, f.Version) // it was judged before
	pins := j.pinned(r, false)
	if len(pins) == 0 {
		return Decision{} // no lockfile has this release, which a policy that observes lets through
	}
	switch compareDigests(pins, f.Digests, func(p pin) []string { return p.Digests }) {
	case digestSame:
		return Decision{}
	case digestOther:
		return j.otherDigest(pins[0], d.Pinned)
	case digestOpen:
	}
	if !f.Complete {
		return Decision{}
	}
	refusal := j.otherDigest(pins[0], d.Pinned)
	refusal.Alarm = false
	refusal.Reason = reason("the digest of %s in %s is of a kind that can not be compared", shortName(j.name), pins[0].placeOf())
	return refusal
}

func (j *Judge) otherDigest(p pin, versions string) Decision {
	return Decision{
		Effect: Deny, Rule: ruleLockDigest, ResolvedBy: ByLockfile, Alarm: true, Pinned: versions,
		Reason: reason("this file of %s is not the pinned one: its digest is not the one in %s", shortName(j.name), p.placeOf()),
	}
}

// digestRelation is what is known of a file and a lockfile's digests.
type digestRelation int

const (
	digestOpen  digestRelation = iota // no kind of digest is known of both
	digestSame                        // one of them is the file's
	digestOther                       // none is
)

// compareDigests counts only digests that nobody can forge.
func compareDigests(pins []pin, digests []string, of func(pin) []string) digestRelation {
	relation := digestOpen
	for _, p := range pins {
		for _, want := range of(p) {
			kind := strongKind(want)
			for _, got := range digests {
				if kind == "" || strongKind(got) != kind {
					continue
				}
				if got == want {
					return digestSame
				}
				relation = digestOther
			}
		}
	}
	return relation
}

// StrongDigest tells whether nobody can forge a digest ("algorithm:<hex>"):
// sha256 and up, and Go's h1.
func StrongDigest(digest string) bool { return strongKind(digest) != "" }

// strongKind is the algorithm of a digest that nobody can forge; "" of others.
func strongKind(digest string) string {
	kind, _, _ := strings.Cut(digest, ":")
	switch kind {
	case "sha256", "sha384", "sha512", "h1":
		return kind
	}
	return ""
}

// trusted is the allowance of a release in a trusted lockfile, which stands for
// the allowlist.
func (j *Judge) trusted(r pkgref.Version, wanted []*judgedEdge) *Decision {
	if j.about.Lock == nil || !j.about.Lock.Trusted {
		return nil
	}
	pins := j.pinned(r, false)
	if len(pins) == 0 {
		return nil
	}
	d := &Decision{
		Effect: Allow, Rule: ruleLockfile, ResolvedBy: ByLockfile, WantedBy: edgesOf(wanted),
		Reason: reason("%s is in %s, which the policy trusts", shortName(j.name), pins[0].placeOf()),
	}
	for i := range j.allowed {
		if e := &j.allowed[i]; e.withDependencies && e.admits(r) {
			d.Through = j.entryThrough(e)
			return d
		}
	}
	d.Through = admittingThrough(wanted, r)
	return d
}
