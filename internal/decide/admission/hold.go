package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Approvals is the queue of held requests, as the door needs it; package
// approval implements it.
type Approvals interface {
	// Ask files an ask, or joins the request that there is for the release and
	// adds the files that it did not know. It has recorded that when it returns.
	// A release whose known file has another digest now supersedes the request.
	Ask(ctx context.Context, ask approval.Ask) (approval.Request, error)
	// AskTree files all that an install brings as one request, whose members are
	// requests of their own: all of it or, on an error, nothing.
	AskTree(ctx context.Context, tree approval.TreeAsk) (approval.Request, error)
	// Await returns the request once it is not pending any more; with ctx's end,
	// ctx's error.
	Await(ctx context.Context, id string) (approval.Request, error)
	// Grants are the answers about a project's releases that hold now for who asks (its Run,
	// its Token or User, and its Policy), and a generation that changes whenever these can
	// have.
	Grants(ctx context.Context, project pkgref.Ref, who approval.Asker) (grants []policy.Approval, generation string, err error)
	// Use takes an approval for a call of a tool that begins now: one that was given for a
	// single call ends with that. fault.ErrConflict: it holds no more.
	Use(ctx context.Context, id string) error
}

// Holder is told what a sandbox waits for. Package sandbox implements it.
type Holder interface {
	// Held tells that a request of the sandbox's client waits for a person. With
	// freeze the sandbox is to be frozen meanwhile.
	Held(sandbox string, hold Hold, freeze bool)
	// Released takes a hold back: it was answered, given up, or timed out. It
	// returns when the sandbox runs, so that the answer meets it running; what is
	// frozen thaws once none of its holds is pending any more. With a context that
	// has ended it takes the hold back all the same, and waits for nothing. There
	// is one call for each of Held, with an equal hold; equal ones are held as often
	// as clients ask for the same file at once.
	Released(ctx context.Context, sandbox string, hold Hold) error
}

// Hold is one client's request that waits.
type Hold struct {
	Approval string // the request's id
	Tree     string // the request that it is a member of; "": none
	Package  pkgref.Ref
	Host     string // "api.example:443", in the place of a package
	Push     string // "git.example:443/acme/app sha256:...", the same: of a push
	Tool     string // "lookup_order sha256:...", the same: of a call
	Reason   string
}
