package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// notInLockfile finds installs that the baseline does not pin: the lockfiles that the question
// gives, else each run's own. A run that had none has nothing to be compared with: its installs are
// unjudged, as are those of runs whose lockfiles are not at hand any more. A package that came
// inside of another release, with the template, or was written in the sandbox is nothing that a
// lockfile would name.
func notInLockfile(ctx context.Context, a *asking) error {
	reasons, without, missing := map[int64]string{}, []int64{}, []int64{}
	err := a.shapes(ctx, func(s shape) error {
		baseline, err := a.baseline(ctx, s.locks)
		if err != nil {
			return err
		}
		switch {
		case baseline == nil && s.locks == 0:
			without = append(without, s.id)
		case baseline == nil:
			missing = append(missing, s.id)
		default:
			why, err := a.outside(ctx, s, baseline)
			if why != "" {
				reasons[s.id] = why
			}
			return err
		}
		return nil
	}, "flags & ? = 0", []any{index.FlagBrought}, audit.Installed)
	if err != nil {
		return err
	}
	if err := a.list(ctx, reasons, "package", "version", "requested", "sha256"); err != nil {
		return err
	}
	had, err := a.counted(ctx, without)
	if err != nil {
		return err
	}
	gone, err := a.counted(ctx, missing)
	if err != nil {
		return err
	}
	a.report.Unjudged = had + gone
	all, runs, err := a.weighed(ctx, false, true)
	if err != nil {
		return err
	}
	a.report.Verdict = lockVerdict(a.report.Found, all, runs, had, gone)
	return nil
}

func lockVerdict(found, all, runs, without, missing int) string {
	judged := all - without - missing
	verdict := fmt.Sprintf("Nothing outside the baseline in %s that could be compared, of %s in %s.", countOf(judged, "install"), formatCount(all), countOf(runs, "run"))
	if found > 0 {
		verdict = fmt.Sprintf("%s outside the baseline in %s that could be compared, of %s in %s.", formatCount(found), countOf(judged, "install"), formatCount(all), countOf(runs, "run"))
	}
	if without > 0 {
		verdict += fmt.Sprintf(" %s of runs that had no lockfile could not be compared; --lockfile FILE does it.", countOf(without, "install"))
	}
	if missing > 0 {
		verdict += fmt.Sprintf(" %s could not be compared because the runs' lockfiles are not at hand; --lockfile FILE gives them.", countOf(missing, "install"))
	}
	return verdict
}

// baseline finds the lockfiles with a digest's number; nil if there are none to
// compare with.
func (a *asking) baseline(ctx context.Context, locks int64) (Baseline, error) {
	if a.question.Baseline != nil {
		return a.question.Baseline, nil
	}
	if b, known := a.baselines[locks]; known || locks == 0 || a.config.Lockfiles == nil {
		return b, nil
	}
	digest, err := a.textByID(ctx, locks)
	if err != nil {
		return nil, err
	}
	b, err := a.config.Lockfiles(digest)
	if err != nil {
		b = nil // not kept any more, or spoilt: either way it is no baseline
	}
	a.baselines[locks] = b
	return b, nil
}

// releaseOfShape is the release of a shape.
func (a *asking) releaseOfShape(ctx context.Context, s shape) (pkgref.Ref, error) {
	var parts [3]string
	for i, id := range []int64{s.ecosystem, s.project, s.version} {
		var err error
		if parts[i], err = a.textByID(ctx, id); err != nil {
			return pkgref.Ref{}, err
		}
	}
	return pkgref.Ref{Ecosystem: pkgref.Ecosystem(parts[0]), Name: parts[1], Version: parts[2]}, nil
}

// outside says why a shape's release is not in a baseline, "" if it is.
func (a *asking) outside(ctx context.Context, s shape, baseline Baseline) (string, error) {
	ref, err := a.releaseOfShape(ctx, s)
	if err != nil {
		return "", err
	}
	lock := baseline.For(ref)
	if lock == nil {
		return "the baseline has no lockfile for " + string(ref.Ecosystem), nil
	}
	if len(lock.Pins) == 0 {
		return "the baseline does not have it", nil
	}
	pins := pinned(ref, lock.Pins)
	if len(pins) == 0 {
		return "the baseline pins " + versions(lock.Pins), nil
	}
	digest, err := a.textByID(ctx, s.sha256)
	if err != nil || digest == "" {
		return "", err // never served: another report's matter
	}
	sameKind := false
	for _, p := range pins {
		for _, d := range p.Digests {
			if d == "sha256:"+digest {
				return "", nil
			}
			sameKind = sameKind || strings.HasPrefix(d, "sha256:")
		}
	}
	if sameKind {
		return "the baseline pins other files of this version", nil
	}
	return "", nil
}

// pinned are the pins of a release's version.
func pinned(ref pkgref.Ref, pins []policy.Pin) []policy.Pin {
	var same []policy.Pin
	for _, p := range pins {
		if pkgref.SameVersion(ref.Ecosystem, p.Version, ref.Version) {
			same = append(same, p)
		}
	}
	return same
}

func versions(pins []policy.Pin) string {
	var all []string
	for _, p := range pins {
		if !slices.Contains(all, p.Version) {
			all = append(all, p.Version)
		}
	}
	return strings.Join(all, ", ")
}
