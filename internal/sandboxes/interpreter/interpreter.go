package interpreter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// Config is what an Interpreter works with. Host and Log are needed.
type Config struct {
	// Host finds a sandbox; fault.ErrNotFound for one that is not there.
	Host func(sandbox string) (Host, error)
	Log  *slog.Logger
	// MaxOutput is how many bytes a cell's messages may have; 0: 32 MiB.
	MaxOutput int
}

// Interpreter has the contexts of all sandboxes. The kernels' own arguments tell of them, too:
// another daemon, or the copy of a sandbox, finds them again. Safe for concurrent use.
type Interpreter struct {
	cfg Config

	mu    sync.Mutex // guards boxes; never held over a call
	boxes map[string]*sandboxContexts
}

// New makes one without contexts.
func New(cfg Config) *Interpreter {
	cfg.MaxOutput = cmp.Or(cfg.MaxOutput, maxOutput)
	return &Interpreter{cfg: cfg, boxes: map[string]*sandboxContexts{}}
}

// sandboxContexts is a sandbox's contexts.
type sandboxContexts struct {
	host Host

	mu     sync.Mutex // guards what follows; held while the kernels are asked for
	asked  bool
	places []*kernelContext // in the order in which they were made
}

// boxOfSandbox is a sandbox's, with the contexts of kernels that run in it.
func (i *Interpreter) boxOfSandbox(ctx context.Context, sandbox string) (*sandboxContexts, error) {
	host, err := i.cfg.Host(sandbox)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	b := i.boxes[sandbox]
	if b == nil {
		b = &sandboxContexts{host: host}
		i.sweepBoxes()
		i.boxes[sandbox] = b
	}
	i.mu.Unlock()
	return b, b.findKernels(ctx)
}

// sweepBoxes forgets the sandboxes that are gone. Needs mu.
func (i *Interpreter) sweepBoxes() {
	for id := range i.boxes {
		if _, err := i.cfg.Host(id); errors.Is(err, fault.ErrNotFound) {
			delete(i.boxes, id)
		}
	}
}

// findKernels learns of the kernels that run already, once.
func (b *sandboxContexts) findKernels(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked {
		return nil
	}
	kernels, err := b.host.Kernels(ctx)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		p := contextOfKernel(k)
		if p != nil && len(b.places) < maxContexts && b.contextAt(p.ID) == nil {
			b.places = append(b.places, p)
		}
	}
	b.asked = true
	return nil
}

// contextAt returns the context of an id; nil: there is none. Needs mu.
func (b *sandboxContexts) contextAt(id string) *kernelContext {
	if i := slices.IndexFunc(b.places, func(p *kernelContext) bool { return p.ID == id }); i >= 0 {
		return b.places[i]
	}
	return nil
}

// defaultPrefix begins the ids of default contexts.
const defaultPrefix = "default-"

