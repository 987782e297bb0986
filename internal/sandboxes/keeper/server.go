package keeper

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Config of a keeper. The zero value of what is optional is usable.
type Config struct {
	Socket string // where clients connect; made with mode 0600
	Uplink string // the Unix socket to which guest-opened streams go
	Logger *slog.Logger
	// Release of the binary, which clients are told.
	Release string
	// CgroupExec is the argv of a program that does as CgroupExec (see Joiner): FILE...
	// -- PROGRAM ARG... is appended. Empty: a Launch with CgroupProcs is refused.
	CgroupExec []string
	// GuestStreams of one sandbox at once. 0: 256.
	GuestStreams int
	// EndedCommands of one sandbox whose output is kept. 0: 64.
	EndedCommands int
	// FirstFrame is how long a guest-opened stream may take to say what it
	// wants, and the uplink to take it. 0: 5 s.
	FirstFrame time.Duration
	// Gateway is how long a guest-opened stream waits for a gateway that is not
	// there, as while one daemon follows the other. 0: 30 s.
	Gateway time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.GuestStreams <= 0 {
		c.GuestStreams = 256
	}
	if c.EndedCommands <= 0 {
		c.EndedCommands = 64
	}
	if c.FirstFrame <= 0 {
		c.FirstFrame = 5 * time.Second
	}
	if c.Gateway <= 0 {
		c.Gateway = 30 * time.Second
	}
	return c
}

// requestTimeout is how long a client may take to say what it wants.
const requestTimeout = 10 * time.Second

// MemoryGoal is what the Go runtime holds the keeper's memory to, in bytes, by collecting more often:
// buffers of guests' streams come and go, and without it the heap grows to twice what lives. It is half
// of the least limit that the keeper's control group has. A keeper that needs more takes it.
const MemoryGoal = 512 << 20

// Server is the keeper. It must be alone in its process, of which it becomes
// the subreaper and whose children it all reaps: nothing else there may start
// or wait for one (see reaper).
type Server struct {
	cfg     Config
	log     *slog.Logger
	reaper  *reaper
	uplink  uplink
	streams sync.WaitGroup // goroutines that serve guests' streams
	clients sync.WaitGroup // goroutines that serve clients
	memory  channel.Memory // of what guests have sent
	output  outputMemory   // of what their commands have written
	stop    context.CancelFunc

	mu        sync.Mutex // guards what follows; never held while waiting
	sandboxes map[string]*sandbox
	refusals  map[string]*refusals // by sandboxes' ids, also of some that are forgotten
	stopping  bool                 // nothing is launched any more
}

// NewServer makes a keeper; Run makes it work.
func NewServer(cfg Config) *Server {
	cfg = cfg.withDefaults()
	return &Server{
		cfg: cfg, log: cfg.Logger, reaper: newReaper(), sandboxes: map[string]*sandbox{}, refusals: map[string]*refusals{},
		uplink: uplink{path: cfg.Uplink, streams: cfg.GuestStreams, deadline: cfg.FirstFrame, gatewayWait: cfg.Gateway},
	}
}

// Run serves until a client asks for the shutdown or ctx ends; in the latter
// case every sandbox is killed first, for without the keeper none has a wire.
// A second keeper on the same socket is a fault.ErrConflict.
func (s *Server) Run(ctx context.Context) error {
	if err := closeOnExec(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the keeper cannot become a subreaper")
	}
	listener, err := listen(ctx, s.cfg.Socket)
	if err != nil {
		return err
	}
	defer listener.closeListener()
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	reaping := s.startReaping()
	defer reaping()
	trimmed := s.keepLogsSmall(ctx)
	defer func() {
		s.stop()
		trimmed()
	}()

	stopAccept := safego.When(ctx, func() { _ = listener.Close() })
	defer stopAccept()
	s.log.Info("keeper listens", slog.String("socket", s.cfg.Socket))
	err = s.accept(ctx, listener)
	s.stop()
	s.endAll()
	return err
}

// startReaping reaps on each SIGCHLD; the function it returns ends that.
func (s *Server) startReaping() func() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	done := make(chan struct{})
	var loop sync.WaitGroup
	safego.In(&loop, func() {
		reap := func() { _ = safego.Try(func() error { s.reaper.reapAll(); return nil }) }
		reap() // whatever was there before
		for {
			select {
			case <-died:
				reap()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(died)
		close(done)
		loop.Wait()
	}
}

func (s *Server) accept(ctx context.Context, listener net.Listener) error {
	listener = accept.Patient(listener, s.log)
	for {
		raw, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it was closed on purpose
			}
			return err
		}
		safego.In(&s.clients, func() { s.serveClient(ctx, raw) })
	}
}

// endAll kills what lives and waits for everything that was started.
func (s *Server) endAll() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, box := range s.listSandboxes() {
		if err := box.killProcesses(ctx); err != nil {
			s.log.Error("a sandbox could not be killed", slog.String("sandbox", box.id), slog.Any("error", err))
		}
	}
	s.clients.Wait()
	s.streams.Wait()
}

// serveClient serves one client's connection.
func (s *Server) serveClient(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	stop := safego.When(ctx, func() { _ = raw.Close() })
	defer stop()
	if err := checkPeer(raw); err != nil {
		s.log.Warn("a client was refused", slog.Any("error", err))
		return
	}
	conn := channel.NewConn(raw)
	_ = raw.SetReadDeadline(time.Now().Add(requestTimeout))
	var req Request
	if err := conn.ReadStrictJSON(channel.FrameOpen, &req); err != nil {
		sendResponse(conn, failure(err))
		return
	}
	if err := s.dispatch(ctx, conn, &req); err != nil {
		sendResponse(conn, failure(err))
	}
}

// addSandbox makes a sandbox known if its id is free.
func (s *Server) addSandbox(box *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return fault.New(fault.ErrUnavailable, "the keeper is shutting down")
	}
	if _, taken := s.sandboxes[box.id]; taken {
		return fault.New(fault.ErrConflict, "a sandbox %s exists already", box.id)
	}
	s.sandboxes[box.id] = box
	box.refusals = s.refusalsOf(box.id)
	return nil
}

// removeSandbox forgets a sandbox, and its count in the same step: another one of its id may become known right behind that.
func (s *Server) removeSandbox(box *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandboxes[box.id] == box {
		delete(s.sandboxes, box.id)
		s.dropRefusalsLocked(box.id, true)
	}
}

func (s *Server) findSandbox(id string) (*sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if box, ok := s.sandboxes[id]; ok {
		return box, nil
	}
	return nil, fault.New(fault.ErrNotFound, "the keeper has no sandbox %s", text.Shorten(id, 64))
}

// listSandboxes lists the sandboxes, by id.
func (s *Server) listSandboxes() []*sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	boxes := make([]*sandbox, 0, len(s.sandboxes))
	for _, box := range s.sandboxes {
		boxes = append(boxes, box)
	}
	slices.SortFunc(boxes, func(a, b *sandbox) int { return strings.Compare(a.id, b.id) })
	return boxes
}
