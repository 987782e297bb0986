// Package templatebuild makes templates by a client's recipe: a sandbox of a base, steps that are commands
// in it, one after the other, and a snapshot of what came of it. Packages that a step installs come
// through the gateway under the client's policy, as in any sandbox, and stand in the snapshot's
// ledger.
//
// Copy steps unpack an upload, an archive of files, and whoever has its ticket may send it, once.
//
// The files that clients send are not read here: an archive is unpacked in the sandbox, with its
// rights. A build that fails leaves nothing but its log.
package templatebuild

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Label is the label of a build's sandbox: its value is the build's id.
const Label = sandbox.BuildLabel

// Bounds of what clients may ask for.
const (
	maxSteps = 200
	// mostVariables that steps set: each step is done, and told, with those before it. No command has more.
	mostVariables = 1_000
	maxText       = 64 << 10 // of one argument of a step
	maxTags       = 16
	maxWaiting    = 32 // builds of a token that have not begun
	atOnceEach    = 4  // of a token
	atOnceAll     = 8
	atOnceMost    = 32 // with the one that each token may have whatever the others have
	keptEach      = 50 // ended builds of a token that are remembered
	keptFor       = 7 * 24 * time.Hour
	waitingFor    = time.Hour // until a build that nobody starts is given up
	longestStep   = 30 * time.Minute
	longest       = time.Hour // of a whole build
	readyWithin   = 5 * time.Minute
	readyPause    = 500 * time.Millisecond
)

// Status is how a build stands.
type Status string

// The statuses.
const (
	Waiting  Status = "waiting"
	Building Status = "building"
	Ready    Status = "ready"
	Failed   Status = "error"
)

// Steps that are none of the client's.
const (
	StepBase     = "base"
	StepFinalize = "finalize"
)

// Build is one time that a recipe is built.
type Build struct {
	ID       string    `json:"id"`
	Template string    `json:"template"` // the template's id
	Name     string    `json:"name"`
	Names    []string  `json:"names"` // that lead to the result
	Owner    string    `json:"owner,omitempty"`
	Status   Status    `json:"status"`
	Step     string    `json:"step,omitempty"`   // that failed
	Reason   string    `json:"reason,omitempty"` // why
	Snapshot string    `json:"snapshot,omitempty"`
	Created  time.Time `json:"created"`
	Ended    time.Time `json:"ended,omitzero"`
}

func (b Build) hasEnded() bool { return b.Status == Ready || b.Status == Failed }

// Sandboxes is what is needed of the sandboxes' manager.
type Sandboxes interface {
	Create(ctx context.Context, req sandbox.Request) (*sandbox.Sandbox, error)
	List() []*sandbox.Sandbox
	Destroy(ctx context.Context, id string) error
	Start(ctx context.Context, id string, c sandbox.Command) (keeper.Command, error)
	Elevated(ctx context.Context, id string, e sandbox.Elevated) (channel.Exit, error)
	Attach(ctx context.Context, id, command string, offset int64) (net.Conn, error)
	File(ctx context.Context, id string, f channel.File) (channel.FileInfo, error)
	OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error)
	Keep(ctx context.Context, id string, keep sandbox.Keep) (sandbox.Snapshot, error)
	Snapshots(ctx context.Context) ([]sandbox.Snapshot, error)
	RemoveSnapshot(ctx context.Context, owner, ref string) error
}

// Recorder writes the log; *admission.Controller is one.
type Recorder interface {
	RecordBuild(ctx context.Context, sandbox string, b admission.Build) error
}

// Config is what a Builder works with. All fields are needed.
type Config struct {
	Sandboxes Sandboxes
	Recorder  Recorder
	// Owed tells whether the log has the begin of a build, by its id, and no end of it. It is asked of the builds of
	// an earlier daemon: that may have been killed when the end was on record and not yet in the builds' own files.
	Owed func(ctx context.Context, build string) (bool, error)
	// Distribution is asked before packages of the distribution are brought, and told.
	Distribution Distribution
	// Archive finds out what an install of the distribution's packages comes to.
	Archive func(ctx context.Context, w debian.Request) (SystemSet, error)
	// During ends what is done for a token when that is revoked; token.Book.During is one.
	During func(ctx context.Context, token string) (during context.Context, stop func())
	// Dir is the builds' own; it exists, and belongs to this user alone.
	Dir string
	Log *slog.Logger
}
