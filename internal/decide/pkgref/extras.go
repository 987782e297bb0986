package pkgref

import (
	"regexp"
	"slices"
	"strings"
)

// MaxExtras is how many extras one word may name.
const MaxExtras = 256

// Written once; regexps are constant.
var (
	extraName  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	separators = regexp.MustCompile(`[-_.]+`)
)

// CanonicalExtra is how an extra of a Python package is compared: as its name is.
func CanonicalExtra(name string) (string, bool) {
	if len(name) > 200 || !extraName.MatchString(name) {
		return "", false
	}
	return separators.ReplaceAllString(strings.ToLower(name), "-"), true
}

// CutExtras takes "name[a, b]" apart. The extras are canonical and sorted, each once;
// a name without brackets has none. The name is as it was written.
func CutExtras(written string) (name string, extras []string, ok bool) {
	name, list, found := strings.Cut(written, "[")
	if !found {
		return written, nil, true
	}
	list, rest, closed := strings.Cut(list, "]")
	if !closed || strings.TrimSpace(rest) != "" {
		return "", nil, false
	}
	extras, ok = Extras(list)
	return strings.TrimSpace(name), extras, ok
}

// Extras reads names of extras between commas.
func Extras(list string) (extras []string, ok bool) {
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(list, ",") {
		extra, ok := CanonicalExtra(strings.TrimSpace(part))
		if !ok || len(extras) == MaxExtras {
			return nil, false
		}
		extras = append(extras, extra)
	}
	slices.Sort(extras)
	return slices.Compact(extras), true
}