// Contexts lists a sandbox's contexts, oldest first: before all others the default ones of
// Python and JavaScript, which are there for whoever wants them.
func (i *Interpreter) Contexts(ctx context.Context, sandbox, home string) ([]Context, error) {
	b, err := i.boxOfSandbox(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Context
	for _, name := range []string{Python, JavaScript} {
		if b.contextAt(defaultPrefix+name) == nil {
			all = append(all, Context{ID: defaultPrefix + name, Language: name, Dir: home})
		}
	}
	for _, p := range b.places {
		all = append(all, p.Context)
	}
	slices.SortStableFunc(all, func(x, y Context) int { return rankOf(x) - rankOf(y) })
	return all, nil
}

func rankOf(c Context) int {
	if strings.HasPrefix(c.ID, defaultPrefix) {
		return 0
	}
	return 1
}

// NewContext asks for a context.
type NewContext struct {
	Language string            // "": Python
	Dir      string            // where its cells begin, an absolute path
	Env      map[string]string // of its kernel, beyond the sandbox's
	Base     map[string]string // the same, of whoever made the sandbox; Env goes before it
}

// Create makes a context and starts its kernel.
func (i *Interpreter) Create(ctx context.Context, sandbox string, n NewContext) (Context, error) {
	l, err := languageOf(n.Language)
	if err == nil {
		err = checkPlace(n)
	}
	if err != nil {
		return Context{}, err
	}
	b, err := i.boxOfSandbox(ctx, sandbox)
	if err != nil {
		return Context{}, err
	}
	p := newKernelContext(Context{ID: "ctx-" + randomHex(), Language: l.name, Dir: n.Dir}, l)
	p.env = n.Env
	if err := b.addPlace(p); err != nil {
		return Context{}, err
	}
	if err := p.makeReady(ctx, b.host, n.Base); err != nil {
		b.removePlace(p.ID)
		return Context{}, err
	}
	return p.Context, nil
}

// makeReady has the kernel of a context started.
func (p *kernelContext) makeReady(ctx context.Context, host Host, base map[string]string) error {
	if err := p.takeTurn(ctx); err != nil {
		return err
	}
	defer p.leaveTurn()
	_, err := p.running(ctx, host, base)
	return err
}

func checkPlace(n NewContext) error {
	if len(n.Dir) > maxDir || !strings.HasPrefix(n.Dir, "/") || strings.ContainsRune(n.Dir, 0) {
		return fault.Invalid("the working directory %q is not valid: an absolute path of up to %d bytes", text.Shorten(n.Dir, 80), maxDir)
	}
	return commands.CheckEnv(n.Env)
}

func (b *sandboxContexts) addPlace(p *kernelContext) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.places) >= maxContexts {
		return fault.New(fault.ErrExhausted, "the sandbox has %d contexts, and may have no more; remove one first", maxContexts)
	}
	b.places = append(b.places, p)
	return nil
}

func (b *sandboxContexts) removePlace(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.contextAt(id)
	b.places = slices.DeleteFunc(b.places, func(one *kernelContext) bool { return one == p })
}

// context is the one of an id. A default one is made if it is asked for.
func (b *sandboxContexts) context(id, home string) (*kernelContext, error) {
	b.mu.Lock()
	p := b.contextAt(id)
	b.mu.Unlock()
	if p != nil {
		return p, nil
	}
	l, err := languageOf(strings.TrimPrefix(id, defaultPrefix))
	if id != defaultPrefix+l.name || err != nil {
		return nil, fault.New(fault.ErrNotFound, "the sandbox has no context %q", text.Shorten(id, 80))
	}
	p = newKernelContext(Context{ID: id, Language: l.name, Dir: home}, l)
	b.mu.Lock()
	defer b.mu.Unlock()
	if there := b.contextAt(id); there != nil {
		return there, nil
	}
	if len(b.places) >= maxContexts {
		return nil, fault.New(fault.ErrExhausted, "the sandbox has %d contexts, and may have no more; remove one first", maxContexts)
	}
	b.places = append(b.places, p)
	return p, nil
}

// Remove ends a context with its kernel, and with the cell that it runs.
func (i *Interpreter) Remove(ctx context.Context, sandbox, id, home string) error {
	b, err := i.boxOfSandbox(ctx, sandbox)
	if err != nil {
		return err
	}
	p, err := b.context(id, home)
	if err != nil {
		return err
	}
	if err := p.endKernel(ctx, b.host, true); err != nil {
		return err
	}
	b.removePlace(p.ID)
	return nil
}

// Restart gives a context a new kernel: what its cells made is gone, and the cell that runs
// ends.
func (i *Interpreter) Restart(ctx context.Context, sandbox, id, home string, base map[string]string) error {
	b, err := i.boxOfSandbox(ctx, sandbox)
	if err != nil {
		return err
	}
	p, err := b.context(id, home)
	if err != nil {
		return err
	}
	if err := p.endKernel(ctx, b.host, false); err != nil {
		return err
	}
	return p.makeReady(ctx, b.host, base)
}

func randomHex() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}
