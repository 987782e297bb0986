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

// Request is what a client asked, undecoded. Bodies are never read.
type Request struct {
	Method string // "" is GET
	Path   string // the raw escaped path
	Query  string // the raw query, without the question mark
}

// RouteKind is what a request is for.
type RouteKind string

// The kinds of route.
const (
	RouteIndex      RouteKind = "index"      // a project's page
	RouteFile       RouteKind = "file"       // a file of a release
	RouteSidecar    RouteKind = "sidecar"    // a file's sidecar
	RouteAttachment RouteKind = "attachment" // a release's attachment (Attacher)
	RoutePass       RouteKind = "pass"       // bytes that the client verifies itself (PassThrough)
	RouteAnswered   RouteKind = "answered"   // the protocol itself has the answer: Answer
	RouteRoot       RouteKind = "root"       // the list of all projects
	RouteRedirect   RouteKind = "redirect"   // another spelling: go to Location
)

// Route is a request, understood.
type Route struct {
	Kind    RouteKind
	Project string // canonical; "" if it is about none
	File    string // the file's name; for a sidecar the name of its file
	// Version is canonical, of the file or attachment; of a RouteAttachment it may
	// also be a query (a branch), if Query is set.
	Version string
	Query   bool
	// Release narrows a RouteIndex to one version or tag.
	Release  string
	Path     string // of the file, decoded once: what PathOf gives for its URL
	Location string // RouteRedirect: an escaped path on the same host
	// Immutable tells that the answer to a RoutePass never changes.
	Immutable bool
	// Part is how many bytes the answer to a RoutePass has that is the beginning
	// of one that only grows, 0 otherwise; Whole is what File is without the part.
	Part  int
	Whole string
	// Log is the transparency log that a RoutePass is of, by its name, and
	// Records how many records that must have for what is asked to be there.
	Log     string
	Records int64
	Answer  *Answer // RouteAnswered
}

// Ask is how to ask an upstream for an index page.
type Ask struct {
	URL    string
	Accept string
	// Types are the media types that the answer may have; empty: any.
	Types []string
	// Most bounds the answer in bytes; 0: the client's own limit for pages.
	Most int64
}
