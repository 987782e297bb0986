package backendtest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Box is one pretended sandbox with an inside.
type Box struct {
	sandbox.StandIn
	Files    *Files
	Commands *Commands
	Holds    *suspend.List // of the stand-in; nil where nothing ever waits
	// Ports maps a port inside to the address of a server of the test's; what is not
	// there is not published.
	Ports map[int]string
	// Refuse is a text; commands that rules would see as it are refused. "": none.
	Refuse string
}

// AwaitState returns when the box's holds have led it to a state.
func (b *Box) AwaitState(ctx context.Context, want suspend.State) {
	for {
		view := b.Holds.View()
		if view.State == want {
			return
		}
		select {
		case <-view.Changed:
		case <-ctx.Done():
			return
		}
	}
}

// Thaws has the box be one that comes back from disk, under a policy or none; its processes are there once wakes is closed. It is
// for a box that nobody uses yet.
func (b *Box) Thaws(ctx context.Context, dir string, p *policy.Policy) (wakes chan struct{}) {
	people, wakes := &People{}, make(chan struct{})
	id := b.Info().ID
	b.Holds = people.WaitsOf(ctx, id, dir, Sleeper{Wakes: wakes}, func(context.Context, bool) error { return nil })
	b.StandIn = sandbox.NewStandIn(b.Info(), p, b.Holds)
	people.Ask("ap-thaws")
	b.Holds.Held(Hold("ap-thaws", true))
	b.AwaitState(ctx, suspend.Frozen)
	people.Answer()
	b.AwaitState(ctx, suspend.Thawing)
	return wakes
}

// Tell lets everybody look at the box's state who waits for a change.
func (b *Box) Tell(ctx context.Context) error {
	hold := Hold("nothing", false)
	b.Holds.Held(hold)
	return b.Holds.Released(ctx, hold)
}

// Boxes are sandboxes that only have an inside: what makes sandboxes and takes them
// away is left to the embedded interface, which may be nil. Safe for concurrent use.
type Boxes struct {
	backend.Sandboxes

	mu   sync.Mutex // guards what follows
	all  []*Box
	mute error // of signals and removals; nil: all are confirmed
}

// Mute makes signals and removals fail with err, as those that nobody confirms; nobody ends a command that
// is started from then on at its timeout, either.
func (b *Boxes) Mute(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute = err
}

func (b *Boxes) mutedError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mute
}

// Add makes a box known.
func (b *Boxes) Add(box *Box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, box)
}

// All are the boxes that there are.
func (b *Boxes) All() []*Box {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// Box is the box of an id, or fault.ErrNotFound.
func (b *Boxes) Box(id string) (*Box, error) { return b.findBox(id) }

func (b *Boxes) findBox(id string) (*Box, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.all, func(x *Box) bool { return x.Info().ID == id })
	if i < 0 {
		return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
	}
	return b.all[i], nil
}

// running is a box in which something may be done.
func (b *Boxes) running(id string) (*Box, error) {
	box, err := b.findBox(id)
	if err != nil {
		return nil, err
	}
	if state, _ := box.State(); state != sandbox.Running {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	}
	return box, nil
}

// Get implements backend.Sandboxes.
func (b *Boxes) Get(id string) (*sandbox.Sandbox, error) {
	box, err := b.findBox(id)
	if err != nil {
		return nil, err
	}
	return box.Sandbox, nil
}

// List implements backend.Sandboxes.
func (b *Boxes) List() []*sandbox.Sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*sandbox.Sandbox
	for _, box := range b.all {
		all = append(all, box.Sandbox)
	}
	return all
}

// Destroy implements backend.Sandboxes.
func (b *Boxes) Destroy(_ context.Context, id string) error {
	box, err := b.findBox(id)
	if err == nil {
		err = b.mutedError()
	}
	if err != nil {
		return err
	}
	box.Become(sandbox.Destroying)
	box.Commands.Kill()
	box.Become(sandbox.Destroyed)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(x *Box) bool { return x == box })
	return nil
}

// Touch implements backend.Sandboxes.
func (b *Boxes) Touch(string) {}

