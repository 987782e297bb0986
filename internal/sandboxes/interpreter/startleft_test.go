package interpreter

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// leftAtStart is a sandbox whose client leaves while a kernel is being started: the keeper starts it all the same
// (keeper.startExec), and commands.Table.StartKernel gives its id with the error.
type leftAtStart struct {
	*stage
	leave func()
}

func (l leftAtStart) StartKernel(ctx context.Context, k commands.Kernel) (string, error) {
	id, err := l.stage.StartKernel(ctx, k)
	if err == nil && l.leave != nil {
		l.leave()
		err = ctx.Err()
	}
	return id, err
}

// TestAKernelWhoseClientLeftAtItsStartIsEnded: else it runs on as long as the sandbox, another daemon takes it for the
// context's, and the kernel that has what the cells made is found no more. The control is a client that stays.
func TestAKernelWhoseClientLeftAtItsStartIsEnded(t *testing.T) {
	for name, leaves := range map[string]bool{"the client stays": false, "the client leaves": true} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			s := &leftAtStart{stage: &stage{t: t, scripts: map[string]script{"say": good()}, refuse: map[string]error{}}}
			if leaves {
				s.leave = func() { leave() }
			}
			i := New(Config{MaxOutput: 2 << 20, Log: slog.New(slog.DiscardHandler), Host: func(string) (Host, error) { return s, nil }})
			c, err := i.Execute(ctx, "box", Request{Code: "say", Home: "/home/user"})
			if leaves != errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err == nil {
				collect(c)
			}
			s.leave = nil
			if got := execute(t, i, "say"); got.failure != nil {
				t.Fatal(got.failure)
			}
			living, err := s.Kernels(t.Context())
			if err != nil || len(living) != 1 {
				t.Errorf("the context has %d kernels that run (%v)", len(living), err)
			}
			// The daemon that comes next finds what runs, the oldest first.
			p := contextOfKernel(living[0])
			i.mu.Lock()
			b := i.boxes["box"]
			i.mu.Unlock()
			b.mu.Lock()
			has := b.places[0].kernel
			b.mu.Unlock()
			if p.kernel != has {
				t.Errorf("the next daemon takes %s for the context's kernel, which is %s", p.kernel, has)
			}
		})
	}
}
