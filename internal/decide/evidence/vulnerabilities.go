package evidence

import (
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Vulnerabilities are the known ones of a release, by records that were imported.
type Vulnerabilities struct {
	Imported time.Time       `json:"imported,omitzero"` // when, of the oldest import about the ecosystem
	Known    []Vulnerability `json:"known,omitempty"`   // the worst first, MaxVulnerabilities at most
	More     int             `json:"more,omitempty"`    // that are known and not here
	Digest   string          `json:"digest,omitempty"`  // of all of them, as text.DigestList, where there are more
}

// MaxVulnerabilities bounds what is shown of one release.
const MaxVulnerabilities = 40

// Vulnerability is a known vulnerability of a release.
type Vulnerability struct {
	ID       string   `json:"id"` // a CVE if there is one
	Aliases  []string `json:"aliases,omitempty"`
	Severity string   `json:"severity"`           // unknown low medium high critical
	FixedIn  string   `json:"fixed_in,omitempty"` // "": no fix is known
}

// NewVulnerabilities keeps the beginning of all that are known, the worst first.
func NewVulnerabilities(imported time.Time, all []Vulnerability) *Vulnerabilities {
	v := &Vulnerabilities{Imported: imported, Known: all}
	if len(all) <= MaxVulnerabilities {
		return v
	}
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	v.Known, v.More, v.Digest = all[:MaxVulnerabilities], len(all)-MaxVulnerabilities, text.DigestList(texts)
	return v
}

// String is "CVE-2021-33503 (high), fixed in 1.26.5 [GHSA-q2q7-5pp4-w6pg]".
func (v Vulnerability) String() string {
	text := fmt.Sprintf("%s (%s), no fix known", v.ID, v.Severity)
	if v.FixedIn != "" {
		text = fmt.Sprintf("%s (%s), fixed in %s", v.ID, v.Severity, v.FixedIn)
	}
	if len(v.Aliases) > 0 {
		text += " [" + strings.Join(v.Aliases, " ") + "]"
	}
	return text
}

// Count is how many there are; of nil, none.
func (v *Vulnerabilities) Count() int {
	if v == nil {
		return 0
	}
	return len(v.Known) + v.More
}

// Worst is the first of them; ok is false if none is here, whatever Count says.
func (v *Vulnerabilities) Worst() (worst Vulnerability, ok bool) {
	if v == nil || len(v.Known) == 0 {
		return Vulnerability{}, false
	}
	return v.Known[0], true
}

// sameAs tells whether both name the same vulnerabilities.
func (v *Vulnerabilities) sameAs(other *Vulnerabilities) bool {
	if v == nil || other == nil {
		return v == other
	}
	return fmt.Sprint(v.Known, v.More, v.Digest) == fmt.Sprint(other.Known, other.More, other.Digest)
}

// NewerVulnerabilities is what a later evidence tells, unless it says nothing or nothing else:
// another import alone makes no other evidence.
func NewerVulnerabilities(known, later *Vulnerabilities) *Vulnerabilities {
	if later == nil || known.sameAs(later) {
		return known
	}
	return later
}
