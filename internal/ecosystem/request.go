package ecosystem

// Place is what a host name stands for towards clients: an upstream's index
// below Base, its files, or both.
type Place struct {
	// Base is the index's escaped path, with a slash at both ends; "" if the
	// host has files only.
	Base string
	// Files tells that the host may have files.
	Files bool
}

// Request is what a client asked, undecoded.
type Request struct {
	Path  string // the raw escaped path
	Query string // the raw query, without the question mark
}

// RouteKind is what a request is for.
type RouteKind string

// The kinds of route.
const (
	RouteIndex    RouteKind = "index"    // a project's page
	RouteFile     RouteKind = "file"     // a file of a release
	RouteSidecar  RouteKind = "sidecar"  // a file's sidecar
	RouteRoot     RouteKind = "root"     // the list of all projects
	RouteRedirect RouteKind = "redirect" // another spelling: go to Location
)

// Route is a request, understood.
type Route struct {
	Kind     RouteKind
	Project  string // canonical; "" for RouteRoot
	File     string // the file's name; for a sidecar the name of its file
	Version  string // canonical, of the file
	Path     string // of the file, decoded once: what PathOf gives for its URL
	Location string // RouteRedirect: an escaped path on the same host
}

// Ask is how to ask an upstream for an index page.
type Ask struct {
	URL    string
	Accept string
	// Types are the media types that the answer may have.
	Types []string
}

// Page is an upstream's answer, whole and inflated.
type Page struct {
	URL         string // where it came from, after redirects
	ContentType string
	Body        []byte
}
