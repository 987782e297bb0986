// Package egress routes what guests open: DNS questions, TCP streams and
// `cofferdam why`. A registry's name goes to the gateway with the sandbox's
// identity attached. Of every other name the door says whether the policy has
// it. A connection to one that it has is carried as soon as its client has said
// that it means this very name, by TLS or plain HTTP, to an address that the
// name may have; all else is refused and recorded. At one more name it takes calls of
// tools of the host, by HTTP, and asks the door to make them.
//
// The keeper hands guests' streams over on a socket, the uplink. A DNS name has one canonical
// spelling. The checked name is the one that is used: a name that is not canonical is refused,
// never repaired.
package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Registry is what answers for registry names; the gateway is one.
type Registry interface {
	// IsRegistry reports whether it answers for exactly this name.
	IsRegistry(name string) bool
	// ServeRegistry serves a connection to one of its names and closes it.
	ServeRegistry(conn net.Conn, sandbox string)
	// Propose looks up, judges and files what an agent asks for before anything
	// fails; the answer has the items' order.
	Propose(ctx context.Context, sandbox string, r channel.Request) ([]door.Proposed, error)
}

// Limits of a router, per sandbox; zero fields take the default.
type Limits struct {
	Streams  int           // open at a time; default 256
	Opens    int           // per second, with four times as many at once; default 100
	Names    int           // distinct refused names that are told of one by one; default 50
	OpenTime time.Duration // in which a stream must say what it is; default 10 s
	Refusals int           // that `why` shows; default 50

	// Of connections to hosts.
	Connections int           // at a time; default 128
	Connects    int           // per second, with four times as many at once; default 20
	Bytes       int64         // both ways; default 16 GiB
	Memory      int64         // of the gateway, for all that is kept for it; default 128 MiB
	MemoryTime  time.Duration // that what needs memory waits for it; default 10 s
	HelloTime   time.Duration // in which a client must say which host it means; default 10 s
	GreetTime   time.Duration // in which the host must begin its handshake; default 30 s
	Idle        time.Duration // that nothing may come or go; default 15 min
	Look        time.Duration // between two looks whether connections may go on; default 1 s
	LastWords   time.Duration // in which what a client has said that has gone must come; default 2 s
}

func (l Limits) withDefaults() Limits {
	l.Streams = orStandard(l.Streams, 256)
	l.Opens = orStandard(l.Opens, 100)
	l.Names = orStandard(l.Names, 50)
	l.OpenTime = orStandard(l.OpenTime, 10*time.Second)
	l.Refusals = orStandard(l.Refusals, 50)
	l.Connections = orStandard(l.Connections, 128)
	l.Connects = orStandard(l.Connects, 20)
	l.Bytes = orStandard(l.Bytes, 16<<30)
	l.Memory = orStandard(l.Memory, 128<<20)
	l.MemoryTime = orStandard(l.MemoryTime, 10*time.Second)
	l.HelloTime = orStandard(l.HelloTime, 10*time.Second)
	l.GreetTime = orStandard(l.GreetTime, 30*time.Second)
	l.Idle = orStandard(l.Idle, 15*time.Minute)
	l.Look = orStandard(l.Look, time.Second)
	l.LastWords = orStandard(l.LastWords, 2*time.Second)
	return l
}

