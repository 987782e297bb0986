package pkgref

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// maxName bounds a name before anything looks at it. npm's own limit is 214;
// Go module paths are longer.
const (
	maxName       = 214
	maxModulePath = 500
	maxVersion    = 256
)

// Ecosystems are those that a document may name, in the order of documentation.
func Ecosystems() []Ecosystem {
	var all []Ecosystem
	for _, f := range families() {
		all = append(all, f.ecosystem())
	}
	return all
}

// ParseEcosystem accepts exactly the names that policy documents use.
func ParseEcosystem(s string) (Ecosystem, error) {
	if f := familyOf(Ecosystem(s)); f != nil {
		return f.ecosystem(), nil
	}
	var names []string
	for _, e := range Ecosystems() {
		names = append(names, string(e))
	}
	if f := familyCalled(s); f != nil {
		return "", fault.Invalid("%q is no ecosystem; here it is %s", text.Shorten(s, maxQuoted), f.ecosystem())
	}
	return "", fault.Invalid("%q is no ecosystem; write %s", text.Shorten(s, maxQuoted), listed(names, "or"))
}

// EcosystemCalled also accepts what people call an ecosystem: its clients and registries
// ("npm", "pip"). It is for questions; documents are to say one thing in one way.
func EcosystemCalled(s string) (Ecosystem, error) {
	if f := familyCalled(s); f != nil {
		return f.ecosystem(), nil
	}
	return ParseEcosystem(s)
}

func familyCalled(s string) family {
	for _, f := range families() {
		if slices.Contains(f.words(), strings.ToLower(s)) {
			return f
		}
	}
	return nil
}

// New makes a Ref of a name and a version as somebody spelled them; version ""
// means the package as a whole. The error is fault.ErrInvalid and quotes what
// it refuses, clipped.
func New(ecosystem Ecosystem, name, version string) (Ref, error) {
	canonical, err := CanonicalName(ecosystem, name)
	if err != nil {
		return Ref{}, err
	}
	if version == "" {
		return Ref{Ecosystem: ecosystem, Name: canonical}, nil
	}
	v, err := CanonicalVersion(ecosystem, version)
	if err != nil {
		return Ref{}, err
	}
	if !familyOf(ecosystem).fits(canonical, v) {
		return Ref{}, fault.Invalid("%s can't be a version of %s: its major version is not the path's", text.Shorten(v, maxQuoted), text.Shorten(canonical, maxQuoted))
	}
	return Ref{Ecosystem: ecosystem, Name: canonical, Version: v}, nil
}

// CanonicalName gives the one spelling of a name, or fault.ErrInvalid if no
// package of that ecosystem can have it. Names are ASCII in every ecosystem.
func CanonicalName(ecosystem Ecosystem, name string) (string, error) {
	f := familyOf(ecosystem)
	if f == nil {
		return "", fault.Invalid("%q is no ecosystem", text.Shorten(string(ecosystem), maxQuoted))
	}
	canonical, ok := f.name(name)
	if !ok {
		return "", fault.Invalid("%q is not a %s package name", text.Shorten(name, maxQuoted), ecosystem)
	}
	return canonical, nil
}

// IsCanonicalName reports whether name is already its own canonical spelling.
func IsCanonicalName(ecosystem Ecosystem, name string) bool {
	canonical, err := CanonicalName(ecosystem, name)
	return err == nil && canonical == name
}

// CanonicalVersion gives the one spelling of a version: PEP 440's normal form
// for Python (which keeps trailing zeros, as files and people write them, so
// "1.0" and "1.0.0" stay two spellings: compare with SameVersion), the
// verbatim text of a strict semantic version elsewhere.
func CanonicalVersion(ecosystem Ecosystem, version string) (string, error) {
	if len(version) > maxVersion {
		return "", fault.Invalid("a version of %d bytes is too long", len(version))
	}
	if f := familyOf(ecosystem); f != nil {
		if canonical, ok := f.version(version); ok {
			return canonical, nil
		}
	}
	return "", fault.Invalid("%q is not a version that %s packages can have", text.Shorten(version, maxQuoted), text.Shorten(string(ecosystem), maxQuoted))
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 80
