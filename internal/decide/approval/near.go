package approval

import (
	"context"
	"slices"
	"strings"
)

// nearNames finds, for the pending ones of some requests, names in their group
// that are almost the same: one of two may be there to be mistaken for the
// other.
func (d requestReader) nearNames(ctx context.Context, entries []Entry) (map[string][]string, error) {
	groups := map[string][]Entry{}
	for _, e := range entries {
		if e.State != Pending || e.Group == "" || groups[e.Group] != nil {
			continue
		}
		group, err := d.store.List(ctx, Filter{Group: e.Group, States: []State{Pending}, Limit: d.group})
		if err != nil {
			return nil, err
		}
		groups[e.Group] = group
	}
	near := map[string][]string{}
	for _, group := range groups {
		bare := make([]string, len(group))
		for i, e := range group {
			bare[i] = squeeze(e.bareName())
		}
		for i, a := range group {
			for n, b := range group[i+1:] {
				name, other := a.bareName(), b.bareName()
				if a.Project().Ecosystem != b.Project().Ecosystem || name == other {
					continue
				}
				if bare[i] == bare[i+1+n] || almost(name, other) {
					near[a.ID] = append(near[a.ID], other)
					near[b.ID] = append(near[b.ID], name)
				}
			}
		}
	}
	for id, names := range near {
		slices.Sort(names)
		near[id] = slices.Compact(names)
	}
	return near, nil
}

// bareName is what names are compared by: a package's, or a host's without its port. Nobody
// mistakes the operator's tools.
func (r Request) bareName() string {
	switch {
	case r.Host.pushes():
		return r.Host.String()
	case r.Host.isNamed():
		return r.Host.Name
	case r.Call.isNamed():
		return ""
	}
	return r.Package.Name
}

// AlmostSame tells whether two names that differ can be mistaken for each other: they
// differ by their separators, by one letter or by two swapped ones.
func AlmostSame(a, b string) bool { return a != b && (squeeze(a) == squeeze(b) || almost(a, b)) }

// almost tells whether two names differ by one letter or two swapped ones.
func almost(a, b string) bool {
	if a == b || len(a) < 3 || len(b) < 3 {
		return false
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	return swapped || a[i+1:] == b[i+1:]
}

// squeeze is a name without its separators.
func squeeze(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return r
	}, name)
}
