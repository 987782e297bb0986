package npm

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

const latestTag = "latest"

// ladder are the versions that a tag may point to, each list ascending.
type ladder struct {
	has    map[string]bool
	stable []pkgref.Version
	pre    []pkgref.Version
}

// ladderOf makes a ladder of the files that pass.
func ladderOf(ix *ecosystem.Index, pass func(i int) bool) ladder {
	l := ladder{has: make(map[string]bool, len(ix.Files))}
	for i, f := range ix.Files {
		if !pass(i) {
			continue
		}
		n, ok := pkgref.ParseVersion(pkgref.Node, f.Version)
		if !ok {
			continue // not reached: versions of an index are canonical
		}
		l.has[f.Version] = true
		if n.PreRelease() {
			l.pre = append(l.pre, n)
		} else {
			l.stable = append(l.stable, n)
		}
	}
	for _, versions := range [][]pkgref.Version{l.stable, l.pre} {
		slices.SortFunc(versions, pkgref.Version.CompareSpelled)
	}
	return l
}

// tagTarget returns where a tag points whose registry has it at target: there, or at
// the highest version below it, a pre-release only if there is nothing else. ""
// if there is nothing: a tag never climbs.
func (l ladder) tagTarget(target string) string {
	if l.has[target] {
		return target
	}
	n, ok := pkgref.ParseVersion(pkgref.Node, target)
	if !ok {
		return ""
	}
	for _, versions := range [][]pkgref.Version{l.stable, l.pre} {
		i, _ := slices.BinarySearchFunc(versions, n, func(o, n pkgref.Version) int {
			if o.Compare(n) <= 0 {
				return -1
			}
			return 1
		})
		if i > 0 {
			return versions[i-1].String()
		}
	}
	return ""
}

// topVersion is the highest version, a pre-release only if there is nothing else.
func (l ladder) topVersion() string {
	for _, versions := range [][]pkgref.Version{l.stable, l.pre} {
		if len(versions) > 0 {
			return versions[len(versions)-1].String()
		}
	}
	return ""
}

// pointed gives all tags that point to something. `latest` is there whenever
// there is a version, since npm installs nothing from a page without it.
func (l ladder) pointed(tags map[string]string) map[string]string {
	out := make(map[string]string, len(tags)+1)
	for tag, target := range tags {
		if !tagName.MatchString(tag) {
			continue
		}
		if to := l.tagTarget(target); to != "" {
			out[tag] = to
		}
	}
	if out[latestTag] == "" {
		if to := l.topVersion(); to != "" {
			out[latestTag] = to
		}
	}
	return out
}

// listedTags are a page's tags as far as they can point to what the index lists.
func listedTags(ix *ecosystem.Index, tags map[string]string) map[string]string {
	out := ladderOf(ix, func(int) bool { return true }).pointed(tags)
	if len(out) == 0 {
		return nil
	}
	return out
}