// Usage implements backend.Sandboxes.
func (b *Boxes) Usage(_ context.Context, id string) (sandbox.Usage, error) {
	if _, err := b.running(id); err != nil {
		return sandbox.Usage{}, err
	}
	const gib = 1 << 30
	return sandbox.Usage{Time: time.Now(), CPUCount: 2, CPUPercent: 12.5, MemoryBytes: gib / 4, MemoryLimit: gib, DiskBytes: gib, DiskLimit: 4 * gib}, nil
}

// Start implements backend.Sandboxes.
func (b *Boxes) Start(_ context.Context, id string, c sandbox.Command) (keeper.Command, error) {
	box, err := b.running(id)
	if err != nil {
		return keeper.Command{}, err
	}
	if box.Refuse != "" && c.Judged == box.Refuse {
		return keeper.Command{}, fault.New(fault.ErrForbidden, "rule no-such-thing denies it: ask a person (rule rules.no-such-thing, request r-1)")
	}
	if c.Refused != nil {
		return keeper.Command{}, fault.New(fault.ErrForbidden, "%s (rule caller.%s, request r-1)", c.Refused.Reason, c.Refused.Rule)
	}
	if b.mutedError() != nil {
		c.Timeout = 0
	}
	return box.Commands.Start(c)
}

// Commands implements backend.Sandboxes.
func (b *Boxes) Commands(_ context.Context, id string) ([]keeper.Command, error) {
	box, err := b.findBox(id)
	if err != nil {
		return nil, err
	}
	return box.Commands.List(), nil
}

// Elevated fails: what runs here is no engine's.
func (*Boxes) Elevated(context.Context, string, sandbox.Elevated) (channel.Exit, error) {
	return channel.Exit{}, fault.New(fault.ErrUnavailable, "nothing here runs a program with rights")
}

// Attach implements backend.Sandboxes.
func (b *Boxes) Attach(_ context.Context, id, command string, offset int64) (net.Conn, error) {
	box, err := b.findBox(id)
	if err != nil {
		return nil, err
	}
	return box.Commands.Attach(command, offset)
}

// Written implements backend.Sandboxes.
func (b *Boxes) Written(_ context.Context, id, command string) (keeper.Output, error) {
	box, err := b.findBox(id)
	if err != nil {
		return keeper.Output{}, err
	}
	return box.Commands.Written(command)
}

// Send implements backend.Sandboxes.
func (b *Boxes) Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error {
	box, err := b.running(id)
	if err != nil {
		return err
	}
	if err := b.mutedError(); err != nil && kind == channel.FrameSignal {
		return err
	}
	return box.Commands.Send(ctx, command, kind, payload)
}

// File implements backend.Sandboxes. A path is refused as by the real ones.
func (b *Boxes) File(_ context.Context, id string, f channel.File) (channel.FileInfo, error) {
	box, err := b.running(id)
	if err == nil {
		err = sandbox.CheckFile(f)
	}
	if err != nil {
		return channel.FileInfo{}, err
	}
	return box.Files.Do(f)
}

// OpenFile implements backend.Sandboxes, as File does.
func (b *Boxes) OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	box, err := b.running(id)
	if err == nil {
		err = sandbox.CheckFile(f)
	}
	if err != nil {
		return nil, channel.FileInfo{}, err
	}
	return box.Files.Open(ctx, f)
}

// DialHere implements backend.Sandboxes: of a port that is not published nothing is
// known but that nothing listens.
func (b *Boxes) DialHere(ctx context.Context, id string, port int) (net.Conn, error) {
	box, err := b.running(id)
	if err != nil {
		return nil, err
	}
	if _, published := box.Ports[port]; !published {
		return nil, fault.New(fault.ErrUnavailable, "nothing listens on port %d", port)
	}
	return b.Dial(ctx, id, port)
}

// Dial implements backend.Sandboxes.
func (b *Boxes) Dial(ctx context.Context, id string, port int) (net.Conn, error) {
	box, err := b.running(id)
	if err != nil {
		return nil, err
	}
	address, published := box.Ports[port]
	if !published {
		return nil, fault.New(fault.ErrForbidden, "the policy does not publish port %d", port)
	}
	if address == "" {
		return nil, fault.Wrap(fault.ErrUnavailable, errors.New("connection refused"), "nothing listens on port %d", port)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
