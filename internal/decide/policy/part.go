package policy

import "github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"

// judgePart judges a release that others of its project are made of. Some publish what a
// release has for one platform as a pre-release of the same number (1.2.3-linux-x64),
// which 1.2.3 requires exactly. Nobody asks for such a release by itself, and its
// version is in nobody's range: it is let in, held or refused as the release is that it
// is a part of, by all that looks at a version. Rules that look at its file still do, and
// what refuses its own version by a list, an advisory or a lockfile stands.
func (j *Judge) judgePart(f FileFacts, own *Decision) *Decision {
	if own.Effect != Deny || own.ResolvedBy != ByAllowlist && own.ResolvedBy != ByDefault {
		return own
	}
	r, ok := pkgref.ParseVersion(j.ecosystem, f.Version)
	if !ok || !r.PreRelease() {
		return own
	}
	for _, version := range f.PartOf[:min(len(f.PartOf), maxWholes)] {
		whole, ok := pkgref.ParseVersion(j.ecosystem, version)
		if !ok || version == f.Version || !r.SameNumbers(whole) {
			continue
		}
		d := *j.release(version)
		switch d.Effect {
		case Allow:
			d.Reason = reason("it is a part of %s %s, which requires exactly it", shortName(j.name), plainASCII(version, 40))
		case Hold:
		case Deny:
			continue
		default:
			continue
		}
		return &d
	}
	return own
}

// maxWholes bounds how many releases one can be a part of.
const maxWholes = 16
