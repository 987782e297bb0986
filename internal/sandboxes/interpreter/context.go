package interpreter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// Context is one of a sandbox's, as clients see it.
type Context struct {
	ID       string
	Language string
	Dir      string
}

// kernelContext is a context with its kernel.
type kernelContext struct {
	Context

	language language
	turn     chan struct{}     // a slot for the cell that runs
	env      map[string]string // of its kernels
	warm     bool              // its kernel is started for whoever will claim the sandbox

	mu      sync.Mutex // guards what follows
	waiting int        // cells that want the turn
	kernel  string     // the id of the one that runs; "": none does
	removed bool
	// unconfirmed are kernels that were killed and that may run on.
	unconfirmed []string
	// stranger: the kernel does not know whose sandbox it is in.
	stranger bool
	// found: another daemon, or this sandbox's source, started the kernel, and may have given
	// it a cell that nobody follows any more; it says when that has ended.
	found bool
}

func newKernelContext(c Context, l language) *kernelContext {
	return &kernelContext{Context: c, language: l, turn: make(chan struct{}, 1)}
}

// takeTurn waits for the turn of a cell.
func (p *kernelContext) takeTurn(ctx context.Context) error {
	p.mu.Lock()
	if p.waiting >= maxWaiting {
		p.mu.Unlock()
		return fault.Exhausted(time.Second, "%d cells wait for their turn in the context %s already; run cells in several contexts to have them at one time", maxWaiting, p.ID)
	}
	p.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting--
	}()
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leaveTurn gives the turn to the next cell.
func (p *kernelContext) leaveTurn() { <-p.turn }

// running is the kernel, started if there is none. Needs the turn.
func (p *kernelContext) running(ctx context.Context, host Host, env map[string]string) (string, error) {
	p.mu.Lock()
	kernel, removed := p.kernel, p.removed
	p.mu.Unlock()
	switch {
	case removed:
		return "", p.goneError()
	case kernel != "":
		return kernel, nil
	}
	if err := p.killAgain(ctx, host); err != nil {
		return "", err
	}
	kernel, err := p.startKernel(ctx, host, env)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	removed = p.removed // meanwhile: then nobody else will ever end it
	if !removed {
		p.kernel, p.stranger, p.found = kernel, false, false
	}
	p.mu.Unlock()
	if removed {
		return "", errors.Join(p.goneError(), p.killKernel(context.WithoutCancel(ctx), host, kernel))
	}
	return kernel, nil
}

func (p *kernelContext) goneError() error {
	return fault.New(fault.ErrNotFound, "the context %s was removed", p.ID)
}

// startKernel starts a kernel and waits until it takes cells.
func (p *kernelContext) startKernel(ctx context.Context, host Starter, env map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	all := map[string]string{}
	for _, layer := range []map[string]string{env, p.env, p.language.env} {
		maps.Copy(all, layer)
	}
	kernel, err := host.StartKernel(ctx, commands.Kernel{Argv: p.kernelArgv(), Env: all, Dir: p.Dir})
	if err != nil && kernel != "" { // it may run: nobody else knows of it
		err = errors.Join(err, p.killKernel(context.WithoutCancel(ctx), host, kernel))
	}
	if err != nil {
		return "", err
	}
	if err := greetKernel(ctx, host, kernel, p.language); err != nil {
		return "", errors.Join(err, p.killKernel(context.WithoutCancel(ctx), host, kernel))
	}
	return kernel, nil
}

// markWarm is the mark of one that was started before its sandbox was anybody's.
const markWarm = mark + "-warm"

// mark stands in the arguments of a kernel before what tells which context it is of.
const mark = "cofferdam-kernel"

// tellsIdle stands before the mark of a kernel that says when no cell runs. Those that an
// earlier release started, which outlive their daemon as others do, don't know that question.
const tellsIdle = "cofferdam-tells-idle"

// kernelArgv is how the kernel is started. By what comes last another daemon finds its context.
func (p *kernelContext) kernelArgv() []string {
	m := mark
	if p.warm {
		m = markWarm
	}
	return append(append([]string{}, p.language.argv...), tellsIdle, m, p.ID, p.language.name, p.Dir)
}

