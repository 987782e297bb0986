package ecosystem

import (
	"net/url"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// MaxFiles bounds the files of one index page.
const MaxFiles = 250_000

// Index is an upstream's page about a project, read. It is kept on disk as
// JSON beside its rows, so every field has a stable name.
type Index struct {
	Project string            `json:"project"`
	Status  string            `json:"status,omitempty"` // the registry's own word (active, archived, quarantined, deprecated), or ""
	Tags    map[string]string `json:"tags,omitempty"`   // names that stand for a version of Files
	Files   []File            `json:"files"`
	LeftOut []LeftOut         `json:"left_out,omitempty"`
	// Rows are the protocol's own, for the project as a whole.
	Rows []Extent `json:"rows,omitempty"`
}

// File is one file that an index lists, in neutral words.
type File struct {
	Name    string              `json:"name"`
	Version string              `json:"version"` // canonical
	Kind    policy.ArtifactKind `json:"kind"`
	// Digest is the strongest that the index gives: "sha256:<hex>",
	// "sha512:<hex>" or, weak, "sha1:<hex>"; "" if it gives none, and then the
	// protocol is a Witness or the first bytes that were seen count for ever.
	Digest    string    `json:"digest,omitempty"`
	Size      int64     `json:"size,omitempty"`      // bytes; 0 is unknown
	URL       string    `json:"url"`                 // where the upstream keeps it: absolute, without fragment and credentials
	Path      string    `json:"path"`                // by which clients ask for it: PathOf its URL, or of Shown
	Published time.Time `json:"published,omitzero"`  // zero: unknown
	FirstSeen time.Time `json:"first_seen,omitzero"` // by this installation; the gateway's to set
	Yanked    bool      `json:"yanked,omitempty"`    // by its publisher
	Requires  string    `json:"requires,omitempty"`  // the runtime constraint in the protocol's own syntax, harmless to print
	// Shown is the URL that clients are given, if URL has a form of the upstream's own of which a
	// request would not say what it is for; "": they are given URL's.
	Shown string `json:"shown,omitempty"`
	// Sidecar is the digest that the index gives for the file's sidecar,
	// "sha256:<hex>" or "".
	Sidecar string `json:"sidecar,omitempty"`
	// Scripts tells that, by the index, something runs when it is installed.
	Scripts bool `json:"scripts,omitempty"`
	// PartOf are the versions of the same project whose releases require exactly this
	// one, a pre-release of their own number: how some publish what a release has for
	// one platform.
	PartOf []string `json:"part_of,omitempty"`
	// Manifest is the row that an Inspector compares the file with, and Rows
	// are the protocol's own.
	Manifest Extent   `json:"manifest,omitzero"`
	Rows     []Extent `json:"rows,omitempty"`
}

// Strong tells whether a digest is of an algorithm that nobody can forge.
func Strong(digest string) bool {
	algorithm, _, _ := strings.Cut(digest, ":")
	switch algorithm {
	case "sha256", "sha384", "sha512", "h1":
		return true
	}
	return false
}

// LeftOut is a file of the page that nobody may have.
type LeftOut struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // canonical, where files are known by it
	Path    string `json:"path,omitempty"`    // where it is known
	Reason  string `json:"reason"`            // fixed text, names and versions
}

// ClientURL is the URL of the file as clients see it: its host by name, on the
// one port that the gateway answers. For an upstream on https and its default
// port that is the URL itself, so nothing is rewritten.
func (f File) ClientURL() string {
	if f.Shown != "" {
		return f.Shown
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return "" // not reached: URL was made by ResolveFile
	}
	return "https://" + u.Hostname() + u.EscapedPath()
}

// ResolveFile makes an index's link absolute and takes it apart: the URL
// without its fragment, the decoded path, and the fragment. It refuses
// everything but http and https, credentials, and paths that can't be asked for.
func ResolveFile(base *url.URL, link string) (location, path, fragment, reason string) {
	ref, err := url.Parse(link)
	if err != nil {
		return "", "", "", "its URL can't be read"
	}
	u := base.ResolveReference(ref)
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "", "", "", "its URL is neither https nor http"
	case u.User != nil:
		return "", "", "", "its URL carries credentials"
	case u.Hostname() == "" || u.Opaque != "":
		return "", "", "", "its URL names no host"
	}
	path, err = PathOf(u.EscapedPath())
	if err != nil {
		return "", "", "", "its URL's path is not canonical"
	}
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	return u.String(), path, fragment, ""
}
