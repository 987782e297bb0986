package policy

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Subject is a package as one run meets it: the facts that hold for all of its
// files. Facts are gathered by the caller; Decide only weighs them.
type Subject struct {
	Package pkgref.Ref
	Edges   []Edge // only those whose Name is Package.Name
	// Upstream is the index's URL of the upstream that has the package, and Owner
	// the one to which the installation's own namespaces give the name; "" if
	// unknown and if nobody owns it.
	Upstream string
	Owner    string
	// Malware are the advisories about the package, withdrawn ones left out.
	Malware []Malware
	// Vulnerabilities are the records about the package, withdrawn ones left out. Assessed
	// tells that such records are known of its ecosystem; if not, it has none here because
	// nobody looked, and a policy that weighs them refuses it.
	Vulnerabilities []Vulnerability
	Assessed        bool
	// Lookalike is the popular package whose name this one's is near to; nil if
	// there is none, or it is popular itself.
	Lookalike *Lookalike
	// Declared tells that the name was not made up by whoever asks: a release that was
	// admitted in this run requires it.
	Declared bool
	// Toolchain tells that the package is a toolchain: a package manager or a
	// compiler, which tools fetch by themselves.
	Toolchain bool
	// Lock is what the run's lockfiles say of the package; nil if none of them
	// is about its ecosystem.
	Lock *Lock
	// Approvals are people's answers about releases of the package that hold for
	// the run.
	Approvals []Approval
	// Listing tells that the question is what an index page shows, to a client
	// that goes on to read what the shown releases require. Where a tree can have
	// a package in several versions, a page then shows every release of a name
	// that some edge admits: clients read a page once, and what they read next may
	// require another version. A file is admitted by the edges there are, always.
	Listing bool
	// Below, of such a page in Python, is the highest release that an edge admits: older
	// ones are shown, too. A client that knows its versions from elsewhere asks for a
	// page before what requires its version was read.
	Below string
	// Otherwise is what time it may be as well, where the host's clock has jumped and nobody has said which
	// time is right; zero: there is no doubt. A release that is old enough by one of the two alone waits for
	// a person.
	Otherwise time.Time
}

// FileFacts are what is known of one file.
type FileFacts struct {
	File    string
	Version string // canonical
	Kind    ArtifactKind
	// Digest is what the upstream or a witness says that the file has,
	// "algorithm:<hex>" (for Go's "h1:" base64); "" if neither says (yet).
	Digest string
	// Digests are all that are known of the file. Complete tells that no more
	// will be: the bytes are here. Until then what can't be compared is left open.
	Digests   []string
	Complete  bool
	Published time.Time // by the upstream or a witness; zero: unknown
	FirstSeen time.Time // by this installation; zero: never before
	Scripts   bool      // something runs when it is installed
	// PartOf are the versions of the same project whose releases require exactly this
	// one, by the registry's page: see Judge.judgePart.
	PartOf []string
}

// Malware is an advisory that a package, or some releases of it, are malicious.
type Malware struct {
	ID       string // of the record, "MAL-2026-12"
	Every    bool   // all versions, for ever: the name is burnt
	Versions []string
	Ranges   []AffectedRange
}

// AffectedRange are versions in the ecosystem's own order, from Introduced on
// ("" or "0": from the first) to before Fixed or through LastAffected; with
// neither it has no end.
type AffectedRange struct {
	Introduced   string
	Fixed        string
	LastAffected string
}

// Lookalike is a popular package whose name another's is near to.
type Lookalike struct {
	Name string
	How  string // fixed words: "one letter differs", "the words are swapped", ...
}

// LockMode is how a lockfile rules.
type LockMode string

// The modes.
const (
	// LockFrozen denies all that is not in the lockfile.
	LockFrozen LockMode = "frozen"
	// LockPrefer holds the names in the lockfile to their pins and leaves other
	// names to the steps after it.
	LockPrefer LockMode = "prefer"
)

// Lock is what lockfiles say of one package.
type Lock struct {
	Mode    LockMode
	Trusted bool  // it stands for the allowlist
	Pins    []Pin // of this package; none: it is outside
	// Unpinned are entries of this package that can be held to no file: nothing of it is let in
	// but what Pins has.
	Unpinned []Unpinned
}

// Unpinned is an entry of a lockfile that can be held to no file.
type Unpinned struct {
	Version  string // canonical; "": it has none
	Reason   string // "comes from a repository", as it follows the entry's name
	Lockfile string // its name, as given
	Line     int
}

// Pin is one release in a lockfile. Any file with one of the digests is in.
type Pin struct {
	Version  string   // canonical
	Digests  []string // "algorithm:<hex>", or "h1:<base64>"
	Metadata []string // digests of the release's metadata (go.sum's /go.mod lines)
	Lockfile string   // its name, as given
	Line     int
}
