package interpreter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// Request asks for a cell to be run.
type Request struct {
	Code     string
	Context  string // its id; "": the default one of Language
	Language string // "": Python
	Env      map[string]string
	// Home is where default contexts begin, and Base what kernels find in their environment.
	Home string
	Base map[string]string
	// Take and Give are asked for room for what a kernel sends at length; nil: there is
	// always some.
	Take func(bytes int) error
	Give func()
	// Handed is called when the kernel has the code, and nothing of it is kept here any more; nil: nobody wants to know.
	Handed func()
}

// Cell is one that runs. Events is closed after its end; whoever does not read it holds the
// kernel back.
type Cell struct {
	Events <-chan Event

	left     chan struct{} // closed when nobody reads Events any more
	leave    sync.Once
	stopping context.CancelFunc
}

// Leave tells that nobody reads on. The cell is interrupted, unless it is to go on: then it
// runs to its end, and the next cell of its context waits for that.
func (c *Cell) Leave(goOn bool) {
	c.leave.Do(func() { close(c.left) })
	if !goOn {
		c.stopping()
	}
}

// Execute runs a cell in its context, behind those that came before. It returns when the cell
// was judged, recorded and given to the kernel. A refusal is fault.ErrForbidden. ctx bounds
// the waiting, not the cell.
func (i *Interpreter) Execute(ctx context.Context, sandbox string, r Request) (*Cell, error) {
	if err := r.checkRequest(); err != nil {
		return nil, err
	}
	b, err := i.boxOfSandbox(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	id := r.Context
	if id == "" {
		l, err := languageOf(r.Language)
		if err != nil {
			return nil, err
		}
		id = defaultPrefix + l.name
	}
	p, err := b.context(id, r.Home)
	if err != nil {
		return nil, err
	}
	if err := p.takeTurn(ctx); err != nil {
		return nil, err
	}
	c, err := i.beginCell(ctx, b.host, p, r)
	if err != nil {
		p.leaveTurn()
	}
	return c, err
}

func (r Request) checkRequest() error {
	switch {
	case len(r.Code) > MaxCode:
		return fault.Invalid("the cell is %d bytes long; at most %d", len(r.Code), MaxCode)
	case strings.ContainsRune(r.Code, 0):
		return fault.Invalid("the cell has a zero byte")
	case r.Context != "" && r.Language != "":
		return fault.Invalid("name a context or a language, not both: a context has a language")
	}
	return commands.CheckEnv(r.Env)
}

// beginCell has a cell judged, and a kernel take it. Needs the turn, which is given back at the
// cell's end.
func (i *Interpreter) beginCell(ctx context.Context, host Host, p *kernelContext, r Request) (*Cell, error) {
	id, ended, err := host.Cell(ctx, commands.Cell{Language: p.Language, Code: r.Code})
	if err != nil {
		return nil, err
	}
	failed := func(err error) (*Cell, error) {
		ended(channel.Exit{Code: 126, Error: printable(err.Error(), maxError)})
		return nil, err
	}
	kernel, w, err := p.connectKernel(ctx, host, r.Base)
	if err != nil {
		return failed(err)
	}
	life, stop := host.Limited(context.WithoutCancel(ctx))
	stopped, stopping := context.WithCancel(context.Background())
	events := make(chan Event)
	c := &Cell{Events: events, left: make(chan struct{}), stopping: stopping}
	run := &run{
		host: host, place: p, kernel: kernel, id: id, most: i.cfg.MaxOutput, wire: w, events: events, left: c.left, life: life, stopped: stopped,
		in: lineBuffer{take: r.Take, give: r.Give}, request: request{Op: "run", Cell: id, Code: r.Code, Env: r.Env}, handed: r.Handed,
	}
	safego.Go(func() { // ends with the cell, which the policy's time and the kernel's end bound
		defer p.leaveTurn()
		defer close(events)
		defer stop()
		defer stopping()
		defer w.closeWire()
		exit := channel.Exit{Code: 137, Error: "the daemon lost sight of the cell"}
		defer func() { ended(exit) }()
		exit = run.followCell()
	})
	return c, nil
}

// connectKernel attaches to the context's kernel, which is started if there is none, has it end what
// it does for nobody any more, and knows what it is to find. Needs the turn. ctx bounds the
// start, not the connection.
func (p *kernelContext) connectKernel(ctx context.Context, host Host, base map[string]string) (kernel string, w *wire, err error) {
	if kernel, w, err = p.attach(ctx, host, base); err != nil {
		return "", nil, err
	}
	if p.isFound() {
		idle, err := w.settleKernel(ctx, host, kernel)
		if err != nil {
			w.closeWire()
			return "", nil, err
		}
		if !idle {
			w.closeWire()
			if err := p.killKernel(context.WithoutCancel(ctx), host, kernel); err != nil {
				return "", nil, err
			}
			if kernel, w, err = p.attach(ctx, host, base); err != nil {
				return "", nil, err
			}
		}
		p.setSettled()
	}
	if err := p.introduce(ctx, host, w, base); err != nil {
		w.closeWire()
		return "", nil, err
	}
	return kernel, w, nil
}

// attach attaches to the context's kernel, which is started if there is none. Needs the turn.
func (p *kernelContext) attach(ctx context.Context, host Host, base map[string]string) (kernel string, w *wire, err error) {
	lasting := context.WithoutCancel(ctx)
	if kernel, err = p.running(ctx, host, base); err != nil {
		return "", nil, err
	}
	w, err = openWire(lasting, host, kernel, keeper.FromNow)
	if errors.Is(err, fault.ErrNotFound) { // it ended, and is forgotten
		p.forgetKernel(kernel)
		if kernel, err = p.running(ctx, host, base); err == nil {
			w, err = openWire(lasting, host, kernel, keeper.FromNow)
		}
	}
	return kernel, w, err
}

// run is a cell in its kernel.
type run struct {
	host    Host
	place   *kernelContext
	kernel  string
	id      string
	request request
	handed  func() // nil: nobody wants to know
	wire    *wire
	in      lineBuffer
	events  chan<- Event
	left    <-chan struct{}
	life    context.Context //nolint:containedctx // ends when the policy's time for the cell is over
	stopped context.Context //nolint:containedctx // ends when its client went away

	grace   <-chan time.Time // fires when an interrupt has come to nothing; nil: there was none, or it has
	asked   bool             // it was interrupted
	ended   bool             // the kernel was ended while somebody was told something
	begun   bool
	done    bool
	dying   bool // the kernel says that it has no more cells in it
	bytes   int
	most    int   // of bytes
	out     int64 // bytes of standard output, and of errors
	err     int64
	failure *Failure // as the record has it
}

// kernelFrame is one of the kernel's, or why there are no more.
type kernelFrame struct {
	kind    channel.FrameType
	payload []byte
	err     error
}

// readFrames hands frames over one by one: the next is read when the last was taken.
func (r *run) readFrames(next chan<- kernelFrame, taken <-chan struct{}, over <-chan struct{}) {
	for {
		kind, payload, err := r.wire.conn.ReadFrame()
		select {
		case next <- kernelFrame{kind, payload, err}:
		case <-over:
			return
		}
		if err != nil {
			return
		}
		select {
		case <-taken:
		case <-over:
			return
		}
	}
}

// followCell has the kernel run the cell and returns its end, as the record has it.
func (r *run) followCell() channel.Exit {
	if err := r.wire.sendRequest(r.request); err != nil {
		r.broken(&Failure{Name: FailureDied, Value: "the kernel does not take the cell; the next cell gets a new one: " + printable(err.Error(), maxError)})
		return r.exitOfCell()
	}
	r.request = request{}
	if r.handed != nil {
		r.handed()
	}
	next, taken, over := make(chan kernelFrame), make(chan struct{}), make(chan struct{})
	defer close(over)
	safego.Go(func() { r.readFrames(next, taken, over) })
	lifeOver, stopped := r.life.Done(), r.stopped.Done()
	for !r.done {
		select {
		case f := <-next:
			if why := r.takeFrame(f); why != nil && why.Name == FailureOutput {
				r.interrupt(why)
			} else if why != nil {
				r.broken(why)
				return r.exitOfCell()
			}
			if r.ended && !r.done {
				r.tellEvent(Event{Error: r.failure})
				return r.exitOfCell()
			}
			if f.err == nil {
				taken <- struct{}{} // it is waited for
			}
		case <-lifeOver:
			lifeOver = nil
			r.interrupt(timeIsOver())
		case <-stopped:
			stopped = nil
			r.interrupt(&Failure{Name: "KeyboardInterrupt", Value: "the client went away, and the cell was interrupted"})
		case <-r.grace:
			r.broken(outlived())
			return r.exitOfCell()
		}
	}
	return r.exitOfCell()
}

// interrupt has the kernel end the cell, and notes why, if nothing else is known.
func (r *run) interrupt(why *Failure) {
	if r.failure == nil {
		r.failure = why
	}
	if r.asked {
		return
	}
	r.asked = true
	r.grace = time.After(interruptGrace)
	r.wire.interrupt(r.host, r.kernel)
}

// outlived is why the kernel of a cell is ended that goes on though it was interrupted.
func outlived() *Failure {
	return &Failure{Name: FailureDied, Value: fmt.Sprintf("the cell did not end %s after it was interrupted", interruptGrace) + wasEnded}
}

// exitOfCell is the cell's end on record.
func (r *run) exitOfCell() channel.Exit {
	exit := channel.Exit{StdoutBytes: r.out, StderrBytes: r.err, Claimed: true}
	if r.failure != nil {
		exit.Code, exit.Error = 1, printable(r.failure.Name+": "+r.failure.Value, maxError)
		exit.TimedOut = r.failure.Name == FailureTimeout
		exit.Truncated = r.failure.Name == FailureOutput
	}
	return exit
}

// broken ends the kernel, and tells why.
func (r *run) broken(why *Failure) {
	r.failure = r.killed(why)
	r.tellEvent(Event{Error: r.failure})
}

// killed ends the kernel because of something, and is that with what is known of the end.
func (r *run) killed(why *Failure) *Failure {
	err := r.place.killKernel(context.Background(), r.host, r.kernel)
	if err == nil {
		return why
	}
	told := *why
	told.Value = printable(strings.TrimSuffix(why.Value, wasEnded)+"; "+fault.Sentence(err, "its kernel was killed, and nobody confirmed that"), maxValue)
	return &told
}

// wasEnded is said of a kernel whose end was confirmed.
const wasEnded = "; its kernel was ended, and what the context had is lost"

// tellEvent hands an event to whoever reads, if somebody does. A client that does not read holds
// the kernel back, and neither the policy's time nor the end of a cell that was interrupted in
// vain.
func (r *run) tellEvent(e Event) {
	e.At = time.Now()
	over := r.life.Done()
	for {
		select {
		case r.events <- e:
			return
		case <-r.left:
			return
		case <-over:
			over = nil
			r.interrupt(timeIsOver())
		case <-r.grace:
			r.grace, r.ended = nil, true
			r.failure = r.killed(outlived())
		}
	}
}

// timeIsOver is why a cell is interrupted that takes longer than it may.
func timeIsOver() *Failure {
	return &Failure{Name: FailureTimeout, Value: "the cell ran longer than the policy's timeout_seconds, and was interrupted"}
}
