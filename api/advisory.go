package api

import "time"

// ImportAdvisories is the body of POST /v1/advisories. The daemon reads Path
// itself.
type ImportAdvisories struct {
	Path    string `json:"path"`              // absolute: a directory, a zip or a JSON file of OSV records; or a list of names
	Label   string `json:"label,omitempty"`   // what the import replaces later; "" is Path's base name
	Popular string `json:"popular,omitempty"` // an ecosystem: Path is a popularity list of it
	// KeepGoing imports the rest when records can't be read; otherwise nothing
	// is replaced.
	KeepGoing bool `json:"keep_going,omitempty"`
}

// AdvisoryEvent is one line of the NDJSON answer of POST /v1/advisories:
// progress until Done or Error.
type AdvisoryEvent struct {
	Step    string `json:"step,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Percent int    `json:"percent,omitempty"`
	// Done is what came of the import; with Error, as far as it came.
	Done   *AdvisoryImport `json:"done,omitempty"`
	Error  string          `json:"error,omitempty"`
	Status int             `json:"status,omitempty"` // with Error, an HTTP status
}

// AdvisoryImport is what came of an import.
type AdvisoryImport struct {
	Source     AdvisorySource  `json:"source"`
	Replaced   *AdvisorySource `json:"replaced,omitempty"` // what the label had imported before
	Generation string          `json:"generation"`
	Damage     string          `json:"damage,omitempty"`     // of other sources; see Advisories
	Records    int             `json:"records"`              // files, or lines of a list
	Withdrawn  int             `json:"withdrawn"`            // ignored
	Other      int             `json:"other"`                // ignored: about no package
	Elsewhere  int             `json:"elsewhere"`            // affected packages of unknown ecosystems; ignored
	Unnamed    int             `json:"unnamed"`              // affected packages whose names nobody can ask for; ignored
	Widened    int             `json:"widened"`              // affected packages whose versions can't be read: all are meant
	WidenedOf  []string        `json:"widened_of,omitempty"` // the first ten of Widened: "GHSA-...: python urllib3"
	Repeated   int             `json:"repeated"`             // names that stood in a list before
	Beyond     int             `json:"beyond"`               // names past the longest list
	Unreadable int             `json:"unreadable"`
	Problems   []ImportProblem `json:"problems,omitempty"` // the first ten of Unreadable
	// Alarms are releases that were let in before and are known to be malicious
	// now.
	Alarms []AdvisoryAlarm `json:"alarms"`
}

// ImportProblem is a record or a line that can't be read.
type ImportProblem struct {
	Where  string `json:"where"`
	Reason string `json:"reason"`
}

// AdvisorySource is what one label imported.
type AdvisorySource struct {
	Label      string         `json:"label"`
	Kind       string         `json:"kind"` // malware popular
	Path       string         `json:"path,omitempty"`
	Imported   time.Time      `json:"imported,omitzero"`
	SHA256     string         `json:"sha256,omitempty"` // of what is kept
	Bytes      int64          `json:"bytes,omitempty"`
	Packages   map[string]int `json:"packages"` // by ecosystem
	Advisories int            `json:"advisories,omitempty"`
	Burnt      int            `json:"burnt,omitempty"` // packages of which every version is malicious
	// Vulnerabilities, and by ecosystem the packages that have them.
	Vulnerabilities int            `json:"vulnerabilities,omitempty"`
	Vulnerable      map[string]int `json:"vulnerable,omitempty"`
	LeftOut         int            `json:"left_out,omitempty"` // records that could not be read
}

// Advisories is GET /v1/advisories. With Damage every package is refused.
type Advisories struct {
	Generation string           `json:"generation"`
	Damage     string           `json:"damage,omitempty"`
	Sources    []AdvisorySource `json:"sources"`
	Shipped    []AdvisorySource `json:"shipped"` // lists that come with the product, where none is imported
}

// AdvisoryAlarm is a release that was let in before it was known to be
// malicious.
type AdvisoryAlarm struct {
	Ecosystem string    `json:"ecosystem"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Advisory  string    `json:"advisory"`
	Runs      []string  `json:"runs"`    // the first twenty
	Records   int       `json:"records"` // that say served or installed
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	SHA256    []string  `json:"sha256,omitempty"`
}

// PackageFacts is GET /v1/advisories/check: what is known of a package.
type PackageFacts struct {
	Ecosystem string         `json:"ecosystem"`
	Name      string         `json:"name"` // canonical
	Version   string         `json:"version,omitempty"`
	Malware   []KnownMalware `json:"malware"`
	// Vulnerabilities are those of the version; without one, those of any version.
	Vulnerabilities *Vulnerabilities `json:"vulnerabilities,omitempty"`
	Popular         bool             `json:"popular"`
	Lookalike       *Lookalike       `json:"lookalike,omitempty"`
	Generation      string           `json:"generation"`
}

// KnownMalware is one advisory about a package.
type KnownMalware struct {
	ID       string   `json:"id"`
	Every    bool     `json:"every,omitempty"` // all versions, for ever
	Versions []string `json:"versions,omitempty"`
	Ranges   []string `json:"ranges,omitempty"` // ">= 1.0, < 2.0"
	// Affected tells that it is about the version that was asked for; without a
	// version, about every version.
	Affected bool `json:"affected"`
}

// Vulnerabilities are the known ones of a release.
type Vulnerabilities struct {
	// Checked tells that vulnerabilities of the ecosystem's packages were imported; if not,
	// none is known here since nobody looked. Imported is when, of the oldest such import.
	Checked  bool            `json:"checked"`
	Imported time.Time       `json:"imported,omitzero"`
	Known    []Vulnerability `json:"known"` // the worst first
}

// Vulnerability is a known vulnerability of a release.
type Vulnerability struct {
	ID       string   `json:"id"` // a CVE if there is one
	Aliases  []string `json:"aliases,omitempty"`
	Severity string   `json:"severity"`           // unknown low medium high critical
	FixedIn  string   `json:"fixed_in,omitempty"` // the version that fixes it; absent: no fix is known
}

// Lookalike is a popular package whose name another's is near to.
type Lookalike struct {
	Name string `json:"name"`
	How  string `json:"how"`
}
