package wasm

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Name is what a policy's `isolation` says.
const Name = "wasm"

// javaScript is the one language.
const javaScript = "javascript"

// Bounds of calls, and what one has that says nothing.
const (
	mostMemory    = 256 << 20 // bytes
	leastMemory   = 4 << 20
	defaultMemory = 64 << 20
	mostTime      = 5 * time.Minute
	defaultTime   = 10 * time.Second
	mostLife      = 2 * time.Hour
	mostOutput    = 16 << 20
	defaultOutput = 1 << 20
	maxCode       = 1 << 20
	defaultAll    = 1 << 30 // bytes of all calls together
	defaultReady  = 16
)

// Config is what an Engine is made of.
type Config struct {
	// CacheDir keeps what was compiled from one daemon to the next; "": nothing is kept.
	CacheDir string
	// Memory bounds what all calls that run may have together, in bytes; the others wait.
	// 0: 1 GiB.
	Memory int64
	// Ready is how many machines are kept made, at less than 2 MiB each; 0: 16.
	Ready int
}

// Engine runs calls. Nothing is compiled before the first.
type Engine struct {
	config Config
	room   *fairqueue.Amounts // bytes of all calls, by owners
	life   context.Context    //nolint:containedctx // Close ends the calls of all others
	end    context.CancelFunc
	busy   sync.WaitGroup // calls, and makers of machines

	mu     sync.Mutex // guards all below; held while the module is compiled
	closed bool
	made   *workshop // nil: nothing was compiled yet
}

// workshop makes machines.
type workshop struct {
	compiler *compiler
	image    *image
	ready    chan *machine
}

var _ engine.Caller = (*Engine)(nil)

// New makes an engine.
func New(config Config) *Engine {
	if config.Memory <= 0 {
		config.Memory = defaultAll
	}
	if config.Ready <= 0 {
		config.Ready = defaultReady
	}
	e := &Engine{config: config, room: fairqueue.NewAmounts(shares(max(config.Memory, mostMemory)))}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// shares divide the memory of all calls between their owners: a quarter of it is out of any one
// owner's reach.
func shares(all int64) fairqueue.AmountLimits {
	return fairqueue.AmountLimits{All: all, Each: max(all-all/4, mostMemory)}
}

// Name implements engine.Caller.
func (*Engine) Name() string { return Name }

// Languages implements engine.Caller.
func (*Engine) Languages() []string { return []string{javaScript} }

// Bounds implements engine.Caller.
func (*Engine) Bounds() engine.CallBounds {
	return engine.CallBounds{
		Most:        engine.CallLimits{Time: mostTime, Life: mostLife, MemoryBytes: mostMemory - headroom, OutputBytes: mostOutput},
		LeastMemory: leastMemory, Code: maxCode, Ask: maxAsk,
	}
}

// Call implements engine.Caller.
func (e *Engine) Call(ctx context.Context, call engine.Call) (engine.CallResult, error) {
	if err := e.completeCall(&call); err != nil {
		return engine.CallResult{}, err
	}
	shop, leave, err := e.enterCall(ctx)
	if err != nil {
		return engine.CallResult{}, err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer safego.When(e.life, cancel)()
	release, err := e.room.Take(fairqueue.For(ctx, call.Owner), call.Limits.MemoryBytes)
	if err != nil {
		return engine.CallResult{}, e.endError(err)
	}
	defer release()
	m, err := e.takeMachine(ctx, shop)
	if err != nil {
		return engine.CallResult{}, err
	}
	defer m.closeMachine(ctx)
	result, err := m.runCall(ctx, call)
	return result, e.endError(err)
}

// endError makes of the engine's own end what it is.
func (e *Engine) endError(err error) error {
	if err != nil && e.life.Err() != nil {
		return errClosed
	}
	return err
}

var errClosed = fault.New(fault.ErrUnavailable, "the daemon ends, and its calls with it")

// completeCall checks a call, and puts in what it does not say.
func (e *Engine) completeCall(call *engine.Call) error {
	l := &call.Limits
	set := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = defaultMemory
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = defaultOutput
	}
	set(&l.Time, defaultTime)
	set(&l.Life, mostLife)
	most := e.Bounds().Most
	switch {
	case call.Language != "" && call.Language != javaScript:
		return fault.Invalid("there is no language %.40q here; it is %s", call.Language, javaScript)
	case len(call.Code) > maxCode:
		return fault.Invalid("the code has %d bytes; it may have %d", len(call.Code), maxCode)
	case !utf8.ValidString(call.Code):
		return fault.Invalid("the code is not UTF-8")
	case l.MemoryBytes < leastMemory || l.MemoryBytes > most.MemoryBytes:
		return fault.Invalid("a call has from %d to %d MiB of memory, and %d bytes are asked for", leastMemory>>20, most.MemoryBytes>>20, l.MemoryBytes)
	case l.Time < 0 || l.Time > most.Time || l.Life < 0 || l.Life > most.Life || l.OutputBytes < 0 || l.OutputBytes > most.OutputBytes:
		return fault.Invalid("a call computes for at most %s, takes at most %s, and writes at most %d MiB", most.Time, most.Life, most.OutputBytes>>20)
	}
	return nil
}

// enterCall counts a call in, and compiles the module for the first.
func (e *Engine) enterCall(ctx context.Context) (shop *workshop, leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, errClosed
	}
	if e.made == nil {
		made, err := openWorkshop(context.WithoutCancel(ctx), e.config)
		if err != nil {
			return nil, nil, err
		}
		e.made = made
	}
	e.busy.Add(1)
	return e.made, e.busy.Done, nil
}

func openWorkshop(ctx context.Context, config Config) (*workshop, error) {
	c, err := compile(ctx, config.CacheDir)
	if err != nil {
		return nil, err
	}
	img, err := drawImage(ctx, c)
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.ErrUnavailable, err, "the JavaScript engine does not start here"), c.closeCompiler(ctx))
	}
	return &workshop{compiler: c, image: img, ready: make(chan *machine, config.Ready)}, nil
}

// takeMachine gives a machine that is ready, or makes one, and has another made for the next.
func (e *Engine) takeMachine(ctx context.Context, shop *workshop) (*machine, error) {
	defer e.refill(shop)
	select {
	case m := <-shop.ready:
		return m, nil
	default:
		return shop.machine(ctx)
	}
}

func (s *workshop) machine(ctx context.Context) (*machine, error) {
	m, err := s.image.machine(context.WithoutCancel(ctx), s.compiler)
	if err != nil {
		return nil, fault.Wrap(fault.ErrExhausted, err, "the host has no memory for another call")
	}
	return m, nil
}

// refill makes a machine while nobody waits for it. The caller is counted in busy.
func (e *Engine) refill(shop *workshop) {
	if len(shop.ready) == cap(shop.ready) {
		return
	}
	safego.In(&e.busy, func() {
		if e.life.Err() != nil {
			return
		}
		m, err := shop.machine(e.life)
		if err != nil {
			return // the next call tries again, and says why
		}
		select {
		case shop.ready <- m:
		default:
			m.closeMachine(e.life)
		}
	})
}

// Close implements engine.Caller.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	made := e.made
	e.mu.Unlock()
	e.end()
	e.busy.Wait()
	if made == nil {
		return nil
	}
	for len(made.ready) > 0 {
		(<-made.ready).closeMachine(ctx)
	}
	return made.compiler.closeCompiler(ctx)
}
