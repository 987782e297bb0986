package advisory

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// permissiveVerdict tells what an advisory means for a release by asking policy itself:
// with a policy that allows everything, what is refused is refused for it.
type permissiveVerdict struct{ permissive *policy.Policy }

func newPermissiveVerdict() (permissiveVerdict, error) {
	p, err := policy.Parse("", []byte("packages:\n  default: allow\n"))
	return permissiveVerdict{p}, err
}

// affects reports whether m is about the release.
func (v permissiveVerdict) affects(release pkgref.Ref, m policy.Malware) bool {
	if m.Every {
		return true
	}
	if release.Version == "" {
		return false
	}
	d := v.permissive.Decide(time.Time{}, policy.Input{
		Subject:   policy.Subject{Package: release, Malware: []policy.Malware{m}},
		FileFacts: policy.FileFacts{Version: release.Version},
	})
	return d.ResolvedBy == policy.ByAdvisory && d.Effect == policy.Deny
}

// Check tells what is known of a package, and with a version of that release.
func (db *DB) Check(pkg pkgref.Ref) (api.PackageFacts, error) {
	g := db.current.Load()
	known, err := g.factsOf(pkg)
	if err != nil {
		return api.PackageFacts{}, err
	}
	v, err := newPermissiveVerdict()
	if err != nil {
		return api.PackageFacts{}, err
	}
	facts := api.PackageFacts{
		Ecosystem: string(pkg.Ecosystem), Name: pkg.Name, Version: pkg.Version,
		Malware: []api.KnownMalware{}, Popular: known.Popular, Generation: g.name,
	}
	for _, m := range known.Malware {
		one := api.KnownMalware{ID: m.ID, Every: m.Every, Versions: m.Versions, Affected: v.affects(pkg, m)}
		for _, r := range m.Ranges {
			one.Ranges = append(one.Ranges, rangeText(r))
		}
		facts.Malware = append(facts.Malware, one)
	}
	if err := g.tellVulnerabilities(pkg, &facts); err != nil {
		return api.PackageFacts{}, err
	}
	if known.Lookalike != nil {
		facts.Lookalike = &api.Lookalike{Name: known.Lookalike.Name, How: known.Lookalike.How}
	}
	return facts, nil
}

// tellVulnerabilities adds those of a release; without a version, those of any of its releases.
func (g *generation) tellVulnerabilities(pkg pkgref.Ref, facts *api.PackageFacts) error {
	known, err := g.vulnerabilitiesOf(pkg)
	if err != nil {
		return err
	}
	facts.Vulnerabilities = &api.Vulnerabilities{Checked: known.Assessed, Imported: known.Imported, Known: []api.Vulnerability{}}
	for _, k := range policy.VulnerabilitiesOf(pkg, known.Known) {
		facts.Vulnerabilities.Known = append(facts.Vulnerabilities.Known, api.Vulnerability{
			ID: k.ID, Aliases: k.Aliases, Severity: k.Severity.String(), FixedIn: k.FixedIn,
		})
	}
	return nil
}

func rangeText(r policy.AffectedRange) string {
	text := ">= " + r.Introduced
	switch {
	case r.Fixed != "":
		text += ", < " + r.Fixed
	case r.LastAffected != "":
		text += ", <= " + r.LastAffected
	}
	return text
}
