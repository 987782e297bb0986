// Package ecosystem is the contract of a registry's wire protocol: pure
// functions that read a client's request, say what to ask the upstream, read
// its answer strictly, write the filtered answer and word a refusal. A protocol
// never fetches, stores or decides; it has no clock and opens nothing. Each
// registry is one child folder, and package all is the list.
//
// Vocabulary: a *project* is what an index page is about, a package by its
// canonical name; a *file* is an artifact that an index lists; a *sidecar* is a
// small file derived from one (Python's `.metadata`); a *form* is one of the
// representations that a protocol has of one page; a file is *left out* when
// nobody may have it (no strong digest, a name that is not canonical) and
// *withheld* when the policy of this run refuses it; a *place* is what a host
// name stands for towards clients.
//
// One request, end to end: the gateway finds the Place of the Host, calls
// Route with the raw path, and gets a Route. For RouteIndex it asks the
// upstream by IndexAsk, gives the answer to ParseIndex, has the files judged,
// and writes Render's bytes in the Form that the client's Accept chose. For
// RouteFile it finds the file in the parsed index, fetches and verifies it, and
// sends the bytes. Whatever is refused is worded by Refuse.
package ecosystem

import "github.com/cofferdam-dev/cofferdam/internal/pkgref"

// Protocol is one registry's wire protocol. Implementations are stateless and
// safe for concurrent use. Errors are faults: ErrInvalid is a request (Route)
// or an answer (ParseIndex, Sidecar) that can't be read in exactly one way.
type Protocol interface {
	// Ecosystem is the name that policies use for it.
	Ecosystem() pkgref.Ecosystem

	// Route reads a request. ErrInvalid: not canonical after one decoding, to
	// be answered 400 with nothing sent upstream; ErrNotFound: no such route.
	Route(place Place, r Request) (Route, error)

	// IndexAsk says how to ask the upstream whose index is at base (with a
	// trailing slash) for a project's page.
	IndexAsk(base, project string) Ask

	// ParseIndex reads an upstream's page about project. It refuses the page
	// as a whole unless it can be read in exactly one way, and leaves out the
	// files that nobody may have.
	ParseIndex(project string, page Page) (*Index, error)

	// Form chooses the representation for an Accept header; it always has an
	// answer, since a client that asks for nothing known gets the default.
	Form(accept string) Form

	// Render writes an index for one run. verdicts has one element per file of
	// the index, in its order.
	Render(ix *Index, verdicts []Verdict, form Form) (Rendered, error)

	// Refuse words a refusal so that this registry's own clients show it.
	Refuse(r Refusal) Answer
}

// Describer is the optional ability of a protocol whose files carry metadata
// that names what they require.
type Describer interface {
	// Sidecar extracts the metadata from a file's verified bytes. ErrNotFound:
	// this kind of file has none that can be trusted.
	Sidecar(file File, content Content) ([]byte, error)

	// Describe reads metadata. Its name and version are canonical; the caller
	// compares them with the file's.
	Describe(metadata []byte) (Description, error)
}
