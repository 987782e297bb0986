package sandbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/outputscan"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// Config is what a Manager works with. All fields are needed that don't say what
// their zero value means.
type Config struct {
	Engines       map[string]engine.Engine
	DefaultEngine string
	// CallEngines are the names of engines of calls, which make no sandboxes.
	CallEngines []string
	Keeper      *keeper.Client
	Templates   templates
	Door        *admission.Controller
	// Host is how much sandboxes may be promised together.
	Host quota.Host
	// Scans are the rules for what leaves sandboxes; nil: all that there are.
	Scans func() *dlp.Set
	// Hold counts what is kept for whoever asks in a context; nil: nobody does.
	Hold outputscan.Hold
	// Warm has a sandbox of the template code-interpreter start a kernel before anybody has
	// claimed it; nil: kernels start with their first cells.
	Warm func(ctx context.Context, u commands.Unclaimed) error
	// Trust gives the CA certificate for new sandboxes and the host names that
	// the gateway answers for; it waits until they are known.
	Trust func(ctx context.Context) (caPEM []byte, names []string, err error)
	// TrustHosts gives the certificate of the CA under which the gateway ends TLS for
	// just these hosts; nil: it ends none.
	TrustHosts func(ctx context.Context, hosts []string) (caPEM []byte, err error)
	// ClientSettings are the variables that package clients have in every sandbox; a
	// template's own and all others go over them.
	ClientSettings map[string]string
	// ClientEnv tells clients which registry to ask where it is not the one that
	// they ask by themselves.
	ClientEnv func() map[string]string
	// Secrets are those that policies can name; nil: there are none.
	Secrets *secret.Broker
	// AgentDir holds the guest agent's files, shown inside read-only.
	AgentDir string
	// EmptyFile lies over hidden files.
	EmptyFile string
	// Own are the installation's directories, never to be mounted.
	Own []string
	// Programs are the files that decide what programs of the configuration do, which no sandbox
	// may write; nil: there are none.
	Programs func() []string
	// ToolHomes are directories of Programs in which a project may lie: see mounts.Rules.
	ToolHomes func() []string
	// OwnPrograms are Cofferdam's own: see mounts.Rules.
	OwnPrograms []string
	// Written keeps what sandboxes were ever given to write of the host; nil: only what those
	// may write that live is known.
	Written *written.Record
	// Hidden keeps what ignore files hide of the host; nil: it is not kept.
	Hidden *mountpolicy.Hidden
	// Projects and Copies: see mounts.Rules.
	Projects func() ([]string, error)
	Copies   string
	// Seen: see mounts.Rules.
	Seen func(what, path string, text []byte) error
	// PolicyDir keeps each policy document under its digest.
	PolicyDir string
	// BaselineDir keeps what each template brings, by the template's digest.
	BaselineDir     string
	DefaultTemplate string
	// Queue tells what people have not answered yet; Shelf is where frozen
	// sandboxes lie, and FreezeAfter how long a person has before one is frozen.
	Queue       suspend.Queue
	Shelf       *suspend.Shelf
	FreezeAfter time.Duration
	// Homes has what agents keep from one sandbox to the next; nil: nothing is kept.
	Homes *agenthome.Shelf
	// Snapshots is where copies of sandboxes lie; nil: there are none, and none are
	// made.
	Snapshots *snapshots.Store
	Log       *slog.Logger
	// Observer is told what is done with sandboxes; nil: nobody is.
	Observer Observer
	// Journal is what the next daemon finds them by; nil: one that ends with this
	// process.
	Journal Journal
	// Reserve is how many bytes of disk must be free for another sandbox; 0: 256 MiB.
	Reserve int64
	// EndRetry is how long after it failed for the first time the taking away of a
	// sandbox is tried again; 0: a second.
	EndRetry time.Duration
	// Boot tells which boot of the machine this is and how long it is since; nil: the
	// kernel is asked.
	Boot func() (boot string, since time.Duration)
}

// templates is what the manager needs of the template store.
type templates interface {
	Get(ctx context.Context, name string) (template.Template, error)
	// Generation returns the template of a name with this digest, which need not be
	// the current one.
	Generation(ctx context.Context, name, digest string) (template.Template, error)
}

// fillDefaults puts in what is not given.
func (c *Config) fillDefaults() {
	if c.Journal == nil {
		c.Journal = journal.NewMemory()
	}
	if c.Scans == nil {
		c.Scans = sync.OnceValue(func() *dlp.Set { return dlp.NewSet(slices.Concat(secrets.Rules(), personal.Rules())...) })
	}
	if c.Boot == nil {
		c.Boot = sinceBoot
	}
}
