package policy

import (
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// listEntry is one package of a list.
type listEntry struct {
	line             int
	versions         pkgref.Range // matches all if absent
	versionText      string       // as written; "" if absent
	limit            limit        // of max_version
	limitText        string
	withDependencies bool
	prereleases      bool
	installScripts   bool
	accepted         []string // vulnerabilities that do not count, by any of their ids
	extras           []string // of a Python package, whose requirements count too; sorted
}

// limit is a max_version. The zero value is none.
type limit struct {
	most  pkgref.Range // of a whole version
	cap   []int64      // of "2.x": the highest leading segments; nil if none
	epoch int64        // of the cap
}

// parseLimit reads a max_version: "2.x" or "2.1.x" caps by leading segments,
// nothing of the next one included, its pre-releases least of all; a whole
// version is the highest.
func parseLimit(ecosystem pkgref.Ecosystem, text string) (limit, bool) {
	leading, wild := cutWildcard(text)
	var l limit
	if !wild {
		var ok bool
		l.most, ok = pkgref.AtMost(ecosystem, text)
		return l, ok
	}
	if ecosystem.Traits().Epochs {
		if epoch, rest, found := strings.Cut(leading, "!"); found {
			n, ok := segment(epoch)
			if !ok {
				return limit{}, false
			}
			l.epoch, leading = n, rest
		}
	} else {
		leading = strings.TrimPrefix(leading, "v")
	}
	for part := range strings.SplitSeq(leading, ".") {
		n, ok := segment(part)
		if !ok || len(l.cap) == 8 {
			return limit{}, false
		}
		l.cap = append(l.cap, n)
	}
	return l, true
}

func cutWildcard(text string) (leading string, found bool) {
	for _, suffix := range [...]string{".x", ".X", ".*"} {
		if leading, found = strings.CutSuffix(text, suffix); found {
			return leading, true
		}
	}
	return text, false
}

func segment(s string) (int64, bool) {
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// admits weighs a pre-release by its order.
func (l *limit) admits(v pkgref.Version) bool {
	if l.cap != nil && !l.underCap(v) {
		return false
	}
	return l.most.Match(v)
}

func (l *limit) underCap(v pkgref.Version) bool {
	if v.Epoch() != l.epoch {
		return v.Epoch() < l.epoch
	}
	for i, most := range l.cap {
		if n := v.Segment(i); n != most {
			return n < most
		}
	}
	return true
}

// rangeHas is whether a range has a version. npm's ranges have a say of their own in
// pre-releases: without preReleases they match those only that they name.
func rangeHas(r pkgref.Range, v pkgref.Version, preReleases bool) bool {
	if preReleases {
		return r.MatchPreReleases(v)
	}
	return r.Match(v)
}
