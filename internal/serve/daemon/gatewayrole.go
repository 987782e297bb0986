package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// bootDocument is what the daemon tells a fresh gateway, on its standard input.
// It has the upstreams' credentials, so it is in no argument and no environment.
type bootDocument struct {
	Confinement   confinement                   `json:"confinement"`
	CacheDir      string                        `json:"cache_dir"` // as seen inside of the confinement
	Upstreams     []upstream.Config             `json:"upstreams"`
	ProbeProjects map[pkgref.Ecosystem][]string `json:"probe_projects,omitempty"`
	Version       string                        `json:"version"`
	Hosts         []outbound.Host               `json:"hosts,omitempty"` // where the operator says that names are
	// Clock is what time it is: that of the daemon, whatever the host's clock says.
	Clock clock.Mark `json:"clock"`
}

// ArtifactsDir is the gateway's own directory in the cache's.
const ArtifactsDir = "artifacts"

// memoryGoal is what the Go runtime holds the gateway's memory to, by collecting
// more often: pages of many megabytes come and go, and without it the heap grows
// to twice what lives. It is a goal, not a limit: a gateway that needs more
// takes it.
const memoryGoal = 96 << 20

// The descriptors that a gateway inherits.
const (
	doorFD   = 3
	uplinkFD = 4
	boxedFD  = 5 // to the dialer
)

func (g *gatewayProcess) bootDocument() bootDocument {
	b := bootDocument{CacheDir: filepath.Join(g.d.opts.Paths.Cache(), ArtifactsDir), Upstreams: g.d.spoken(g.currentUpstreams()), Version: g.d.opts.Version, Clock: g.d.clock.Mark(), Confinement: confinement{Outside: g.d.opts.Paths.State}}
	if hosts, err := g.d.opts.Config.Network.Outbound(written.OrAnywhere(g.d.opts.Paths.Written())); err == nil { // it was checked when it was read
		b.Hosts = hosts
	}
	if probes := g.d.opts.Config.ProbeProjects; len(probes) > 0 {
		b.ProbeProjects = map[pkgref.Ecosystem][]string{}
		for _, e := range pkgref.Ecosystems() {
			if filesElsewhere(e) {
				b.ProbeProjects[e] = probes
			}
		}
	}
	if os.Geteuid() == 0 {
		uid := g.d.opts.Config.GatewayUID
		b.Confinement.Root, b.Confinement.UID, b.Confinement.GID = g.d.opts.Paths.Cache(), uid, uid
		b.CacheDir = "/" + ArtifactsDir
	}
	return b
}

// RunGateway is the gateway's process: it reads its boot document, gives up
// what it does not need, and serves until its door closes or ctx ends.
func RunGateway(ctx context.Context, boot io.Reader, log *slog.Logger) error {
	debug.SetMemoryLimit(memoryGoal)
	var b bootDocument
	if err := json.NewDecoder(boot).Decode(&b); err != nil {
		return fmt.Errorf("the gateway is started by the daemon only: read the boot document: %w", err)
	}
	questions, err := net.FileConn(os.NewFile(doorFD, "door"))
	if err != nil {
		return fmt.Errorf("take the door: %w", err)
	}
	uplink, err := net.FileListener(os.NewFile(uplinkFD, "uplink"))
	if err != nil {
		return fmt.Errorf("take the uplink: %w", err)
	}
	connections, err := dialer.NewClient(os.NewFile(boxedFD, "dialer"))
	if err != nil {
		return err
	}
	defer func() { _ = connections.Close() }() // the process ends
	own := func() landlock.Reach { return landlock.Reach{Own: []string{b.CacheDir}} }
	if err := b.Confinement.settleRole(own, seccomp.Enter, log); err != nil {
		return err
	}
	return serveGateway(ctx, b, questions, uplink, connections, log)
}

// lastRecords is how long a gateway that ends may still ask the door, to put on record what it has counted. The daemon waits
// longer for its end.
const lastRecords = time.Second

func serveGateway(ctx context.Context, b bootDocument, conn net.Conn, uplink net.Listener, connections *dialer.Client, log *slog.Logger) error {
	asks := door.NewClient(conn)
	defer asks.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	safego.When(ctx, func() { safego.After(lastRecords, func() { asks.Close() }) })
	safego.Go(func() {
		select {
		case <-asks.Done(): // the daemon ended; so does its gateway
		case <-connections.Done(): // the next one gets another
			log.Error("the dialer ended; so does its gateway")
		}
		cancel()
	})
	registry, ready := &startedLater{}, make(chan struct{})
	router := egress.NewRouter(egress.Config{Registry: registry, Ready: ready, Door: asks, Log: log, Dialer: outbound.NewDialer(b.Hosts, connections).Through(connections.DialContext), Exchanges: scanned(asks)})
	var starting errgroup.Group
	starting.Go(func() error {
		err := safego.Try(func() (err error) {
			registry.registryServer, err = registries(ctx, b, asks, connections, log)
			return err
		})
		if err != nil {
			cancel()
			return err
		}
		close(ready)
		return nil
	})
	err := router.Serve(ctx, uplink)
	cancel() // what still starts gives up
	if started := starting.Wait(); started != nil {
		return errors.Join(started, err)
	}
	return errors.Join(err, registry.Close())
}

// startedLater is a registry server that may not be there yet: its upstreams may take seconds to say what it has to know, and the ends of
// sandboxes do not wait for that. Nothing of it is called before it is there.
type startedLater struct{ registryServer }

// registryServer is the gateway, or what stands in for it where no upstream is
// known.
type registryServer interface {
	egress.Registry
	io.Closer
}

func registries(ctx context.Context, b bootDocument, asks gateway.Door, connections *dialer.Client, log *slog.Logger) (registryServer, error) {
	if len(b.Upstreams) == 0 {
		log.Warn("no upstream registry is known; packages can't be installed until one is configured or found")
		if _, err := asks.Trust(ctx, nil); err != nil {
			return nil, err
		}
		return noRegistries{}, nil
	}
	g, err := gateway.New(gateway.Config{
		CacheDir: b.CacheDir, Upstreams: b.Upstreams, ProbeProjects: b.ProbeProjects, Version: b.Version, Log: log, Clock: clock.From(b.Clock),
		Resolver: connections, Dial: connections.DialContext,
	}, asks)
	if err != nil {
		return nil, err
	}
	if err := g.Start(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// noRegistries answers for no name.
type noRegistries struct{}

func (noRegistries) IsRegistry(string) bool                { return false }
func (noRegistries) ServeRegistry(conn net.Conn, _ string) { conn.Close() }
func (noRegistries) Propose(context.Context, string, channel.Request) ([]door.Proposed, error) {
	return nil, fault.New(fault.ErrUnavailable, "no registry is known here")
}
func (noRegistries) Close() error { return nil }
