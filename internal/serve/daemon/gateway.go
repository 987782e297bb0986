package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
)

const (
	// trustTimeout bounds how long a sandbox waits for a gateway that starts.
	trustTimeout = 45 * time.Second
	// gatewayLife is well below that of its certificate; the next one gets a
	// fresh one.
	gatewayLife = 30 * 24 * time.Hour
	// restartPause keeps a gateway that can't start from spinning.
	restartPause = time.Second
)

// gatewayProcess is the gateway's process as the daemon sees it: started,
// watched, started again. While it is down everything that needs it is refused.
type gatewayProcess struct {
	d      *Daemon
	cancel context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex // guards what follows
	upstreams []upstream.Config
	names     []string // the hosts that the gateway answers for
	ca        []byte
	known     chan struct{} // closed once names and ca are set
	restart   func()        // ends the running gateway, for another to start
	broken    error         // why no gateway comes up, after several tries
	up        bool          // a gateway's process runs

	child   *exec.Cmd // only supervise's goroutine touches it and limited
	limited limitedProcess
}

func newGatewayProcess(d *Daemon) *gatewayProcess {
	return &gatewayProcess{d: d, known: make(chan struct{}), done: make(chan struct{})}
}

// startGateway starts the gateway.
func (d *Daemon) startGateway(ctx context.Context) error {
	d.gateway.upstreams = d.registries.Upstreams // nobody else knows the gateway yet
	if err := d.gateway.prepareCache(); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.gateway.cancel = cancel
	safego.Go(func() { d.gateway.supervise(run) })
	if os.Geteuid() == 0 {
		safego.Go(func() { safego.Stay(run, func() { d.gateway.keepResolverFresh(run) }) })
	}
	return nil
}

// trustHosts issues the gateway's certificate for the hosts that it learnt, and
// remembers them for new sandboxes. It is admission's Trust.
func (g *gatewayProcess) trustHosts(ctx context.Context, hosts []string) (door.Certificate, error) {
	// Where no registry is known there is still a CA, which every sandbox gets.
	named := hosts
	if len(named) == 0 {
		named = []string{"gateway" + ownDomain}
	}
	leaf, err := g.d.authority.Certificate(ctx, named)
	if err != nil {
		return door.Certificate{}, err
	}
	cert := door.Certificate{ChainPEM: leaf.ChainPEM, KeyPEM: leaf.KeyPEM}
	g.keepHosts(hosts)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names, g.ca, g.broken = slices.Clone(hosts), g.d.authority.CAPEM(), nil
	g.announce()
	return cert, nil
}

// trusted waits until the gateway has said which names it answers for.
func (g *gatewayProcess) trusted(ctx context.Context) (ca []byte, names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, trustTimeout)
	defer cancel()
	g.mu.Lock()
	known := g.known
	g.mu.Unlock()
	select {
	case <-known:
	case <-ctx.Done():
		return nil, nil, fault.New(fault.ErrUnavailable, "the gateway does not come up; %s says why", g.d.opts.Paths.DaemonLog())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken != nil {
		return nil, nil, fault.Wrap(fault.ErrUnavailable, g.broken, "the gateway does not come up; %s says why", g.d.opts.Paths.DaemonLog())
	}
	return g.ca, slices.Clone(g.names), nil
}

// announce lets those go who wait for the names; g.mu is held.
func (g *gatewayProcess) announce() {
	select {
	case <-g.known:
	default:
		close(g.known)
	}
}

// giveUpAfter is how many gateways in a row may fail to come up before those
// who wait are told; trying goes on.
const giveUpAfter = 3

// countFailure counts a gateway that ended; failures are those in a row that never
// asked for a certificate.
func (g *gatewayProcess) countFailure(failures int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if failures >= giveUpAfter {
		g.broken = err
		g.announce()
	}
}

// currentUpstreams returns the upstreams that the next gateway starts with.
func (g *gatewayProcess) currentUpstreams() []upstream.Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.upstreams)
}

// useUpstreams gives the gateway other upstreams: the running one ends, and sandboxes
// that start from now on wait for the next one's names.
func (g *gatewayProcess) useUpstreams(ups []upstream.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.upstreams = slices.Clone(ups)
	select {
	case <-g.known:
		g.known = make(chan struct{})
	default:
	}
	if g.restart != nil {
		g.restart()
	}
}

