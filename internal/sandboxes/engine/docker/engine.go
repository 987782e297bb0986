// Package docker runs sandboxes as containers of a Docker daemon on this host, behind the
// strongest runtime that it has and that is seen to work.
//
// The Docker daemon behind its socket, which is called the service here, starts a container with
// kata, runsc or runc. The mounts of an instance are laid where the service sees them: the
// template, capped disks, the directories of the host that a sandbox is shown. All containers are
// of one tiny image (skeleton), which has names and nothing else: the mounts lie over these. The
// bridge is a process of this binary, the keeper's child: it attaches to a container, starts it,
// and carries the channel between the two.
//
// An instance's files are in <state>/sandboxes/<id>/docker. Of the service it has one
// container, which carries the labels of the installation and the sandbox.
package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// Name is what a policy's `isolation` says.
const Name = "docker"

// DefaultHost is where a Docker daemon listens if nobody says otherwise.
const DefaultHost = "unix:///var/run/docker.sock"

// tendEvery is how often what the service may still have of ours is looked for.
const tendEvery = 10 * time.Second

// Config says where things are. All paths are absolute.
type Config struct {
	Host     string // the service's socket, as unix://PATH; "" is DefaultHost
	StateDir string // instances are in StateDir/sandboxes/<id>/docker
	Place    string // a directory for the grounds of instances, which the service sees, too
	// Stage is the argv that runs Stage; the folder of an instance follows it.
	Stage []string
	// Stages are the limits of the programs that write an instance's files; the zero value is
	// hostproc.DefaultStageLimits.
	Stages cgroup.Limits
	// Probe is the argv of a static program that runs Probe; its first element is a path.
	Probe []string
	Log   *slog.Logger // what goes wrong in the background; nil: nobody is told
	// Writable are the directories of the host in which sandboxes may write, or could: nobody is asked who listens there.
	// nil: there are none.
	Writable func() []hostpath.Tree
}

// sandboxKeeper is what this engine needs of the keeper.
type sandboxKeeper interface {
	hostproc.Keeper

	Call(ctx context.Context, id string, call channel.Call) (channel.Reply, error)
	Kill(ctx context.Context, id string) error
}

// Engine is the Docker engine. Safe for concurrent use.
type Engine struct {
	cfg          Config
	keeper       sandboxKeeper
	home         *hostproc.Home
	installation string // what the label says
	uid          int
	images       image.Checker

	probing *semaphore.Weighted // of one: held over a probe of the service, and guards found
	found   *finding

	importing sync.Mutex // held while a skeleton is looked for or imported

	listing, tending complaint
}

var (
	_ engine.Restorer   = (*Engine)(nil)
	_ engine.Maintainer = (*Engine)(nil)
)

// New makes the engine; the service is asked when it is first used.
func New(cfg Config, k sandboxKeeper) *Engine {
	if cfg.Host == "" {
		cfg.Host = DefaultHost
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	sum := sha256.Sum256([]byte(cfg.StateDir))
	return &Engine{
		cfg: cfg, keeper: k, uid: os.Geteuid(), probing: semaphore.NewWeighted(1), installation: hex.EncodeToString(sum[:8]),
		home: hostproc.NewHome(Name, cfg.StateDir, hostproc.ParentGroup(cfg.StateDir)+"-"+Name, os.Geteuid(), k).LimitStages(cfg.Stages),
	}
}

// dialService dials the service, unless a sandbox could have put somebody there who listens in its place.
func (e *Engine) dialService(ctx context.Context) (service, error) {
	if err := e.checkSocket(); err != nil {
		return service{}, err
	}
	return dialHost(ctx, e.cfg.Host)
}

// checkSocket returns fault.ErrUnavailable where a sandbox may listen at the service's socket, or could: it would be asked in
// the service's place, and be shown the paths of the host that other sandboxes have.
func (e *Engine) checkSocket() error {
	if e.cfg.Writable == nil {
		return nil
	}
	socket := strings.TrimPrefix(e.cfg.Host, "unix://")
	tree, theirs, err := hostpath.Within(socket, e.cfg.Writable())
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "where %s lies can't be looked at", socket)
	}
	if theirs {
		return fault.New(fault.ErrUnavailable, "the Docker daemon's socket %s is reached under %s, where a sandbox may write, or could, so that an agent may listen there: have it listen elsewhere, and name that by docker.host in the configuration", socket, tree.Path)
	}
	return nil
}

// Name is "docker".
func (*Engine) Name() string { return Name }

// List returns the ids of all instances that have files, running or not, and of those of
// which the service still has a container.
func (e *Engine) List(ctx context.Context) ([]string, error) {
	ids, err := e.home.List(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	left, err := e.leftBehind(ctx)
	e.listing.tellFailure(ctx, e.cfg.Log, "what the Docker daemon has left of sandboxes can't be found out", err)
	for id := range left {
		if !seen[id] {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Open finds an instance that the keeper still knows; its daemon may have been another.
func (e *Engine) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	var st handleState
	if err := e.home.Find(ctx, h, &st); err != nil {
		return nil, err
	}
	return e.instance(h.ID, st), nil
}

// Tend removes what the service still has of sandboxes that are gone, until ctx ends: one
// that was down when they went keeps their containers.
func (e *Engine) Tend(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		e.tending.tellFailure(ctx, e.cfg.Log, "what the Docker daemon has left of sandboxes can't be removed; it is tried again", e.removeOrphans(ctx))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Hurry does nothing: the service divides the processors.
func (*Engine) Hurry(string) (done func()) { return func() {} }

// marker is a file that is there while the service may have containers of ours, so that a
// service that nobody uses is not woken by being asked.
func (e *Engine) marker() string { return filepath.Join(e.cfg.StateDir, "docker.used") }
