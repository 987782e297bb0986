package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref/pep440"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref/semantic"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// maxRanges bounds a withheld record. A policy has few rules that can refuse
// files of one project.
const maxRanges = 50

// version is a version that can be ordered. What its ecosystem can't parse
// comes before what it can, by its text.
type version struct {
	text     string
	parsed   bool
	isPython bool
	pep      pep440.Version
	semantic semantic.Version
}

func parseVersion(e pkgref.Ecosystem, text string) version {
	v := version{text: text}
	switch e {
	case pkgref.Python:
		v.isPython = true
		v.pep, v.parsed = pep440.Parse(text)
	case pkgref.Go:
		v.semantic, v.parsed = semantic.ParseGo(text)
	case pkgref.Node, pkgref.Rust:
		v.semantic, v.parsed = semantic.Parse(text)
	}
	return v
}

func (v version) preRelease() bool {
	if v.isPython {
		return v.pep.PreRelease()
	}
	return v.semantic.PreRelease()
}

// line names the releases that a version is one of, as a range with a caret takes them.
func (v version) line() [2]int64 {
	if v.isPython {
		return [2]int64{v.pep.Epoch(), v.pep.Segment(0)}
	}
	if major := v.semantic.Segment(0); major > 0 {
		return [2]int64{major, 0}
	}
	return [2]int64{0, v.semantic.Segment(1)}
}

func (v version) compare(o version) int {
	switch {
	case v.parsed != o.parsed && v.parsed:
		return 1
	case v.parsed != o.parsed:
		return -1
	case !v.parsed:
		return cmp.Compare(v.text, o.text)
	case v.isPython:
		return cmp.Or(v.pep.Compare(o.pep), cmp.Compare(v.text, o.text))
	}
	return cmp.Or(v.semantic.Compare(o.semantic), cmp.Compare(v.text, o.text))
}

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
	from, to version
	highest  policy.Decision  // of the highest that is required, else of the highest release, else of the version to
	of       standing         // what highest is about
	release  version          // the highest that is no pre-release; not parsed: none is
	alarm    *policy.Decision // another file than the pinned one; nil: none
	versions map[string]bool
	files    int
}

// shownVersions are those with at least one file that is shown.
func shownVersions(files []File, v *indexVerdict) map[string]bool {
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
func withheldRanges(e pkgref.Ecosystem, files []File, v *indexVerdict) ([]audit.WithheldRange, policy.Decision) {
	byRule := map[rangeKey]*versionRange{}
	parsed := map[string]version{}
	some := shownVersions(files, v)
	for i, f := range files {
		d := v.verdicts[v.ofFile[i]]
		if d.Shown() {
			continue
		}
		ver, ok := parsed[f.Version]
		if !ok {
			ver = parseVersion(e, f.Version)
			parsed[f.Version] = ver
		}
		key := rangeKey{d.Rule, some[f.Version]}
		r := byRule[key]
		if r == nil {
			r = &versionRange{rangeKey: key, from: ver, to: ver, highest: d, of: standing{version: ver}, versions: map[string]bool{}}
			byRule[key] = r
		}
		r.add(ver, d)
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
		if a.release.parsed != b.release.parsed {
			return map[bool]int{true: 1, false: -1}[a.release.parsed]
		}
		return cmp.Or(a.release.compare(b.release), a.to.compare(b.to), cmp.Compare(a.rule, b.rule))
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
			Rule: clip(r.rule, 512), From: clip(r.from.text, 256), To: clip(r.to.text, 256),
			Versions: len(r.versions), Files: r.files, Reason: clip(r.highest.Reason, 1_024),
		}
	}
	return out, highest
}

func (r *versionRange) add(v version, d policy.Decision) {
	r.files++
	if d.Alarm && d.ResolvedBy == policy.ByLockfile {
		r.alarm = &d
	}
	if !r.partial {
		r.versions[v.text] = true
	}
	if v.compare(r.from) < 0 {
		r.from = v
	}
	if v.compare(r.to) > 0 {
		r.to = v
	}
	stable, wanted := v.parsed && !v.preRelease(), len(d.WantedBy) > 0
	if stable && (!r.release.parsed || v.compare(r.release) > 0) {
		r.release = v
	}
	now := standing{wanted, stable, v}
	if now.above(r.of) {
		r.highest, r.of = d, now
	}
}

// standing is how much the decision on a version says about a range: one that
// something requires most, and then a release.
type standing struct {
	wanted, stable bool
	version        version
}

func (s standing) above(o standing) bool {
	switch {
	case s.wanted != o.wanted:
		return s.wanted
	case s.stable != o.stable:
		return s.stable
	}
	return s.version.compare(o.version) > 0
}
