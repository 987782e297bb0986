package pypi

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// distribution is what a file's name says.
type distribution struct {
	project string // canonical
	version string // canonical
	kind    policy.ArtifactKind
}

// Written once; regexps are constant.
var (
	// fileChars are what a file name may have; "!" and "+" are of versions.
	fileChars = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!-]*$`)
	wheelTag  = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)
	buildTag  = regexp.MustCompile(`^[0-9][A-Za-z0-9_.]*$`)
)

const maxFileName = 256

// sdistSuffixes are the source archives that pip or uv would install from.
func sdistSuffixes() []string {
	return []string{".tar.gz", ".zip", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma", ".tar"}
}

// isDistribution reports whether a name ends as an installable file's does.
func isDistribution(name string) bool {
	if strings.HasSuffix(name, ".whl") {
		return true
	}
	_, ok := cutSdist(name)
	return ok
}

func cutSdist(name string) (stem string, ok bool) {
	for _, suffix := range sdistSuffixes() {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, true
		}
	}
	return "", false
}

// parseFilename takes a file's name apart. project, if not "", settles where
// an sdist's name ends, as pip does; without it the last hyphen does.
func parseFilename(name, project string) (distribution, error) {
	if len(name) > maxFileName || !fileChars.MatchString(name) {
		return distribution{}, fault.Invalid("%q is not the name of a distribution file", clip(name))
	}
	var d distribution
	var err error
	if stem, ok := strings.CutSuffix(name, ".whl"); ok {
		d, err = parseWheel(name, stem)
	} else if stem, ok := cutSdist(name); ok {
		d, err = parseSdist(name, stem, project)
	} else {
		err = fault.Invalid("%q is neither a wheel nor a source distribution", clip(name))
	}
	if err != nil {
		return distribution{}, err
	}
	if project != "" && d.project != project {
		return distribution{}, fault.Invalid("%q is not a file of %s", clip(name), project)
	}
	return d, nil
}

func parseWheel(name, stem string) (distribution, error) {
	parts := strings.Split(stem, "-")
	tags := len(parts) - 3
	if len(parts) != 5 && len(parts) != 6 {
		return distribution{}, fault.Invalid("%q does not have the parts of a wheel's name", clip(name))
	}
	if len(parts) == 6 && !buildTag.MatchString(parts[2]) {
		return distribution{}, fault.Invalid("%q has a build tag that is none", clip(name))
	}
	for _, tag := range parts[tags:] {
		if !wheelTag.MatchString(tag) {
			return distribution{}, fault.Invalid("%q has a tag that is none", clip(name))
		}
	}
	// In a wheel's name "_" stands for the "-" that separates its parts.
	return named(parts[0], strings.ReplaceAll(parts[1], "_", "-"), policy.KindWheel)
}

func parseSdist(name, stem, project string) (distribution, error) {
	cut := strings.LastIndexByte(stem, '-')
	if project != "" {
		cut = nameEnd(stem, project)
	}
	if cut <= 0 {
		return distribution{}, fault.Invalid("%q does not separate a name from a version", clip(name))
	}
	return named(stem[:cut], stem[cut+1:], policy.KindSdist)
}

// nameEnd finds the hyphen after the project's name, however it is spelled.
func nameEnd(stem, project string) int {
	for i := range len(stem) {
		if stem[i] != '-' {
			continue
		}
		if n, err := pkgref.CanonicalName(pkgref.Python, stem[:i]); err == nil && n == project {
			return i
		}
	}
	return -1
}

func named(name, version string, kind policy.ArtifactKind) (distribution, error) {
	ref, err := pkgref.New(pkgref.Python, name, version)
	if err != nil {
		return distribution{}, err
	}
	if ref.Version == "" {
		return distribution{}, fault.Invalid("%q has no version", clip(name))
	}
	return distribution{project: ref.Name, version: ref.Version, kind: kind}, nil
}
