package interpreter

import (
	"context"
	"errors"
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Warm starts the kernel of the default context of Python in a sandbox that is nobody's yet,
// and has it import what cells of the template mostly import. It is found again when the
// sandbox is claimed.
func Warm(ctx context.Context, host Starter, home string) error {
	l, err := languageOf(Python)
	if err != nil {
		return err
	}
	p := newKernelContext(Context{ID: defaultPrefix + l.name, Language: l.name, Dir: home}, l)
	p.warm = true
	kernel, err := p.startKernel(ctx, host, nil)
	if err != nil {
		return err
	}
	if err := exercise(ctx, host, kernel); err != nil {
		return errors.Join(err, p.killKernel(context.WithoutCancel(ctx), host, kernel))
	}
	return nil
}

// exercise has a kernel do once what takes long only once.
func exercise(ctx context.Context, host Starter, kernel string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	w, err := openWire(ctx, host, kernel, keeper.FromNow)
	if err != nil {
		return err
	}
	defer w.closeWire()
	if err := w.sendRequest(request{Op: "warm"}); err != nil {
		return err
	}
	in, ready := lineBuffer{}, false
	for !ready {
		kind, payload, err := w.conn.ReadFrame()
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, causeOf(ctx, err), "a kernel was not warmed up")
		}
		switch kind { //nolint:exhaustive // the others say nothing here
		case channel.FrameStdout:
			err = in.feedBytes(payload, func(line []byte) error {
				m, err := parseLine(line)
				ready = ready || err == nil && m.Kind == "ready"
				return err
			})
		case channel.FrameExit:
			err = fault.New(fault.ErrUnavailable, "a kernel ended while it was warmed up")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// introduce tells a kernel that was started before its sandbox was claimed what it is to find.
// Needs the turn.
func (p *kernelContext) introduce(ctx context.Context, host Host, w *wire, base map[string]string) error {
	p.mu.Lock()
	stranger := p.stranger
	p.mu.Unlock()
	if !stranger {
		return nil
	}
	env, err := host.Environment(ctx)
	if err != nil {
		return err
	}
	env = maps.Clone(env)
	maps.Copy(env, base)
	if err := w.sendRequest(request{Op: "begin", Env: env, Dir: p.Dir}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stranger = false
	return nil
}
