// Package daemon is the composition root: it makes every part, joins them, and
// runs until it is told to stop or has been idle.
//
// The one binary has several roles (daemon, keeper, gateway). A daemon is idle when it has no
// sandbox and no client.
package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/publish"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon/watched"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// Options say how to run.
type Options struct {
	Paths  config.Paths
	Config config.Config
	// From is the file that Config was read from: what is wrong with a setting is told with its place.
	From    config.Source
	Version string
	// Executable starts the other roles; it must be this very binary.
	Executable string
	// EndWhenIdle ends the daemon after Config.IdleTimeout without work.
	EndWhenIdle bool
	// AcceptRollback goes on with a log that was rolled back, which is a record.
	AcceptRollback bool
	Log            *slog.Logger
	// Level is Log's, and may be set; nil: it stays.
	Level *slog.LevelVar
	// ReadConfig reads the configuration anew, as Config was read; nil: it can't be.
	ReadConfig func() (config.Config, config.Source, error)
}

// Daemon is a running daemon.
type Daemon struct {
	opts        Options
	lock        *filelock.Lock
	keeper      *keeper.Client
	groups      *processGroups // of the gateway and the keeper
	nursery     keeperHolder   // sees to it that it is there
	log         *audit.FileLog
	secretForms *dlp.Set // by which text is kept without secrets
	lost        *lost
	records     audit.Log // log, for what is appended: counted, and without secrets in it
	clock       *clock.Clock
	time        timekeeper // tells of it
	seen        memory
	index       *index.Index
	publisher   *publish.Publisher // nil if nothing is published
	approvals   approvals
	// quietQueue ends what tells sandboxes of the queue, and waits for that.
	quietQueue func()
	advisory   *advisory.DB
	authority  *authority.Authority
	hosts      *authority.Hosts // of those whose TLS the gateway ends
	secrets    *secret.Broker
	templates  *template.Store
	door       *admission.Controller
	sandboxes  *sandbox.Manager
	calls      *jscall.Desk
	homes      *agenthome.Shelf
	journal    *store.Sandboxes
	// quietKeeper ends the watching of the keeper, and waits for that.
	quietKeeper func()
	gateway     *gatewayProcess
	api         *httpapi.Server
	telemetry   *telemetry.Telemetry
	alarms      alarmFollower
	ownerKeys   audit.OwnerKeys
	health      *health
	serves      []*server // all listeners, from the moment they are open
	tcp         *server   // one of them; nil: there is none
	used        use       // of what tcp serves
	clients     clients
	builds      *templatebuild.Builder               // nil: no client can build templates
	runs        atomic.Pointer[admission.Controller] // the door, once it is there, for log lines
	stop        chan struct{}
	stopOnce    sync.Once
	settings    settings

	learning   sync.Mutex // guards registries once the daemon serves
	registries discover.Found
}

// New takes the installation's lock and makes all parts; sandboxes that lived
// through the previous daemon are adopted. fault.ErrConflict if a daemon runs.
func New(ctx context.Context, opts Options) (*Daemon, error) {
	d := &Daemon{opts: opts, stop: make(chan struct{}), settings: settings{now: opts.Config}}
	if err := d.buildDaemon(ctx); err != nil {
		d.closeDaemon()
		return nil, err
	}
	return d, nil
}

func (d *Daemon) buildDaemon(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"look at the configuration", d.examine},
		{"prepare the directories", d.prepareDirs},
		{"begin to measure", d.startTelemetry},
		{"start the keeper", d.startKeeper},
		{"find the registries", d.findRegistries},
		{"open the log", d.openLog},
		{"make ready for calls", func(context.Context) error { return startCalls(d) }},
		{"start the gateway", d.startGateway},
		{"open the journal of sandboxes", d.openJournal},
		{"take over the sandboxes", d.startManager},
		{"ask the template", func(ctx context.Context) error { d.learnFromTemplate(ctx); return nil }},
		{"listen for the operator", d.listenAdmin},
		{"open the tokens and policies", d.openClients},
		{"listen for clients with tokens", d.openTCP},
		{"listen", d.listen},
		{"join the wires", d.serveTCP},
		// Behind all that have an end of their own to tell of what an earlier daemon began: sandboxes, and builds.
		{"end what was cut off", func(ctx context.Context) error { d.lost.endFirst(ctx, followed(d), d.opts.Log); return nil }},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// prepareDirs makes the directories, takes the lock and lays out what sandboxes see.