// supervise runs gateways one after the other until ctx ends.
func (g *gatewayProcess) supervise(ctx context.Context) {
	defer close(g.done)
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		if err := safego.Try(func() error { return g.runOnce(ctx) }); err != nil && ctx.Err() == nil {
			g.d.opts.Log.Error("the gateway ended; starting another", "err", err)
			if failures++; time.Since(began) > time.Minute {
				failures = 1 // it had come up
			}
			g.countFailure(failures, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// runOnce starts a gateway and serves its door until it ends.
func (g *gatewayProcess) runOnce(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, gatewayLife)
	defer end()
	g.mu.Lock()
	g.restart = end
	g.mu.Unlock()
	ours, ended, err := g.startGateway(ctx)
	if err != nil {
		return err
	}
	defer ours.Close()
	defer ended()
	g.noteRunning(true)
	defer g.noteRunning(false)
	werr := serveDoor(ctx, ours, g.d.telemetry.Door(g.d.door), g.child.Wait, g.d.opts.Log)
	if err := g.d.door.GatewayEnded(context.WithoutCancel(ctx)); err != nil {
		g.d.opts.Log.Error("what the gateway was sending as it ended is not on record", "err", err)
	}
	if ctx.Err() != nil {
		return nil // it was to end: others follow with other upstreams, or a new certificate
	}
	return g.limited.explainEnd(werr)
}

// serveDoor answers a gateway until it has ended, which wait tells, and gives wait's error. It goes on when ctx is over: a gateway that is to
// end puts on record what it has counted.
func serveDoor(ctx context.Context, ours net.Conn, d door.Door, wait func() error, log *slog.Logger) error {
	serve, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	served := make(chan struct{})
	safego.Go(func() {
		defer close(served)
		if err := safego.Try(func() error { return door.Serve(serve, ours, d) }); err != nil && ctx.Err() == nil {
			log.Warn("the gateway's door closed", "err", err)
		}
	})
	err := wait()
	cancel()
	ours.Close()
	<-served
	return err
}

// startGateway starts a dialer and a gateway. ours is the daemon's end of the door; ended returns
// when the dialer has ended, which it does with the gateway, the only one that has the
// other end of its socket.
func (g *gatewayProcess) startGateway(ctx context.Context) (ours net.Conn, ended func(), err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	uplink, err := g.listenUplink()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	defer uplink.Close()
	b := g.bootDocument()
	boxed, ended, err := g.startDialer(ctx, b)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	err = g.spawnGateway(ctx, b, theirs, uplink, boxed)
	boxed.Close()
	if err != nil {
		ended()
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, ended, nil
}

// spawnGateway starts the child with its boot document on standard input, the door as
// descriptor 3, the uplink's listener as descriptor 4 and the dialer's socket as 5. It is
// in a network namespace of its own, where the kernel lets us.
func (g *gatewayProcess) spawnGateway(ctx context.Context, b bootDocument, questions, uplink, boxed *os.File) error {
	start := func(attr *syscall.SysProcAttr) (*exec.Cmd, error) {
		return g.startRole(ctx, "gateway", b, attr, questions, uplink, boxed)
	}
	cmd, err := start(dialer.Apart(os.Geteuid(), os.Getegid()))
	if dialer.Forbidden(err) && ctx.Err() == nil {
		g.d.opts.Log.Warn("the gateway is not kept from this host's network: this kernel, or the container that this is, lets nobody make a network namespace; cofferdam doctor says more", "err", err)
		cmd, err = start(&syscall.SysProcAttr{})
	}
	if err != nil {
		return err
	}
	g.child = cmd
	return nil
}

// startRole starts this program in a role of the gateway's, with its boot document on standard input, and
// descriptors from 3 on.
func (g *gatewayProcess) startRole(ctx context.Context, name string, document any, attr *syscall.SysProcAttr, files ...*os.File) (*exec.Cmd, error) {
	started, err := startRole(ctx, g.d, name, document, attr, files...)
	if err != nil {
		return nil, err
	}
	g.limited = started.limited
	return started.cmd, nil
}

// gatewayEnv is all that the gateway gets of the environment: where the system's
// roots are. Credentials and proxies come in the boot document. The Go runtime
// would otherwise keep the host's control group files open in it.
func gatewayEnv(host []string) []string {
	env := []string{"GODEBUG=containermaxprocs=0"}
	for _, k := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "TZ"} {
		if v := discover.Value(host, k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// listenUplink makes the socket to which the keeper brings guests' streams. The
// descriptor is inherited, so the gateway's user needs no right to the path.
func (g *gatewayProcess) listenUplink() (*os.File, error) {
	path := g.d.opts.Paths.Uplink()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	return l.File()
}

func (g *gatewayProcess) closeGateway() {
	if g.cancel == nil {
		return
	}
	g.cancel()
	<-g.done
}

// socketPair is the door's two ends; ours is a connection already.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "door"), os.NewFile(uintptr(fds[1]), "door")
	conn, err := net.FileConn(mine)
	mine.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// prepareCache makes the directory that is the gateway's root directory, and in
// it the one that is its own. All but that one stays the daemon's: where the
// gateway could put a link, the daemon would write through it.
func (g *gatewayProcess) prepareCache() error {
	root := g.d.opts.Paths.Cache()
	own := filepath.Join(root, ArtifactsDir)
	for _, dir := range []string{root, filepath.Join(root, "etc")} {
		// A daemon with another umask may have made them, and shut the gateway out.
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // the gateway's user passes through
			return err
		}
	}
	// At no moment do others see what was installed here.
	if err := errors.Join(os.MkdirAll(own, 0o700), os.Chmod(own, 0o700)); err != nil { //nolint:gosec // a directory must be passable for its owner
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	uid := g.d.opts.Config.GatewayUID
	if err := os.Lchown(own, uid, uid); err != nil {
		return err
	}
	return g.refreshResolver()
}
