package door

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
)

// Door is everything that the gateway may ask of the daemon. The Controller
// implements it; Client carries it over the connection that the gateway
// inherits. A Sandbox argument comes from the keeper, never from the guest.
//
// Errors fail closed: whoever gets one refuses what was asked.
type Door interface {
	Packages
	Hosts
	Secrets
	Tools

	// Refusals returns the run's last refusals, at most most (0: all that are kept),
	// oldest first but for alarms, which come before all others. With the id of a
	// request, one that the client was shown or one of the queue, it is what was
	// refused under that.
	Refusals(ctx context.Context, sandbox, request string, most int) ([]Refusal, error)
}

// Packages judges and records what the gateway of the registries does.
type Packages interface {
	// Index judges all files of one index page in one call and records what it
	// withholds (once per run, project, index digest and policy), or that it is shown
	// whole. That is durable when Index returns. If
	// ask.Files is nil and no verdict is remembered for ask.IndexDigest the
	// answer has NeedFiles set, and the caller asks again with them.
	Index(ctx context.Context, ask IndexAsk) (IndexAnswer, error)

	// Owner says which upstream must be asked for a package, before any upstream hears its name:
	// private names go to their own upstream or nowhere. A text that must not leave the sandbox, a
	// placeholder or by its policy a secret, is refused with an error.
	Owner(ctx context.Context, ask OwnerAsk) (OwnerAnswer, error)

	// Asking records that an upstream is about to be asked because of a sandbox, durably
	// when it returns, whoever still waits for the answer by then: once for each question,
	// with the number of its repeats. After an error nothing may be asked.
	Asking(ctx context.Context, q Question) error

	// Judge judges one file, before anything is fetched or again later: a denial is
	// recorded, an allowance is not, and a hold is answered at once as what it is, so
	// that the gateway goes on and learns the file's digests.
	Judge(ctx context.Context, ask JudgeAsk) (Answer, error)

	// Outline judges a file of which a resolver asks what its release requires. It is
	// like Judge, but a refusal for the name's likeness alone is no record: the outline
	// is shown, and the file, if it is asked for, judged by all that requires it by then.
	Outline(ctx context.Context, ask OutlineAsk) (Answer, error)

	// Preview judges a file whose metadata the client reads, not the file. It is like
	// Judge, but of a release on hold that is shown, and the release is filed as one
	// that will be wanted.
	Preview(ctx context.Context, ask PreviewAsk) (Answer, error)

	// Walk judges a file, or metadata, that is shown to nobody: it is read on the way to
	// another package. The release moves in the ledger as ever; no record follows.
	Walk(ctx context.Context, ask WalkAsk) (Answer, error)

	// Await judges verified bytes. A hold is filed, and waited for as the policy's on_hold says; whoever asks
	// may give up. A file that is allowed then is asked for with Serve, which waits for nobody.
	Await(ctx context.Context, ask AwaitAsk) (Answer, error)

	// Build has a wheel, or what else is installed, built of a source distribution that is
	// verified and admitted, in a sandbox of its own. It goes on when the caller gives up,
	// as long as the run lives. A refusal is recorded, and so is what was built.
	Build(ctx context.Context, ask BuildAsk) (BuildAnswer, error)

	// ReadBuilt gives a piece of what Build has built, from an offset on; empty at its end.
	// It can be read for some minutes.
	ReadBuilt(ctx context.Context, ask ReadBuiltAsk) ([]byte, error)

	// Serve judges verified bytes and appends the `served` record of what is allowed,
	// durable when it returns; what is denied gets its `blocked` record.
	Serve(ctx context.Context, ask ServeAsk) (Answer, error)

	// Failed records that the gateway refused something that it could not
	// parse or verify (a lying upstream, a name that is not canonical).
	Failed(ctx context.Context, f Failure) (Answer, error)

	// Edges reports what verified metadata requires; returned when the daemon
	// has them, so that the client's next request meets them.
	Edges(ctx context.Context, sandbox string, parent pkgref.Ref, reqs []Requirement) error

	// EdgesOfIndex reports what the releases that an index lists require, for
	// clients that read it there (ecosystem.Lister). It is called for the answer
	// of Index that has WantEdges, before the page is sent, with the requirements
	// of every file that the answer allows. Those of releases that are, or come
	// to be, admitted in this run become edges; the others wait.
	EdgesOfIndex(ctx context.Context, sandbox string, project pkgref.Ref, indexDigest string, reqs []IndexRequirement) error

	// Reach says what to read so that it shows whether the policy's entries lead to a
	// package, or that nothing is left to read.
	Reach(ctx context.Context, ask ReachAsk) (ReachAnswer, error)

	// Reached tells whether reading more would not change the answer about a package, as
	// Reach does, and gives nothing out to read.
	Reached(ctx context.Context, ask ReachAsk) (bool, error)

	// StopReaching tells that no more is read on the way to a package for now: a request
	// has waited too long for it. A refusal then says so.
	StopReaching(ctx context.Context, ask ReachAsk) error

	// Propose judges releases that an agent asks for before anything fails, and
	// files those that would wait for a person. The answer has the items' order.
	Propose(ctx context.Context, ask ProposalAsk) ([]Proposed, error)

	// Show records that metadata is about to be sent, once per release, kind and digest;
	// the record is durable when it returns. Pages are Index's to record.
	Show(ctx context.Context, s Showing) error

	// Sent tells that all of a served artifact was sent: no record follows. Without
	// it, or Aborted, the file is taken for aborted when the gateway or the
	// sandbox ends.
	Sent(ctx context.Context, sandbox string, recordSeq uint64) error

	// Aborted records that a served artifact did not reach the client whole; sent
	// are the bytes that left the gateway.
	Aborted(ctx context.Context, sandbox string, recordSeq uint64, sent int64) error

	// Trust is called once the gateway knows which host names it answers for;
	// it returns a certificate for exactly these, under the installation's CA.
	Trust(ctx context.Context, hosts []string) (Certificate, error)
}

