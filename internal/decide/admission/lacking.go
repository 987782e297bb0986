package admission

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// lacking are the specifiers of requirements of a project that no release on its page satisfies of those that
// are shown, and that one does which is withheld. One that can't be read lacks
// something only if nothing is shown.
func lacking(edges []policy.Edge, files []door.File, v *indexVerdict) map[string]bool {
	if len(edges) == 0 || len(v.withheld) == 0 {
		return nil
	}
	shown, withheld := parsedVersions(v.key.pkg.Ecosystem, files, shownVersions(files, v))
	looked, out := map[string]bool{}, map[string]bool{}
	for _, e := range edges {
		if looked[e.Specifier] {
			continue
		}
		looked[e.Specifier] = true
		within, readable := pkgref.ParseRange(v.key.pkg.Ecosystem, e.Specifier)
		if !readable && len(shown) == 0 || readable && !slices.ContainsFunc(shown, within.Match) && slices.ContainsFunc(withheld, within.MatchPreReleases) {
			out[e.Specifier] = true
		}
	}
	return out
}

// parsedVersions are the versions of files, those of some apart from the others.
func parsedVersions(e pkgref.Ecosystem, files []door.File, some map[string]bool) (in, out []pkgref.Version) {
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Version] {
			continue
		}
		seen[f.Version] = true
		v, ok := pkgref.ParseVersion(e, f.Version)
		switch {
		case !ok:
		case some[f.Version]:
			in = append(in, v)
		default:
			out = append(out, v)
		}
	}
	return in, out
}
