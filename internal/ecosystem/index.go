package ecosystem

import (
	"net/url"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// MaxFiles bounds the files of one index page.
const MaxFiles = 250_000

// Index is an upstream's page about a project, read.
type Index struct {
	Project string
	Status  string // the registry's own word (active, archived, quarantined, deprecated), or ""
	Files   []File
	LeftOut []LeftOut
}

// File is one file that an index lists, in neutral words.
type File struct {
	Name      string
	Version   string // canonical
	Kind      policy.ArtifactKind
	Digest    string    // "sha256:<hex>", never ""
	Size      int64     // bytes; 0 is unknown
	URL       string    // where the upstream keeps it: absolute, without fragment and credentials
	Path      string    // PathOf its URL
	Published time.Time // zero: unknown
	Yanked    bool      // by its publisher
	Requires  string    // the runtime constraint in the protocol's own syntax, harmless to print
	// Sidecar is the digest that the index gives for the file's sidecar,
	// "sha256:<hex>" or "".
	Sidecar string
}

// LeftOut is a file of the page that nobody may have.
type LeftOut struct {
	Name   string
	Reason string // fixed text
}

// ClientURL is the URL of the file as clients see it: its host by name, on the
// one port that the gateway answers. For an upstream on https and its default
// port that is the URL itself, so nothing is rewritten.
func (f File) ClientURL() string {
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