// File is one file of an index page, as far as policy cares.
type File struct {
	Name      string              `json:"name"`
	Version   string              `json:"version"` // canonical
	Kind      policy.ArtifactKind `json:"kind"`
	Digest    string              `json:"digest,omitempty"` // "algorithm:<hex>" or "h1:<base64>", the upstream's
	Size      int64               `json:"size,omitempty"`   // bytes, by the upstream; 0: unknown
	Published time.Time           `json:"published,omitzero"`
	FirstSeen time.Time           `json:"first_seen,omitzero"` // by this installation
	Yanked    bool                `json:"yanked,omitempty"`
	Scripts   bool                `json:"scripts,omitempty"` // something runs when it is installed
	PartOf    []string            `json:"part_of,omitempty"` // see policy.FileFacts
}

// OwnerAsk asks which upstream has a package.
type OwnerAsk struct {
	Sandbox string     `json:"sandbox"`
	Package pkgref.Ref `json:"package"`           // no version
	Version string     `json:"version,omitempty"` // that the client asks for, if its request tells
	// MayWalk tells that the gateway would read what may lead to the package (Reach), and
	// Metadata that only what resolvers read of it is asked for.
	MayWalk  bool `json:"may_walk,omitempty"`
	Metadata bool `json:"metadata,omitempty"`
	// Asked is what else of the request's text an upstream would hear: a version that is
	// none yet, a file.
	Asked string `json:"asked,omitempty"`
	// Walk tells that no client asks: it is on the way to another package.
	Walk bool `json:"walk,omitempty"`
}

// OwnerAnswer names the index URL of the only upstream that may be asked; ""
// is any of the package's ecosystem. If it is none of the gateway's the package
// is refused, and recorded with Failed under policy.ByNamespace.
type OwnerAnswer struct {
	Upstream string `json:"upstream,omitempty"`
	// Apart is with whom the name's index page may be shared: pages with another
	// Apart, and the times of their files, are neither read for this nor written.
	Apart string `json:"apart,omitempty"`
	// Admitted tells that an entry or a requirement names it: asking about it tells
	// nobody more than that does.
	Admitted bool `json:"admitted,omitempty"`
	// Builder names all that decides what is made of a published file for the run, in a
	// sandbox of its own, and Makes are the kinds of what is (policy.KindBuilt,
	// policy.KindRan); "" and none: nothing is made.
	Builder string                `json:"builder,omitempty"`
	Makes   []policy.ArtifactKind `json:"makes,omitempty"`
	// Unreached, of an ask with MayWalk, tells that nothing names it by what was read,
	// and that something which was not may.
	Unreached bool `json:"unreached,omitempty"`
}

