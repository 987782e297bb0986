package advisory

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// osvRecord is what matters here of a record in the OSV format. Members that
// are not listed are nobody's business here; a repeated member, text that is no
// UTF-8 and a wrong type are errors.
type osvRecord struct {
	ID        string        `json:"id"`
	Aliases   []string      `json:"aliases"`
	Withdrawn string        `json:"withdrawn"`
	Affected  []osvAffected `json:"affected"`
}

type osvAffected struct {
	Package  *osvPackage `json:"package"`
	Ranges   []osvRange  `json:"ranges"`
	Versions []string    `json:"versions"`
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
	malicious []malicious
	withdrawn bool
	harmless  bool // no record of malware
	elsewhere int  // affected packages of ecosystems that are not known here
	unnamed   int  // affected packages with a name that nobody can ask for
	widened   int  // affected packages whose versions can't be read: all are meant
}

const malwarePrefix = "MAL-"

// readRecord reads one record in the OSV format. An error means that it can't
// be said what the record is about; it is never to be passed over in silence.
func readRecord(data []byte, now time.Time) (reading, error) {
	var r osvRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return reading{}, fault.Wrap(fault.ErrInvalid, err, "it is no OSV record")
	}
	if !isID(r.ID) {
		return reading{}, fault.Invalid("its id %q is invalid", excerpt.Of(r.ID, maxQuoted))
	}
	id := r.malwareID()
	if id == "" {
		return reading{harmless: true}, nil
	}
	gone, err := r.isWithdrawn(now)
	if err != nil {
		return reading{}, err
	}
	if gone {
		return reading{withdrawn: true}, nil
	}
	if len(r.Affected) == 0 {
		return reading{}, fault.Invalid("%s names no affected package", id)
	}
	return r.translate(id)
}

// malwareID is the record's own id or the alias by which it is about malware;
// "" if it is not.
func (r *osvRecord) malwareID() string {
	for _, id := range append([]string{r.ID}, r.Aliases...) {
		if strings.HasPrefix(id, malwarePrefix) && isID(id) {
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
		return false, fault.Invalid("%s is withdrawn at %q, which is not a time", r.ID, excerpt.Of(r.Withdrawn, maxQuoted))
	}
	return !at.After(now), nil
}

func (r *osvRecord) translate(id string) (reading, error) {
	var read reading
	for _, a := range r.Affected {
		if a.Package == nil || a.Package.Name == "" || a.Package.Ecosystem == "" {
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
		m, widened := a.malware(ecosystem)
		if widened {
			read.widened++
		}
		m.ID = id
		read.add(malicious{pkg, m})
	}
	return read, nil
}

// add joins what a record says of one package in several places.
func (r *reading) add(m malicious) {
	i := slices.IndexFunc(r.malicious, func(o malicious) bool { return o.pkg == m.pkg })
	if i < 0 {
		r.malicious = append(r.malicious, m)
		return
	}
	joined := &r.malicious[i].malware
	if joined.Every || m.malware.Every {
		*joined = policy.Malware{ID: joined.ID, Every: true}
		return
	}
	joined.Versions = unique(append(joined.Versions, m.malware.Versions...))
	joined.Ranges = append(joined.Ranges, m.malware.Ranges...)
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

// isID keeps ids to what messages and rules can carry.
func isID(s string) bool {
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