// contextOfKernel returns the context of a kernel that runs; nil if its arguments do not tell.
func contextOfKernel(k keeper.Command) *kernelContext {
	at := len(k.Argv) - 4
	if at < 0 || k.Argv[at] != mark && k.Argv[at] != markWarm {
		return nil
	}
	l, err := languageOf(k.Argv[at+2])
	if err != nil {
		return nil
	}
	p := newKernelContext(Context{ID: k.Argv[at+1], Language: l.name, Dir: k.Argv[at+3]}, l)
	p.kernel, p.stranger = k.ID, k.Argv[at] == markWarm
	// One of an earlier release would be taken for one that does not end its cell, and be ended
	// with all that its context has.
	p.found = at > 0 && k.Argv[at-1] == tellsIdle
	return p
}

// killKernel ends a kernel, and the context has none. The error is that its end was not confirmed: it may
// run on, and until that is known the context gets no other.
func (p *kernelContext) killKernel(ctx context.Context, host Starter, kernel string) error {
	p.mu.Lock()
	if p.kernel == kernel {
		p.kernel = ""
	}
	if !slices.Contains(p.unconfirmed, kernel) {
		p.unconfirmed = append(p.unconfirmed, kernel)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	err := host.Signal(ctx, kernel, "KILL")
	if err != nil && !errors.Is(err, fault.ErrNotFound) && mayRun(ctx, host, kernel) {
		return fault.Wrap(fault.ErrUnavailable, err, "the kernel of the context %s was killed, and nobody confirmed that: it may run on, so the context gets no other; try again, use another context, or destroy the sandbox", p.ID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unconfirmed = slices.DeleteFunc(p.unconfirmed, func(one string) bool { return one == kernel })
	return nil
}

// mayRun tells whether a kernel may run.
func mayRun(ctx context.Context, host Starter, kernel string) bool {
	knows, is := host.(interface {
		Kernels(ctx context.Context) ([]keeper.Command, error)
	})
	if !is {
		return true
	}
	all, err := knows.Kernels(ctx)
	return err != nil || slices.ContainsFunc(all, func(k keeper.Command) bool { return k.ID == kernel })
}

// killAgain kills those whose end was not confirmed.
func (p *kernelContext) killAgain(ctx context.Context, host Starter) error {
	p.mu.Lock()
	all := slices.Clone(p.unconfirmed)
	p.mu.Unlock()
	for _, kernel := range all {
		if err := p.killKernel(ctx, host, kernel); err != nil {
			return err
		}
	}
	return nil
}

// forgetKernel notes that a kernel has ended.
func (p *kernelContext) forgetKernel(kernel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kernel == kernel {
		p.kernel = ""
	}
}

// endKernel ends the kernel that there is, and with it the cell that runs. If its end is not confirmed,
// the context stays.
func (p *kernelContext) endKernel(ctx context.Context, host Host, removed bool) error {
	p.mu.Lock()
	kernel := p.kernel
	p.removed = p.removed || removed
	p.mu.Unlock()
	var err error
	if kernel != "" {
		err = p.killKernel(ctx, host, kernel)
	}
	if err == nil {
		err = p.killAgain(ctx, host)
	}
	if err != nil && removed {
		p.mu.Lock()
		p.removed = false
		p.mu.Unlock()
	}
	return err
}

// greetKernel gives a kernel its program and waits until it is ready.
func greetKernel(ctx context.Context, host Starter, kernel string, l language) error {
	w, err := openWire(ctx, host, kernel, 0)
	if err != nil {
		return err
	}
	defer w.closeWire()
	wrote := w.writeInput(programOf(l)) // of one that has ended already the exit says why
	in := lineBuffer{}
	var complaint []byte
	for {
		kind, payload, err := w.conn.ReadFrame()
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, errors.Join(wrote, causeOf(ctx, err)), "the kernel for %s did not come up", l.name)
		}
		ready := false
		switch kind { //nolint:exhaustive // the others say nothing here
		case channel.FrameStdout:
			err = in.feedBytes(payload, func(line []byte) error {
				m, err := parseLine(line)
				if err == nil && m.Kind == "broken" {
					err = fault.New(fault.ErrUnavailable, "%s", printable(m.Text, maxValue))
				}
				ready = ready || err == nil && m.Kind == "ready"
				return err
			})
		case channel.FrameStderr:
			complaint = append(complaint, payload[:min(len(payload), maxError-len(complaint))]...)
		case channel.FrameExit:
			return notStarted(l, payload, complaint)
		}
		if err != nil || ready {
			return err
		}
	}
}
