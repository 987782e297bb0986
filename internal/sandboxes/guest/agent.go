package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Config is how an agent fits into its sandbox. The zero value of every field
// but Session and Log is right for a real sandbox.
type Config struct {
	Session *channel.Session
	Log     *slog.Logger
	// Root is put before every path of the file system that the agent writes
	// or lists; commands don't see it. Empty in a sandbox.
	Root string
	// DNS is where the resolver listens, by default 127.0.0.1:53.
	DNS string
	// Socket is where `cofferdam why` asks, by default SocketPath.
	Socket string
	// Proxy is where the proxy listens, if there is to be one; by default ProxyAddress.
	Proxy string
}

// SocketPath is the socket on which a command in the sandbox may ask the agent.
const SocketPath = "/run/cofferdam/agent.sock"

// openDeadline bounds the time from a stream's start to its first frame.
const openDeadline = 10 * time.Second

// Agent serves one channel. Make it with New, run it once with Run.
type Agent struct {
	config    Config
	log       *slog.Logger
	reaper    *reaper
	commands  *commands
	names     *names
	proxy     *proxy
	resolver  *resolver
	why       *whyServer
	clock     *clock // runs while the sandbox does
	paid      *clock // that commands' timeouts run by; the host stops it while they wait for a person
	installed installed
	dials     dials
	each      atomic.Int64 // the limit of processes that each command gets at its start; 0: it inherits one

	mu       sync.Mutex // guards identity
	identity *identity  // nil until configured
}

// New makes an agent that has not started anything yet.
func New(config Config) *Agent {
	if config.DNS == "" {
		config.DNS = "127.0.0.1:53"
	}
	if config.Socket == "" {
		config.Socket = SocketPath
	}
	if config.Proxy == "" {
		config.Proxy = ProxyAddress
	}
	a := &Agent{config: config, log: config.Log, reaper: newReaper(), clock: newClock(), paid: newClock()}
	host := guestLine{config.Session, a.clock}
	a.commands = newCommands()
	forwarder := &forwarder{session: host, log: config.Log}
	a.names = newNames(forwarder, config.Log)
	a.proxy = &proxy{address: config.Proxy, patience: proxyPatience, names: a.names, forwarder: forwarder, log: config.Log}
	a.resolver = newResolver(a.names, host, config.Log)
	a.why = newWhyServer(host)
	return a
}

// Run serves the channel until it closes or ctx ends, then kills every command that
// runs and returns when nothing of the agent runs any more. A closed channel is a
// normal end and returns nil.
func (a *Agent) Run(ctx context.Context) error {
	defer a.config.Session.Close() //nolint:errcheck // it may be closed already, and there is nobody to tell
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	if err := a.resolver.listen(ctx, a.config.DNS); err != nil {
		return fmt.Errorf("the resolver can't listen on %s: %w", a.config.DNS, err)
	}
	defer a.resolver.closeResolver()
	if err := a.why.listen(ctx, a.config.Root+a.config.Socket); err != nil {
		return fmt.Errorf("the socket for questions can't be made: %w", err)
	}
	defer a.why.closeServer()
	defer a.names.closeListeners()
	defer a.proxy.closeProxy()
	background.Go(func() { a.reaper.collectChildren(ctx) })
	background.Go(func() { a.resolver.serveDNS() })
	background.Go(func() { a.why.serveClients(ctx) })
	background.Go(func() {
		<-ctx.Done()
		_ = a.config.Session.Close()
	})
	a.serveStreams(ctx)
	return nil
}

// serveStreams answers streams until the session ends, and waits for their handlers.
func (a *Agent) serveStreams(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	var over <-chan struct{}
	var within context.Context
	for {
		stream, err := a.config.Session.Accept()
		if err != nil {
			return
		}
		if stream.Over() != over {
			if over != nil {
				a.renewed()
			}
			over = stream.Over()
			within = untilClosed(ctx, over)
		}
		life := within
		streams.Go(func() {
			defer func() { _ = stream.Close() }()
			if err := a.answerCall(ctx, life, stream); err != nil {
				a.log.Debug("a stream of the host ended early", "error", err)
			}
		})
	}
}

// answerCall reads a stream's call and does it. Work that goes on when the session is started anew
// is bound to ctx, all else to life.
func (a *Agent) answerCall(ctx, life context.Context, stream *channel.Conn) error {
	call, err := a.readCall(life, stream)
	if err != nil {
		return err
	}
	switch call.Kind {
	case channel.CallPing:
		return replyCall(stream, nil)
	case channel.CallConfigure:
		return replyCall(stream, a.configure(ctx, call.Configure))
	case channel.CallExec:
		return a.answerExec(ctx, stream, call.Exec)
	case channel.CallAdopt:
		return a.adoptStream(ctx, stream, call.Adopt)
	case channel.CallContents:
		return a.contents(ctx, stream, call.Contents)
	case channel.CallInventory:
		return a.inventory(life, stream, call.Inventory)
	case channel.CallTrust:
		return replyCall(stream, a.trustCA(call.Trust))
	case channel.CallHold:
		return replyCall(stream, a.holdClock(call.Hold))
	case channel.CallResume:
		return replyCall(stream, a.resume(call.Resume))
	case channel.CallFile:
		return a.answerFile(life, stream, call.File)
	case channel.CallDial:
		return a.answerDial(life, stream, call.Port)
	case channel.CallHangUp:
		return a.hangUp(life, stream, call.Dial)
	case channel.CallUsage, channel.CallSync:
		return a.answerDisks(stream, call.Kind)
	case channel.CallControl:
		return a.control(life, stream, call.Control)
	default:
		return replyCall(stream, errors.New(channel.UnknownCall(call.Kind)))
	}
}

// readCall reads a stream's call, for which there is a deadline.
func (a *Agent) readCall(life context.Context, stream *channel.Conn) (channel.Call, error) {
	first, cancel := a.clock.withTimeout(life, openDeadline)
	defer cancel()
	lift := limitIO(first, stream.Raw())
	var call channel.Call
	err := stream.ReadJSON(channel.FrameOpen, &call)
	inTime := lift()
	if err != nil {
		return call, fmt.Errorf("the first frame: %w", err)
	}
	if !inTime {
		return call, first.Err()
	}
	return call, nil
}

// replyCall answers a call with OK or with an error's sentence.
func replyCall(stream *channel.Conn, err error) error {
	answer := channel.Reply{OK: err == nil}
	if err != nil {
		answer.Error = err.Error()
	}
	return stream.WriteJSON(channel.FrameReply, answer)
}

// currentIdentity returns the identity, or an error before the first Configure.
func (a *Agent) currentIdentity() (*identity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		return nil, errors.New("the sandbox is not configured yet")
	}
	return a.identity, nil
}

// isRoot tells whether this process may change users at all.
func isRoot() bool { return os.Geteuid() == 0 }

// answerDisks answers calls about the sandbox's disks: how full they are, or that what was written
// to files is on them.
func (a *Agent) answerDisks(stream *channel.Conn, kind channel.CallKind) error {
	if kind == channel.CallUsage {
		return a.answerUsage(stream)
	}
	unix.Sync()
	return replyCall(stream, nil)
}

// answerUsage tells how full the root file system is.
func (a *Agent) answerUsage(stream *channel.Conn) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(a.config.Root+"/", &stat); err != nil {
		return replyCall(stream, fmt.Errorf("the file system can't be asked how full it is: %w", err))
	}
	block := uint64(max(stat.Frsize, 1))
	body, err := json.Marshal(channel.DiskUsage{Total: int64(stat.Blocks * block), Free: int64(stat.Bfree * block)})
	if err != nil {
		return err
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}
