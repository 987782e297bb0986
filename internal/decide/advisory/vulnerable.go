package advisory

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// vulnerable is one package in one record of a vulnerability.
type vulnerable struct {
	pkg           pkgref.Ref // without version
	vulnerability policy.Vulnerability
}

// maxAliases of a vulnerability are kept; CVEs and GHSAs first.
const maxAliases = 8

// saidOnce is what a record says of all of its places.
type saidOnce struct {
	aliases  []string
	severity policy.Severity
}

// vulnerability is what the record says of one package, about the versions that are meant.
func (r *osvRecord) vulnerability(a *osvAffected, meant policy.Malware) policy.Vulnerability {
	if r.said == nil { // a record may have very many places
		r.said = &saidOnce{aliases: r.otherIDs(), severity: severityOf(r.Severity, r.Database)}
	}
	return policy.Vulnerability{
		ID: r.ID, Aliases: r.said.aliases, Severity: max(r.said.severity, severityOf(a.Severity, nil)),
		Every: meant.Every, Versions: meant.Versions, Ranges: meant.Ranges,
	}
}

// otherIDs are the record's aliases, those that people know first.
func (r *osvRecord) otherIDs() []string {
	var ids []string
	known := map[string]bool{r.ID: true}
	for _, id := range r.Aliases {
		if isAdvisoryID(id) && !known[id] {
			known[id] = true
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return orderOfID(a) - orderOfID(b) })
	return ids[:min(len(ids), maxAliases)]
}

func orderOfID(id string) int {
	switch {
	case strings.HasPrefix(id, "CVE-"):
		return 0
	case strings.HasPrefix(id, "GHSA-"):
		return 1
	}
	return 2
}

// addVulnerable joins what a record says of one package in several places.
func (r *reading) addVulnerable(v vulnerable) {
	i, known := r.at[v.pkg]
	if !known {
		r.at[v.pkg] = len(r.vulnerable)
		r.vulnerable = append(r.vulnerable, v)
		return
	}
	one, more := &r.vulnerable[i].vulnerability, v.vulnerability
	one.Severity = max(one.Severity, more.Severity)
	joined := joinMalware(policy.Malware{Every: one.Every, Versions: one.Versions, Ranges: one.Ranges},
		policy.Malware{Every: more.Every, Versions: more.Versions, Ranges: more.Ranges})
	one.Every, one.Versions, one.Ranges = joined.Every, joined.Versions, joined.Ranges
}
