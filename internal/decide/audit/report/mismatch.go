package report

import (
	"context"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// versionMismatch finds installs of a version that was not asked for: by a pin of
// the run's lockfiles (or of those that the question gives), or by the specifier
// in the record. A version that can't be compared, as a tag like "latest", is unjudged.
func versionMismatch(ctx context.Context, a *asking) error {
	reasons, unclear, compared := map[int64]string{}, []int64{}, []int64{}
	err := a.shapes(ctx, func(s shape) error {
		ref, err := a.releaseOfShape(ctx, s)
		if err != nil {
			return err
		}
		baseline, err := a.baseline(ctx, s.locks)
		if err != nil {
			return err
		}
		pins := 0
		if baseline != nil {
			if lock := baseline.For(ref); lock != nil && len(lock.Pins) > 0 {
				if pins = len(lock.Pins); len(pinned(ref, lock.Pins)) == 0 {
					reasons[s.id] = "pinned: " + versions(lock.Pins)
					return nil
				}
			}
		}
		wanted, err := a.textByID(ctx, s.requested)
		if err != nil {
			return err
		}
		switch meets, known := satisfies(ref, wanted); {
		case wanted == "" && pins == 0:
			return nil
		case wanted == "" || meets:
			compared = append(compared, s.id)
		case !known:
			unclear = append(unclear, s.id)
		default:
			reasons[s.id] = "requested: " + wanted
		}
		return nil
	}, "requested <> 0 OR locks <> 0 OR ?", []any{a.question.Baseline != nil}, audit.Installed)
	if err != nil {
		return err
	}
	if err := a.list(ctx, reasons, "package", "version", "requested"); err != nil {
		return err
	}
	return mismatchVerdict(ctx, a, compared, unclear)
}

// mismatchVerdict says what came of the installs that could be compared, and of how many
// others that is unclear.
func mismatchVerdict(ctx context.Context, a *asking, compared, unclear []int64) error {
	same, err := a.counted(ctx, compared)
	if err != nil {
		return err
	}
	if a.report.Unjudged, err = a.counted(ctx, unclear); err != nil {
		return err
	}
	all, runs, err := a.weighed(ctx, false, true)
	if err != nil {
		return err
	}
	judged := same + a.report.Found
	a.report.Verdict = fmt.Sprintf("No other version than was pinned or requested in %s with a pin or a request, of %s in %s.", countOf(judged, "install"), formatCount(all), countOf(runs, "run"))
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s in another version than was pinned or requested, of %s with a pin or a request, of %s in %s.",
			countOf(a.report.Found, "install"), countOf(judged, "install"), formatCount(all), countOf(runs, "run"))
	}
	if a.report.Unjudged > 0 {
		a.report.Verdict += fmt.Sprintf(" %s could not be compared: the request is not a range of versions.", countOf(a.report.Unjudged, "install"))
	}
	return nil
}

// satisfies reports whether a release is what was wanted, and whether that can be
// told: "latest" is no range of versions.
func satisfies(ref pkgref.Ref, wanted string) (meets, known bool) {
	if wanted == "" {
		return true, true
	}
	if pkgref.SameVersion(ref.Ecosystem, wanted, ref.Version) {
		return true, true
	}
	v, valid := pkgref.ParseVersion(ref.Ecosystem, ref.Version)
	if r, ok := pkgref.ParseRange(ref.Ecosystem, wanted); ok && valid {
		return r.MatchPreReleases(v), true
	}
	_, exact := pkgref.ParseVersion(ref.Ecosystem, wanted)
	return false, exact && valid
}
