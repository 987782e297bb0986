package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// maxRanges bounds a withheld record. A policy has few rules that can refuse
// files of one project.
const maxRanges = 50

// rangeKey tells ranges apart. A version of which another file is shown is
// not withheld: only a file of it is (its source distribution, say), which is
// told in a range of no versions.
type rangeKey struct {
	rule    string
	partial bool
}

// versionRange collects what one rule withholds.
type versionRange struct {
	rangeKey
	from, to pkgref.Version
	highest  policy.Decision  // of the highest that is required, else of the highest release, else of the version to
	of       standing         // what highest is about
	release  pkgref.Version   // the highest that is no pre-release; the zero value: none is
	alarm    *policy.Decision // another file than the pinned one; nil: none
	versions map[string]bool
	files    int
}

// shownVersions are those with at least one file that is shown.
func shownVersions(files []door.File, v *indexVerdict) map[string]bool {
	some := map[string]bool{}
	for i, f := range files {
		if v.verdicts[v.ofFile[i]].Shown() {
			some[f.Version] = true
		}
	}
	return some
}

// withheldRanges sums up the refused files, a range for each rule, the one that
// reaches the highest release last, and returns the decision that says most: an
// alarm about a lockfile's digest, else that release's. Ranges of no versions
// come first, then those of pre-releases only, which few people want.
func withheldRanges(e pkgref.Ecosystem, files []door.File, v *indexVerdict) ([]audit.WithheldRange, policy.Decision) {
	byRule := map[rangeKey]*versionRange{}
	parsed := map[string]pkgref.Version{}
	some := shownVersions(files, v)
	for i, f := range files {
		d := v.verdicts[v.ofFile[i]]
		if d.Shown() {
			continue
		}
		ver, ok := parsed[f.Version]
		if !ok {
			ver, _ = pkgref.ParseVersion(e, f.Version)
			parsed[f.Version] = ver
		}
		key := rangeKey{d.Rule, some[f.Version]}
		r := byRule[key]
		if r == nil {
			r = &versionRange{rangeKey: key, from: ver, to: ver, highest: d, of: standing{version: ver}, versions: map[string]bool{}}
			byRule[key] = r
		}
		r.addVersion(ver, d)
	}
	return inOrder(byRule)
}

func inOrder(byRule map[rangeKey]*versionRange) ([]audit.WithheldRange, policy.Decision) {
	ranges := make([]*versionRange, 0, len(byRule))
	for _, r := range byRule {
		ranges = append(ranges, r)
	}
	slices.SortFunc(ranges, func(a, b *versionRange) int {
		if a.partial != b.partial {
			return map[bool]int{true: -1, false: 1}[a.partial]
		}
		if a.release.Readable() != b.release.Readable() {
			return map[bool]int{true: 1, false: -1}[a.release.Readable()]
		}
		return cmp.Or(a.release.CompareSpelled(b.release), a.to.CompareSpelled(b.to), cmp.Compare(a.rule, b.rule))
	})
	if len(ranges) == 0 {
		return nil, policy.Decision{}
	}
	highest := ranges[len(ranges)-1].highest
	for _, r := range ranges {
		if r.alarm != nil { // whatever else is withheld
			highest = *r.alarm
		}
	}
	if len(ranges) > maxRanges {
		ranges = ranges[len(ranges)-maxRanges:]
	}
	out := make([]audit.WithheldRange, len(ranges))
	for i, r := range ranges {
		out[i] = audit.WithheldRange{
			Rule: redact.Cut(r.rule, 512), From: redact.Cut(r.from.String(), 256), To: redact.Cut(r.to.String(), 256),
			Versions: len(r.versions), Files: r.files, Reason: redact.Cut(r.highest.Reason, 1_024),
		}
	}
	return out, highest
}

func (r *versionRange) addVersion(v pkgref.Version, d policy.Decision) {
	r.files++
	if d.Alarm && d.ResolvedBy == policy.ByLockfile {
		r.alarm = &d
	}
	if !r.partial {
		r.versions[v.String()] = true
	}
	if v.CompareSpelled(r.from) < 0 {
		r.from = v
	}
	if v.CompareSpelled(r.to) > 0 {
		r.to = v
	}
	stable, wanted := v.Stable(), len(d.WantedBy) > 0
	if stable && (!r.release.Readable() || v.CompareSpelled(r.release) > 0) {
		r.release = v
	}
	now := standing{wanted, stable, v}
	if now.isAbove(r.of) {
		r.highest, r.of = d, now
	}
}

// standing is how much the decision on a version says about a range: one that
// something requires most, and then a release.
type standing struct {
	wanted, stable bool
	version        pkgref.Version
}

func (s standing) isAbove(o standing) bool {
	switch {
	case s.wanted != o.wanted:
		return s.wanted
	case s.stable != o.stable:
		return s.stable
	}
	return s.version.CompareSpelled(o.version) > 0
}