func orStandard[T int | int64 | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Door is the part of the daemon's door that the router uses.
type Door interface {
	door.Hosts
	door.Tools
	// Failed is that of door.Packages: for a stream that asks for nothing that there is or for no canonical name, one
	// that was not heard whole, and those for which there was no room.
	Failed(ctx context.Context, f door.Failure) (door.Answer, error)
	// Refusals is that of door.Door: a sandbox asks why.
	Refusals(ctx context.Context, sandbox, request string, most int) ([]door.Refusal, error)
}

// Config of a Router.
type Config struct {
	Registry Registry
	// Ready is closed once Registry answers. Until then guests' streams wait, of each sandbox as many as may be open, and a
	// sandbox of which none waits is settled as ever. nil: it does.
	Ready  <-chan struct{}
	Door   Door
	Limits Limits
	Dialer *outbound.Dialer // to hosts; default: one that knows of none more than the host's resolver
	Log    *slog.Logger     // for the operator; default: none
	Now    func() time.Time // by which a sandbox's rates are counted; default: time.Now
	// Exchanges see to the requests of judged connections; nil: nothing does.
	Exchanges requests.Exchanges
}

// registryPort is the one port on which registry names answer.
const registryPort = 443

// toolsPort is that of the tools' name.
const toolsPort = 80

// Router routes guests' streams.
type Router struct {
	registry Registry
	ready    <-chan struct{} // nil: it is
	door     Door
	limits   Limits
	log      *slog.Logger
	guests   *sandboxRates
	company  *company
	dialer   *outbound.Dialer
	passages passages
	reports  *reports

	exchanges requests.Exchanges // nil: nothing sees to requests
}

// NewRouter makes a router.
func NewRouter(cfg Config) *Router {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dialer == nil {
		cfg.Dialer = outbound.NewDialer(nil, nil)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	limits := cfg.Limits.withDefaults()
	guests := newSandboxRates(limits, cfg.Now)
	return &Router{
		registry: cfg.Registry, ready: cfg.Ready, door: cfg.Door, limits: limits, log: cfg.Log, guests: guests, company: newCompany(), dialer: cfg.Dialer, exchanges: cfg.Exchanges,
		reports: newReports(guests.memory),
	}
}

// Serve takes streams from the uplink until ctx ends, closes the listener and
// waits for the streams. The listener must be one that only the keeper can
// reach: the first frame of each stream is believed.
func (r *Router) Serve(ctx context.Context, l net.Listener) error {
	l = accept.Patient(l, r.log)
	ctx, cancel := context.WithCancel(ctx)
	var streams sync.WaitGroup
	defer r.reports.stopTries() // once the streams have told their ends
	defer streams.Wait()
	defer cancel()
	stop := safego.When(ctx, func() { _ = l.Close() }) // Accept then returns
	defer stop()
	safego.In(&streams, func() { safego.Stay(ctx, func() { r.watchConnections(ctx) }) })
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		number := r.company.enterStream() // here, in the order in which they come
		safego.In(&streams, func() {
			hangUp := safego.When(ctx, func() { _ = conn.Close() }) // its reader and writer then return
			defer hangUp()
			r.serveStream(ctx, conn, number)
		})
	}
}

// ServeStream answers one stream of the uplink and closes it.
func (r *Router) ServeStream(ctx context.Context, conn net.Conn) {
	r.serveStream(ctx, conn, r.company.enterStream())
}

func (r *Router) serveStream(ctx context.Context, conn net.Conn, number uint64) {
	defer r.company.leaveStream(number)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(r.limits.OpenTime)); err != nil {
		return
	}
	frames := channel.NewReader(conn)
	var id keeper.StreamIdentity
	if err := frames.ReadStrictJSON(channel.FrameOpen, &id); err != nil || id.Sandbox == "" {
		r.log.Error("a stream on the uplink has no identity", "error", err)
		return
	}
	ctx = fairqueue.For(ctx, id.Sandbox)
	s := &guestStream{router: r, conn: conn, sandbox: id.Sandbox}
	r.company.nameStream(number, id.Sandbox)
	switch {
	case id.Settle:
		s.settleSandbox(ctx, number)
		return
	case id.Refused > 0:
		s.keeperRefused(ctx, id.Refused)
		return
	}
	if !r.guests.openStream(id.Sandbox) {
		s.replyOpen(channel.Reply{Error: "too many connections at a time, or too many in a second"})
		s.crowded(ctx)
		return
	}
	defer r.guests.closeStream(id.Sandbox)
	if !r.awaitReady(ctx, conn) { // counted: those wait on, too, that their guest has closed again
		return
	}
	var open channel.Open
	if err := frames.ReadStrictJSON(channel.FrameOpen, &open); err != nil {
		s.unknown(ctx, "the stream does not say what it is for")
		return
	}
	s.serveStream(ctx, open)
}

// awaitReady waits until the registry answers, and gives the stream its time to say what it is from then on. false: that
// never was, or nobody is there any more.
func (r *Router) awaitReady(ctx context.Context, conn net.Conn) bool {
	if r.ready == nil {
		return true
	}
	select {
	case <-r.ready:
		return conn.SetDeadline(time.Now().Add(r.limits.OpenTime)) == nil
	case <-ctx.Done():
		return false
	}
}