func (d *Daemon) prepareDirs(ctx context.Context) error {
	if err := d.opts.Paths.Make(); err != nil {
		return err
	}
	lock, err := takeLock(ctx, d.opts.Paths.DaemonLock())
	if err != nil {
		return err
	}
	d.lock = lock
	for _, dir := range []string{d.opts.Paths.Policies(), d.opts.Paths.Baselines(), d.opts.Paths.Frozen(), d.opts.Paths.Snapshots()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return installAgent(d.opts.Paths.Agent())
}

func (d *Daemon) openLog(ctx context.Context) error {
	err := openRecords(ctx, d)
	if err != nil {
		return err
	}
	d.openIndex()
	d.authority, err = authority.Open(d.opts.Paths.Authority())
	if err != nil {
		return err
	}
	if d.hosts, err = authority.OpenHosts(d.opts.Paths.HostAuthorities()); err != nil {
		return err
	}
	if err := d.openApprovals(ctx); err != nil {
		return err
	}
	d.openAdvisories()
	d.gateway = newGatewayProcess(d)
	if d.secrets, err = brokerOf(d.opts.Config, writableOf(d)); err != nil {
		return err
	}
	tools, err := d.opts.Config.ToolSet(d.secrets, writableOf(d))
	if err != nil {
		return err
	}
	key, err := loadFindingsKey(d.opts.Paths.FindingsKey())
	d.ownerKeys = audit.NewOwnerKeys(key)
	if err != nil {
		return err
	}
	d.door = admission.New(admission.Config{
		Log: d.records, FindingsKey: key, Clock: d.clock, Trust: d.gateway.trustHosts, Leaf: leavesOf(d.hosts), TellTrust: tellTrust(d), Namespaces: namespaces(d.opts.Config, d.registries), Advisories: d.advisory,
		Approvals: watched.Queue(d.approvals.queue, d.telemetry),
		Clients:   all.Asked,
		Secrets:   d.secrets,
		Trees:     trees{d}, Workshops: workshops{d}, BuildDir: d.opts.Paths.State,
		Tools:  tools,
		Holder: holder{d}, Settle: settler{d}.settleCounts,
		OnExceeded: func(sandbox string) { d.sandboxes.Cut(sandbox) },
		Scans:      func() *dlp.Set { return d.secretForms },
		Logger:     d.opts.Log,
	})
	d.runs.Store(d.door)
	return nil
}

// writableOf tells the directories of the host in which sandboxes may write, or could. The manager of
// sandboxes is made after what runs programs; until then the record is all that there is. If that can't be
// read it may be everywhere.
func writableOf(d *Daemon) func() []hostpath.Tree {
	return func() []hostpath.Tree {
		if d.sandboxes != nil {
			return d.sandboxes.Writable()
		}
		return written.OrAnywhere(d.opts.Paths.Written())
	}
}

// brokerOf has the secrets that the configuration declares. Nothing is fetched.
func brokerOf(c config.Config, writable func() []hostpath.Tree) (*secret.Broker, error) {
	declared, err := c.DeclaredSecrets(writable)
	if err != nil {
		return nil, err
	}
	return secret.NewBroker(declared, time.Now), nil
}

// tellTrust returns admission's TellTrust. The manager of sandboxes is made after the door.
func tellTrust(d *Daemon) func(ctx context.Context, id string, hosts []string) error {
	return func(ctx context.Context, id string, hosts []string) error {
		return sandbox.Trust(ctx, d.sandboxes, id, hosts)
	}
}

// leavesOf is admission's Leaf.
func leavesOf(ended *authority.Hosts) func(ctx context.Context, hosts []string, name string) (door.Certificate, error) {
	return func(ctx context.Context, hosts []string, name string) (door.Certificate, error) {
		leaf, err := ended.Leaf(ctx, hosts, name)
		return door.Certificate{ChainPEM: leaf.ChainPEM, KeyPEM: leaf.KeyPEM}, err
	}
}

func (d *Daemon) listen(ctx context.Context) error {
	l, err := listenUnix(ctx, d.opts.Paths.DaemonSocket())
	if err != nil {
		return err
	}
	positions, err := positionKey(d.opts.Paths.FindingsKey())
	if err != nil {
		return err
	}
	d.api = httpapi.New(httpapi.Config{
		Sandboxes: d.sandboxes, Templates: d.templates, Door: d.door, Calls: d.calls, Log: d.log, OwnerKeys: d.ownerKeys, Advisories: d.advisory, Approvals: d.approvals.queue,
		Version: api.Version{Version: d.opts.Version, PID: os.Getpid(), Started: time.Now().UTC(), State: d.opts.Paths.State, Background: d.opts.EndWhenIdle, URL: d.opts.Config.Listen.URL(), CAFile: d.apiCA(), CABundle: apiBundle(d), Domain: d.opts.Config.Listen.ClientDomain(), Listens: d.opts.Config.Listen.Address},
		Tokens:  d.clients.tokens, Policies: d.clients.policies, Seen: seenBy(d), Room: d.clients.room, Underway: d.clients.underway, Secrets: d.secrets, Homes: d.homes,
		Built: d.learnFromTemplate, Stop: d.requestStop, HandOver: d.endRun, Logger: d.opts.Log, Audit: d.auditing(), Clock: &d.time, PositionKey: positions, Releases: newReleaseReader(d),
		Reload: func(ctx context.Context, by string) (api.ConfigReload, error) { return reload(ctx, d, by) },
	})
	handler := backend.Hurried(identified(recovering(d.telemetry, d.opts.Log, d.telemetry.HTTP("socket", d.api))))
	api := newServer("socket", backend.Lingering(l), handler, d.opts.Log)
	api.http.ConnContext = httpapi.ConnContext
	d.serves = append(d.serves, api)
	return nil
}

// endRun makes Run return.
func (d *Daemon) endRun() { d.stopOnce.Do(func() { close(d.stop) }) }

// Run serves until ctx ends, a client asks for the end, or the daemon is idle.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.closeDaemon()
	served := serveAll(d.serves)
	defer d.reviewLog(ctx)()
	defer d.followLog(ctx)()
	defer d.lost.keepLooking(ctx, followed(d), summariesOf(d), d.opts.Log)()
	defer hostTidier{d.hosts, d.clients.policies, d.sandboxes, d.opts.Log}.keepTidying(ctx)()
	defer poolTargets{
		config: d.settings.getConfig, sandboxes: d.sandboxes, policies: d.clients.policies, templates: d.templates, log: d.opts.Log,
	}.keepTargets(ctx)()
	d.opts.Log.Info("ready", "socket", d.opts.Paths.DaemonSocket(), "version", d.opts.Version)
	d.tellManager("READY=1")
	err := d.awaitEnd(ctx, served)
	d.tellManager("STOPPING=1")
	endAll(ctx, d.serves, d.opts.Log)
	return err
}