// IndexAsk asks about a project's files.
type IndexAsk struct {
	Sandbox     string     `json:"sandbox"`
	Package     pkgref.Ref `json:"package"` // no version
	SourceURL   string     `json:"source_url"`
	Upstream    string     `json:"upstream,omitempty"`  // the index's URL
	Toolchain   bool       `json:"toolchain,omitempty"` // see policy.Subject
	IndexDigest string     `json:"index_digest"`        // of the upstream's page, and of the files' times if they are asked for
	Files       []File     `json:"files,omitzero"`      // nil: not sent; empty: there are none
	// Walk tells that the page is shown to nobody: it is read on the way to another
	// package, and no record follows.
	Walk bool `json:"walk,omitempty"`
}

// IndexAnswer has one verdict per distinct decision and, per file in the order
// of the ask, its verdict's position. Epoch names the whole answer: equal
// epochs mean equal verdicts, so a rendered page can be kept under it.
type IndexAnswer struct {
	NeedFiles bool `json:"need_files,omitempty"`
	// NeedTimes comes with NeedFiles: files without a time will be refused for
	// that, so a gateway that can find times out (from a witness) does so first.
	NeedTimes bool              `json:"need_times,omitempty"`
	Epoch     string            `json:"epoch"`
	Verdicts  []policy.Decision `json:"verdicts"`
	OfFile    []int             `json:"of_file"`
	// WantEdges asks for EdgesOfIndex if the protocol is an ecosystem.Lister.
	WantEdges bool   `json:"want_edges,omitempty"`
	RequestID string `json:"request_id,omitempty"` // of the withheld record, to show
}

// Failure is something that the gateway itself refused.
type Failure struct {
	Sandbox    string            `json:"sandbox"`
	Package    pkgref.Ref        `json:"package"`
	File       string            `json:"file,omitempty"`
	SourceURL  string            `json:"source_url,omitempty"`
	ResolvedBy policy.ResolvedBy `json:"resolved_by"` // ByIntegrity, ByCanonical, ByNamespace or ByToolchain
	Rule       string            `json:"rule,omitempty"`
	Reason     string            `json:"reason"`
	// Metadata tells that File is none of a release's files: resolvers read it.
	Metadata bool `json:"metadata,omitempty"`
}

// Answer is a decision that was recorded.
type Answer struct {
	Decision  policy.Decision `json:"decision"`
	RequestID string          `json:"request_id,omitempty"` // of the record, short, to show to the client
	Seq       uint64          `json:"seq"`
	Approval  string          `json:"approval,omitempty"` // the request in the queue, of a hold
	// Unreached, of an ask with MayWalk, tells that what requires it may not have been read.
	Unreached bool `json:"unreached,omitempty"`
}

// Requirement is one requirement of a release's metadata.
type Requirement struct {
	Name      string `json:"name"`      // canonical
	Specifier string `json:"specifier"` // "" is any
	// Under are the release's extras (Python's) of which each alone brings this
	// requirement, with commas between; "": it counts for everybody. Asks are the extras
	// that it asks of Name.
	Under string `json:"under,omitempty"`
	Asks  string `json:"asks,omitempty"`
	// Optional tells that clients install the release without it where it can't be had.
	Optional bool `json:"optional,omitempty"`
}

// IndexRequirement is one requirement that releases of an index have in common:
// equal names and specifiers are one, with all releases that have it.
type IndexRequirement struct {
	Name      string   `json:"name"` // canonical
	Specifier string   `json:"specifier,omitempty"`
	Versions  []string `json:"versions"` // canonical, of the releases that require it
	Optional  bool     `json:"optional,omitempty"`
}

// Refusal is what `cofferdam why` prints.
type Refusal = refusal.Refusal

// Certificate is what the gateway answers TLS with.
type Certificate struct {
	ChainPEM []byte `json:"chain_pem"`
	KeyPEM   []byte `json:"key_pem"`
}
