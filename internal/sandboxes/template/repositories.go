package template

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Repositories are where the packages of the distribution come from that templates are
// built of, in apt's own words.
type Repositories struct {
	Codename string   // of the distribution's release
	Lines    []string // of a sources.list
	Settings []string // that the mirror needs, as apt-config prints them
}

// Repositories finds out where the distribution's packages come from: what was
// configured, else what this host's apt uses of the distribution's own.
func (s *Store) Repositories(ctx context.Context) (Repositories, error) {
	d, err := s.distribution()
	if err != nil {
		return Repositories{}, err
	}
	r := Repositories{Codename: d.codename, Settings: s.aptOptions(ctx)}
	for _, source := range d.sources {
		r.Lines = append(r.Lines, source.sourceLine())
	}
	if slices.ContainsFunc(d.sources, func(a aptSource) bool { return a.signedBy == "" }) { // then any key that apt trusts here
		etc := filepath.Join(s.opt.HostRoot, "etc/apt")
		r.Settings = append(r.Settings, `Dir::Etc::trusted "`+filepath.Join(etc, "trusted.gpg")+`";`, `Dir::Etc::trustedparts "`+filepath.Join(etc, "trusted.gpg.d")+`/";`)
	}
	return r, nil
}

// distribution is the configured one, else the host's.
func (s *Store) distribution() (distribution, error) {
	if len(s.opt.Sources) == 0 {
		return hostDistribution(s.opt.HostRoot)
	}
	d := distribution{id: "configured", sources: parseOneLine(strings.Join(s.opt.Sources, "\n"))}
	if len(d.sources) == 0 {
		return d, fault.Invalid("template sources: none of the lines reads \"deb URI SUITE COMPONENT...\"")
	}
	d.codename, _, _ = strings.Cut(d.sources[0].suite, "-")
	return d, nil
}
