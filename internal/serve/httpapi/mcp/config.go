package mcp

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Backend is what the tools need of the daemon. *client.Client is one.
type Backend interface {
	CreateSandbox(ctx context.Context, req api.CreateSandbox) (api.Sandbox, error)
	Sandbox(ctx context.Context, id string) (api.Sandbox, error)
	DestroySandbox(ctx context.Context, id string) error
	StartCommand(ctx context.Context, sandbox string, req api.StartCommand) (api.Command, error)
	// SignalCommand is client.SignalCommand: it returns when the sandbox says that it is done.
	SignalCommand(ctx context.Context, sandbox, command, name string, tree bool) error
	Attach(ctx context.Context, sandbox, command string, offset int64) (*client.Attachment, error)
	Holds(ctx context.Context, sandbox string) ([]api.Hold, error)
	// Stay has the sandbox's lease go on until ctx ends or the sandbox is gone; see client.Stay.
	Stay(ctx context.Context, sandbox string) error
	ReadFile(ctx context.Context, sandbox string, f client.File) (*client.FileContent, error)
	WriteFile(ctx context.Context, sandbox string, f client.File, content io.Reader) (api.FileInfo, error)
	ListFiles(ctx context.Context, sandbox string, f client.File, depth int) iter.Seq2[api.FileInfo, error]
	MakePlan(ctx context.Context, run string, resolved api.ResolvedPlan) (api.Plan, error)
	Refusals(ctx context.Context, f client.RefusalFilter) (api.Refusals, error)
	Suggest(ctx context.Context, run string, plans ...string) (api.Suggestion, error)
	Installs(ctx context.Context, f client.InstallFilter) (api.InstallPage, error)
	Approval(ctx context.Context, id string) (api.Approval, error)
}

// Over is the backend that a client of /v1 is.
func Over(c *client.Client) Backend { return over{c} }

type over struct{ *client.Client }

// SignalCommand implements Backend.
func (o over) SignalCommand(ctx context.Context, sandbox, command, name string, tree bool) error {
	return client.SignalCommand(ctx, o.Client, sandbox, command, name, tree)
}

// Stay implements Backend.
func (o over) Stay(ctx context.Context, sandbox string) error {
	return client.Stay(ctx, o.Client, sandbox)
}

// Config is what a server is made of.
type Config struct {
	// Connect makes a backend for a peer that shows a token; "" is none. It is called again
	// where a daemon was not there any more.
	Connect func(ctx context.Context, token string) (Backend, error)
	// Sandbox is what each sandbox of a peer is made from. Run, task and lifetime are set
	// here, unless it has them.
	Sandbox api.CreateSandbox
	// ApprovalURL is the address of the page on which a person answers a request, with
	// {request} where its id goes; "": there is none, and a command line is told.
	ApprovalURL string
	// Installers are the clients of ecosystems whose installs can be planned.
	Installers []installer.Installer
	Version    string
	Logger     *slog.Logger
	// Room bounds what the messages of tokens hold over HTTP; nil: one of its own.
	Room *backend.Room

	// MaxPeers bounds the peers of one token; 0: 32. Patience is how long a command waits for
	// a person before its call returns without it; 0: 30 s. ProgressEvery is how often a command
	// that goes on is looked at; 0 or less: a second.
	MaxPeers                int
	Patience, ProgressEvery time.Duration
}

// Limits of what one peer may have, and of what one call may bring.
const (
	defaultPeers         = 32
	defaultPatience      = 30 * time.Second
	defaultProgressEvery = time.Second
	maxSandboxes         = 8 // of a peer
	maxCalls             = 8 // of a peer, at one time
	idleSeconds          = 3600
	peerTimeout          = 30 * time.Minute // without a request
	// leaseSeconds is how long a sandbox lasts without its peer: as long as one over HTTP may be
	// away. A laptop that sleeps is away for its daemon on another machine, which hears of it by
	// TCP's keep-alive after two minutes.
	leaseSeconds = int64(peerTimeout / time.Second)
	farewell     = 2 * time.Minute // for the removal of a peer's sandboxes
)
