package advisory

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// osvRecord is what matters here of a record in the OSV format. Members that
// are not listed are nobody's business here; a repeated member, text that is no
// UTF-8 and a wrong type are errors.
type osvRecord struct {
	ID        string         `json:"id"`
	Aliases   []string       `json:"aliases"`
	Withdrawn string         `json:"withdrawn"`
	Affected  []osvAffected  `json:"affected"`
	Severity  []osvSeverity  `json:"severity"`
	Database  jsontext.Value `json:"database_specific"`

	said *saidOnce // of all places of the record; nil: not looked at yet
}

type osvAffected struct {
	Package  *osvPackage   `json:"package"`
	Ranges   []osvRange    `json:"ranges"`
	Versions []string      `json:"versions"`
	Severity []osvSeverity `json:"severity"`
}

type osvPackage struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
}

// malicious is one package in one record.
type malicious struct {
	pkg     pkgref.Ref // without version
	malware policy.Malware
}

// reading is what one record comes to.
type reading struct {
	malicious  []malicious
	vulnerable []vulnerable
	withdrawn  bool
	pointless  bool     // it names no package, and is no record of malware
	elsewhere  int      // affected packages of ecosystems that are not known here
	unnamed    int      // affected packages with a name that nobody can ask for
	widened    []string // affected packages whose versions can't be read: all are meant
	// at is where a package stands in malicious or vulnerable: a record is of one of them.
	at map[pkgref.Ref]int
}

const malwarePrefix = "MAL-"

// readRecord reads one record in the OSV format. An error means that it can't
// be said what the record is about; it is never to be passed over in silence.
func readRecord(data []byte, now time.Time) (reading, error) {
	var r osvRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return reading{}, fault.Wrap(fault.ErrInvalid, err, "it is no OSV record")
	}
	if !isAdvisoryID(r.ID) {
		return reading{}, fault.Invalid("its id %q is invalid", text.Shorten(r.ID, maxQuoted))
	}
	id := r.malwareID()
	gone, err := r.isWithdrawn(now)
	if err != nil {
		return reading{}, err
	}
	if gone {
		return reading{withdrawn: true}, nil
	}
	switch {
	case len(r.Affected) > 0:
		return r.translate(id)
	case id != "":
		return reading{}, fault.Invalid("%s names no affected package", id)
	}
	return reading{pointless: true}, nil
}

// malwareID is the record's own id or the alias by which it is about malware;
// "" if it is not.
func (r *osvRecord) malwareID() string {
	for _, id := range append([]string{r.ID}, r.Aliases...) {
		if strings.HasPrefix(id, malwarePrefix) && isAdvisoryID(id) {
			return id
		}
	}
	return ""
}

func (r *osvRecord) isWithdrawn(now time.Time) (bool, error) {
	if r.Withdrawn == "" {
		return false, nil
	}
	at, err := time.Parse(time.RFC3339, r.Withdrawn)
	if err != nil {
		return false, fault.Invalid("%s is withdrawn at %q, which is not a time", r.ID, text.Shorten(r.Withdrawn, maxQuoted))
	}
	return !at.After(now), nil
}

// translate reads what a record says of each package: by id that it is malicious; id "": that
// it is vulnerable. Of vulnerabilities many are of what is no package at all.
func (r *osvRecord) translate(id string) (reading, error) {
	read := reading{at: map[pkgref.Ref]int{}}
	for i := range r.Affected {
		a := &r.Affected[i]
		if a.Package == nil || a.Package.Name == "" || a.Package.Ecosystem == "" {
			if id == "" {
				read.elsewhere++
				continue
			}
			return reading{}, fault.Invalid("%s affects something that is not named", id)
		}
		ecosystem, known := ecosystemOf(a.Package.Ecosystem)
		if !known {
			read.elsewhere++
			continue
		}
		pkg, err := pkgref.New(ecosystem, a.Package.Name, "")
		if err != nil {
			read.unnamed++
			continue
		}
		m, widened := a.meantVersions(ecosystem)
		if widened {
			read.widened = append(read.widened, r.ID+": "+pkg.String())
		}
		if id == "" {
			read.addVulnerable(vulnerable{pkg, r.vulnerability(a, m)})
			continue
		}
		m.ID = id
		read.addMalicious(malicious{pkg, m})
	}
	for i := range read.malicious {
		m := &read.malicious[i].malware
		m.Versions = unique(m.Versions)
	}
	for i := range read.vulnerable {
		v := &read.vulnerable[i].vulnerability
		v.Versions = unique(v.Versions)
		v.CompactVersions(read.vulnerable[i].pkg.Ecosystem)
	}
	return read, nil
}

// addMalicious joins what a record says of one package in several places.
func (r *reading) addMalicious(m malicious) {
	i, known := r.at[m.pkg]
	if !known {
		r.at[m.pkg] = len(r.malicious)
		r.malicious = append(r.malicious, m)
		return
	}
	r.malicious[i].malware = joinMalware(r.malicious[i].malware, m.malware)
}

// joinMalware joins what one advisory says of a package in two places, versions repeated.
func joinMalware(a, b policy.Malware) policy.Malware {
	if a.Every || b.Every {
		return policy.Malware{ID: a.ID, Every: true}
	}
	a.Versions = append(a.Versions, b.Versions...)
	a.Ranges = append(a.Ranges, b.Ranges...)
	return a
}

// ecosystemOf knows the exact spellings of the OSV format; a suffix after a
// colon names a part of the ecosystem, and the whole is meant here.
func ecosystemOf(osv string) (pkgref.Ecosystem, bool) {
	osv, _, _ = strings.Cut(osv, ":")
	for _, e := range pkgref.Ecosystems() {
		if e.Traits().OSV == osv {
			return e, true
		}
	}
	return "", false
}

// isAdvisoryID keeps ids to what messages and rules can carry.
func isAdvisoryID(s string) bool {
	const longest = 64
	if s == "" || len(s) > longest {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == ""
}

// unique sorts and leaves out repetitions.
func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 120
