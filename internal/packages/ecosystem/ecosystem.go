// Package ecosystem is the contract of a registry's wire protocol: pure
// functions that read a client's request, say what to ask the upstream, read
// its answer strictly, write the filtered answer and word a refusal. A protocol
// never fetches, stores or decides; it has no clock and opens nothing. Each
// registry is one child folder, and package all is the list.
//
// An index page is about one project, a package by its canonical name. A page is rendered from
// rows, bytes that the protocol wrote when it read the upstream's page and that only it
// understands. The name of a tag stands for a version (npm's `latest`). Two kinds of small files
// come beside the files of a release: sidecars, which are derived from one of them (Python's
// `.metadata`), and attachments, which resolvers read also of releases that are never installed
// (Go's `.mod`). A protocol may have several forms of one page. A file is left out when nobody may
// have it (a name that is not canonical, a dependency that no registry serves), and withheld when
// the policy of this run refuses it. Where the index does not give the digests, a transparency log
// may know them (Witness).
//
// One request, end to end: the gateway finds the Place of the Host, calls
// Route with the method and the raw path, and gets a Route. For RouteIndex it
// asks the upstream by IndexAsk, has ParseIndex read the answer once and write
// its rows, has the files judged, and sends what Render makes of the rows: the
// upstream's page itself is never read again. For RouteFile it finds the file in
// the index (or, of an Addresser, by its address), fetches it, verifies its
// digest, has an Inspector look into it, and sends the bytes. Whatever is
// refused is worded by Refuse.
package ecosystem

import (
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Protocol is one registry's wire protocol. Implementations are stateless and
// safe for concurrent use. Errors are faults: ErrInvalid is a request (Route)
// or an answer (ParseIndex, Sidecar) that can't be read in exactly one way.
type Protocol interface {
	// Ecosystem is the name that policies use for it.
	Ecosystem() pkgref.Ecosystem

	// Route reads a request. ErrInvalid: not canonical after one decoding, to
	// be answered 400 with nothing sent upstream; ErrNotFound: no such route.
	// A method other than GET and HEAD has a route only if that is RouteAnswered.
	Route(place Place, r Request) (Route, error)

	// IndexAsk says how to ask the upstream whose index is at base (with a
	// trailing slash) for a project's page.
	IndexAsk(base, project string) Ask

	// ParseIndex reads an upstream's page about project, once and from start
	// to end, and writes what pages are rendered from to rows. It refuses the
	// page as a whole unless it can be read in exactly one way, and leaves out
	// the files that nobody may have. It holds at most a release of the page
	// in memory at a time where pages can be large.
	ParseIndex(project string, page Page, rows Rows) (*Index, error)

	// Form chooses the representation for an Accept header; it always has an
	// answer, since a client that asks for nothing known gets the default.
	Form(accept string) Form

	// ContentType is what a page in this form is sent as.
	ContentType(form Form) string

	// Render writes a page for one run from an index and its rows. Equal
	// arguments give equal bytes.
	Render(w io.Writer, ix *Index, rows io.ReaderAt, view View) error

	// Refuse words a refusal so that this registry's own clients show it.
	Refuse(r Refusal) Answer
}

// View is what of an index one page shows.
type View struct {
	Form Form
	// Verdicts has one element per file of the index, in its order.
	Verdicts []Verdict
	// Release is Route.Release: only this version or tag; "" is the whole project.
	Release string
}

// Rows takes what pages are rendered from.
type Rows interface {
	// Append writes p and says where it is. The bytes are p's from then on: p may be reused.
	Append(p []byte) (Extent, error)
}

// Extent is a piece of an index's rows.
type Extent struct {
	Offset int64 `json:"o"`
	Length int64 `json:"n"`
}
