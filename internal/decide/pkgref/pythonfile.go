package pkgref

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// PythonFile is what the name of a distribution file says.
type PythonFile struct {
	Project string // canonical
	Version string // canonical
	Wheel   bool   // else a source distribution
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

// IsPythonFile reports whether a name ends as an installable file's does.
func IsPythonFile(name string) bool {
	_, ok := cutSdist(name)
	return ok || strings.HasSuffix(name, ".whl")
}

func cutSdist(name string) (stem string, ok bool) {
	for _, suffix := range sdistSuffixes() {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, true
		}
	}
	return "", false
}

// ParsePythonFile takes a file's name apart. project, canonical and if not "",
// settles where an sdist's name ends, as pip does; without it the last hyphen does.
// A file of another project is refused, then.
func ParsePythonFile(name, project string) (PythonFile, error) {
	if len(name) > maxFileName || !fileChars.MatchString(name) {
		return PythonFile{}, fault.Invalid("%q is not the name of a distribution file", text.Shorten(name, maxQuoted))
	}
	var f PythonFile
	var err error
	if stem, ok := strings.CutSuffix(name, ".whl"); ok {
		f, err = parseWheel(name, stem)
	} else if stem, ok := cutSdist(name); ok {
		f, err = parseSdist(name, stem, project)
	} else {
		err = fault.Invalid("%q is neither a wheel nor a source distribution", text.Shorten(name, maxQuoted))
	}
	if err != nil {
		return PythonFile{}, err
	}
	if project != "" && f.Project != project {
		return PythonFile{}, fault.Invalid("%q is not a file of %s", text.Shorten(name, maxQuoted), project)
	}
	return f, nil
}

func parseWheel(name, stem string) (PythonFile, error) {
	parts := strings.Split(stem, "-")
	tags := len(parts) - 3
	if len(parts) != 5 && len(parts) != 6 {
		return PythonFile{}, fault.Invalid("%q does not have the parts of a wheel's name", text.Shorten(name, maxQuoted))
	}
	if len(parts) == 6 && !buildTag.MatchString(parts[2]) {
		return PythonFile{}, fault.Invalid("%q has an invalid build tag", text.Shorten(name, maxQuoted))
	}
	for _, tag := range parts[tags:] {
		if !wheelTag.MatchString(tag) {
			return PythonFile{}, fault.Invalid("%q has an invalid tag", text.Shorten(name, maxQuoted))
		}
	}
	f, err := pythonFile(name, parts[0], dashed(parts[1]))
	f.Wheel = true
	return f, err
}

// dashed is a version as it was before it was put into a wheel's name or a
// dist-info folder's, where "-" separates the parts.
func dashed(version string) string { return strings.ReplaceAll(version, "_", "-") }

func parseSdist(name, stem, project string) (PythonFile, error) {
	cut := strings.LastIndexByte(stem, '-')
	if project != "" {
		cut = nameEnd(stem, project)
	}
	if cut <= 0 {
		return PythonFile{}, fault.Invalid("%q does not separate a name from a version", text.Shorten(name, maxQuoted))
	}
	return pythonFile(name, stem[:cut], stem[cut+1:])
}

// nameEnd finds the hyphen after the project's name, however it is spelled.
func nameEnd(stem, project string) int {
	for i := range len(stem) {
		if stem[i] != '-' {
			continue
		}
		if n, ok := pythonName(stem[:i]); ok && n == project {
			return i
		}
	}
	return -1
}

func pythonFile(file, name, version string) (PythonFile, error) {
	ref, err := New(Python, name, version)
	if err != nil {
		return PythonFile{}, err
	}
	if ref.Version == "" {
		return PythonFile{}, fault.Invalid("%q has no version", text.Shorten(file, maxQuoted))
	}
	return PythonFile{Project: ref.Name, Version: ref.Version}, nil
}

// ParseDistInfo reads the name of the folder that an installed distribution is
// described in: NAME-VERSION.dist-info.
func ParseDistInfo(folder string) (Ref, bool) {
	stem, isInfo := strings.CutSuffix(folder, ".dist-info")
	name, version, ok := strings.Cut(stem, "-")
	if !ok || !isInfo {
		return Ref{}, false
	}
	ref, err := New(Python, name, dashed(version))
	return ref, err == nil
}
