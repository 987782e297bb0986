package ecosystem

import (
	"context"
)

// Describer is the optional ability of a protocol that has sidecars: metadata
// that a client may ask for beside a file.
type Describer interface {
	// Sidecar extracts the metadata from a file's verified bytes. ErrNotFound:
	// this kind of file has none that can be trusted.
	Sidecar(file File, content Content) ([]byte, error)
	// Outline gives what resolvers need of such metadata, and no other word of its
	// publisher.
	Outline(metadata []byte) ([]byte, error)

	// Describe reads metadata. Its name and version are canonical; the caller
	// compares them with the file's.
	Describe(metadata []byte) (Description, error)
}

// Inspector is the optional ability of a protocol to look into a file before
// anybody gets it. It runs once per verified file.
type Inspector interface {
	// Inspect reads a file whose digest was verified. row is what the index
	// says of it (the bytes at File.Manifest; nil if there is none). It must
	// not trust either: ErrInvalid refuses the file, for a container that two
	// readers would read differently, a release other than the index's, or a
	// file that hides from the index what it requires or runs.
	Inspect(file File, row []byte, content Content) (Inspection, error)
}

// Builder is the optional ability of a protocol whose releases may have nothing but source
// distributions, or run something when they are installed: what is made of one, apart from
// whoever asks, can be offered in its place.
type Builder interface {
	// Built is the file as which that is offered: of policy.KindBuilt or policy.KindRan,
	// with the source's digest, beside it and under a name of its own. ok is false for a
	// file of which nothing is made.
	Built(source File) (built File, ok bool)
	// Everywhere tells whether a file fits all systems, so that nothing need be built of its
	// release.
	Everywhere(f File) bool
}

// Starter is the optional ability of a protocol that knows by their names which files of a release
// run by themselves.
type Starter interface {
	// Starts says when a file runs by itself, by its path within the release; "": nothing is known to
	// run it.
	Starts(path string) string
}

// Lister is the optional ability of a protocol whose clients read from the
// index page itself what releases require, and choose releases by that.
type Lister interface {
	// Listed reads the requirements of a listed file from its row (the bytes at
	// File.Manifest), with all kinds of requirement that a client may follow.
	// A requirement under an alias has the real name and its specifier. Those
	// that are Direct are left to Inspect.
	Listed(file File, row []byte) ([]Requirement, error)
}

// Addresser is the optional ability of a protocol whose files are addressed by
// project and version alone, so that an index need not list a release that exists.
type Addresser interface {
	// Addressed gives the file of the release that a route names by its project and
	// version, without digest and time: of a RouteFile the file that is asked for, of a
	// RouteAttachment the one that the attachment describes.
	Addressed(base string, r Route) (File, error)
}

// Attacher is the optional ability of a protocol that has attachments. They
// are judged as policy.KindMetadata: by name, since a resolver reads those of
// many releases that it then does not want.
type Attacher interface {
	// AttachmentAsk says how to ask the upstream for what a RouteAttachment names.
	AttachmentAsk(base string, r Route) Ask
	// Attachment reads the upstream's answer strictly.
	Attachment(r Route, body []byte) (Attachment, error)
}

// Requirer is the optional ability of an Attacher one of whose attachments says what a
// release requires.
type Requirer interface {
	// Requires is the route of that attachment.
	Requires(project, version string) (Route, error)
}

// Attachment is one of a release's small files.
type Attachment struct {
	Version     string // canonical; of a query such as a branch, the release that it led to
	ContentType string
	Body        []byte // for clients
	// Witnessed tells that Body must have the digest Attested.Attachment.
	Witnessed    bool
	Requirements []Requirement
}

// Witness is the optional ability of a protocol whose digests come from a
// transparency log. The protocol does the verifying; the gateway lends it the
// means, so that the protocol itself opens nothing.
type Witness interface {
	// VerifierOf gives the verifier of the log that a configuration names. ErrNotFound:
	// it says that there is none; ErrInvalid: nothing that the log says can be verified.
	VerifierOf(named string) (string, error)
	// Attest looks a release up in the log and verifies the answer and that the
	// log has only grown. ErrInvalid: the log lies or forks; ErrNotFound: the
	// log does not have the release.
	Attest(ctx context.Context, log Log, project, version string) (Attested, error)
	// SumFile and SumAttachment compute a digest in the log's own way, for
	// comparison with Attested.
	SumFile(file File, content Content) (string, error)
	SumAttachment(r Route, body []byte) (string, error)
	// Head reads the size of the log with this verifier from what one of its
	// answers has signed. ErrInvalid: the answer has no head that it signed.
	Head(verifier string, answer []byte) (int64, error)
	// HeadPath is what to ask the log for to get its newest head.
	HeadPath() string
	// Known are the sizes at times that this version was shipped with for the
	// log with this verifier; nil for a log that it has not heard of.
	Known(verifier string) []LogSize
}

// Attested is what a witness says of a release.
type Attested struct {
	File       string // digest of its file, "" if the log has none
	Attachment string // digest of its witnessed attachment, "" if the log has none
	Position   int64  // of the record in the log
	Size       int64  // of the log when it was last verified
}

// LogSize is an observation: at Time the log had at least Size records. A
// record at a lower position is older than that.
type LogSize struct {
	Size int64 `json:"size"`
	Unix int64 `json:"unix"` // seconds
}

// Log is what a Witness is lent: the way to one log, and durable storage.
type Log interface {
	// Verifier is the log's name with its public key, as a note's verifier.
	Verifier() string
	// Remote asks for a path below the log's base.
	Remote(ctx context.Context, path string) ([]byte, error)
	// Config reads and Replace atomically replaces a small durable value; an
	// absent one is empty. Replace fails with fault.ErrConflict if the value is
	// no longer old.
	Config(name string) ([]byte, error)
	Replace(name string, old, next []byte) error
	// Cached reads and Cache writes what may be lost; ErrNotFound if absent.
	Cached(name string) ([]byte, error)
	Cache(name string, data []byte)
}

// ToolchainNamer is the optional ability of a protocol that serves toolchains:
// package managers and compilers that other tools fetch by themselves. They are
// a class of their own in policies.
type ToolchainNamer interface {
	// Toolchain tells whether a project is one.
	Toolchain(project string) bool
}

// Prober is the optional ability of a protocol whose files may lie on other hosts than the
// index: the page of a project that all indexes have tells on which.
type Prober interface {
	// Probe is that project.
	Probe() string
}

// Noticer is the optional ability of a protocol whose clients show a notice
// that comes with a page.
type Noticer interface {
	// Notice gives the header fields to send with a page from which something
	// was withheld; r.What and r.Reason say what and why. nil: none.
	Notice(r Refusal) map[string]string
}

// PassThrough is the optional ability of a protocol that relays bytes which
// clients verify themselves (signatures, log tiles).
type PassThrough interface {
	// PassAsk says how to ask for what a RoutePass names.
	PassAsk(base string, r Route) Ask
}