// awaitEnd returns when there is a reason to end.
func (d *Daemon) awaitEnd(ctx context.Context, served <-chan error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.stop:
			return nil
		case err := <-served:
			return fmt.Errorf("serve the socket: %w", err)
		case <-tick.C:
			_ = safego.Try(func() error { // the next tick comes
				d.time.watchClock(ctx)
				d.seen.rememberNowAndThen()
				d.sandboxes.ReapAbandoned(ctx)
				d.sandboxes.EndLeases()
				trimLogs(d.opts.Paths, d.opts.Log)
				return nil
			})
			if d.opts.EndWhenIdle && d.isIdle() {
				d.opts.Log.Info("idle; ending")
				return nil
			}
		}
	}
}

func (d *Daemon) isIdle() bool {
	since := d.api.IdleSince()
	timeout := time.Duration(d.settings.getConfig().IdleTimeout)
	return d.sandboxes.Count() == 0 && !since.IsZero() && time.Since(since) > timeout && d.used.isIdle(timeout)
}

// closeDaemon ends what was made, in reverse. The keeper ends too if it holds no
// sandbox; otherwise it lives on for the next daemon.
func (d *Daemon) closeDaemon() {
	closeAll(d.serves)
	if d.builds != nil {
		d.builds.Close()
	}
	if d.quietKeeper != nil {
		d.quietKeeper()
	}
	if d.calls != nil {
		if err := d.calls.Close(context.Background()); err != nil {
			d.opts.Log.Warn("what runs calls did not end well", "err", err)
		}
	}
	if d.sandboxes != nil {
		d.sandboxes.Close()
	}
	d.closeJournal()
	if d.quietQueue != nil {
		d.quietQueue()
	}
	if d.gateway != nil {
		d.gateway.closeGateway()
		d.groups.removeGroup(context.Background(), "gateway")
		d.groups.removeGroup(context.Background(), "reader")
	}
	d.nursery.endKeeper()
	if d.door != nil { // nobody asks it any more
		tellUnwritten(d.door.Summarise(context.Background()), d.opts.Log)
	}
	d.closeApprovals()
	d.closeClients()
	d.closeIndex()
	d.time.keepClock()
	d.closeAudit()
	d.closeTelemetry()
	if d.lock != nil {
		if err := d.lock.Release(); err != nil {
			d.opts.Log.Warn("the daemon's lock is given back only with the process", "err", err)
		}
	}
}
