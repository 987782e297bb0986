package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// longestWait bounds a wait for something that must happen.
const longestWait = time.Minute

// world is an installation: a keeper in a process of its own, and the directories
// that daemons use one after the other.
type world struct {
	Dir  string
	Init []string // of PID 1, but for its root

	// The parts that a test may put in the place of the ordinary.
	Journal     func(sandbox.Journal) sandbox.Journal `json:"-"`
	Queue       suspend.Queue                         `json:"-"`
	Boot        func() (string, time.Duration)        `json:"-"`
	Made        func(*sandbox.Manager)                `json:"-"` // told of each before it takes over
	Log         *slog.Logger                          `json:"-"`
	FreezeAfter time.Duration
	Reserve     int64
	Host        quota.Host
	EndRetry    time.Duration
	OwnKernel   bool // of its sandboxes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := makeWorld(t)
	enginetest.StartKeeper(t, w.path("keeper.sock"))
	return w
}

// makeWorld makes one without a keeper.
func makeWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, sub := range []string{"policies", "baselines", "frozen", "agent", "state"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	init := enginetest.PlainInit(t, "")
	return &world{Dir: dir, Init: init[:len(init)-1], FreezeAfter: time.Hour}
}

func (w *world) path(name ...string) string {
	return filepath.Join(append([]string{w.Dir}, name...)...)
}

func (w *world) keeper() *keeper.Client { return keeper.Dial(w.path("keeper.sock")) }

// daemon is a manager with what it needs.
type daemon struct {
	*sandbox.Manager
	world  *world
	log    *audit.FileLog
	file   *store.Sandboxes
	engine *plainEngine
}

// start makes a daemon that has taken over what lives.
func (w *world) start(ctx context.Context) (*daemon, error) {
	log, err := audit.Open(w.path("audit"), audit.Options{})
	if err != nil {
		return nil, err
	}
	file, err := store.OpenSandboxes(ctx, w.path("sandboxes.db"))
	if err != nil {
		return nil, err
	}
	d := &daemon{world: w, log: log, file: file, engine: &plainEngine{Engine: fake.New(w.path("state"), w.keeper()), world: w}}
	var journal sandbox.Journal = file
	if w.Journal != nil {
		journal = w.Journal(file)
	}
	queue := w.Queue
	if queue == nil {
		queue = answered{}
	}
	logger := slog.New(slog.DiscardHandler)
	if w.Log != nil {
		logger = w.Log
	}
	if os.Getenv("SANDBOX_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	d.Manager = sandbox.New(sandbox.Config{
		Engines: map[string]engine.Engine{fake.Name: d.engine}, DefaultEngine: fake.Name, Keeper: w.keeper(), Templates: plainTemplate{},
		Door:      admission.New(admission.Config{Log: log}),
		Trust:     func(context.Context) ([]byte, []string, error) { return []byte(certificate), nil, nil },
		ClientEnv: func() map[string]string { return nil },
		AgentDir:  w.path("agent"), EmptyFile: "/dev/null", PolicyDir: w.path("policies"), BaselineDir: w.path("baselines"), DefaultTemplate: "plain",
		Homes: agenthome.NewShelf(w.path("homes")), Queue: queue, Shelf: suspend.NewShelf(w.path("frozen"), suspend.Room{Bytes: 1 << 40, Count: 500}), FreezeAfter: w.FreezeAfter,
		Log: logger, Journal: journal, Reserve: max(w.Reserve, 1), Host: w.Host, Boot: w.Boot, EndRetry: w.EndRetry,
	})
	if w.Made != nil {
		w.Made(d.Manager)
	}
	return d, d.Recover(ctx)
}

const certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"

// stop ends a daemon as an upgrade does: its sandboxes live on.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	d.Close()
	if err := errors.Join(d.file.Close(), d.log.Close()); err != nil {
		t.Error(err)
	}
}

// daemon starts a daemon that the test's end stops, with all its sandboxes.
func (w *world) daemon(t *testing.T) *daemon {
	t.Helper()
	d, err := w.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range d.List() {
			if err := d.Destroy(context.WithoutCancel(t.Context()), s.Info().ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
				t.Error(err)
			}
		}
		d.stop(t)
	})
	return d
}

// next is the daemon that comes after one that was stopped, or died.
func (d *daemon) next(t *testing.T) *daemon {
	t.Helper()
	d.stop(t)
	n, err := d.world.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	*d = *n // the test's end stops what is there then
	return d
}

// create makes a sandbox of a request that need not say what all do.
func (d *daemon) create(t *testing.T, req sandbox.Request) *sandbox.Sandbox {
	t.Helper()
	s, err := d.Create(t.Context(), ask(t, req))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const document = "name: test\npackages: { default: deny }\n"

func ask(t *testing.T, req sandbox.Request) sandbox.Request {
	t.Helper()
	p, err := policy.Parse("test", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	req.Policy, req.PolicyText, req.User = p, []byte(document), "ann"
	return req
}

// events are all that the journal has, as "from>to" by sandbox.
func (d *daemon) events(t *testing.T) map[string][]string {
	t.Helper()
	all, err := d.file.Events(t.Context(), 0, sandbox.KeptEvents)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for i, e := range all {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		found[e.Sandbox] = append(found[e.Sandbox], string(e.From+">"+e.To))
	}
	return found
}

// wantEvents compares a sandbox's way with "to" states.
func (d *daemon) wantEvents(t *testing.T, id string, want ...sandbox.State) {
	t.Helper()
	var way []string
	from := sandbox.State("")
	for _, to := range want {
		way = append(way, string(from+">"+to))
		from = to
	}
	if got := d.events(t)[id]; !slices.Equal(got, way) {
		t.Errorf("the way of %s was %v, want %v", id, got, way)
	}
}

// records are the outcomes of a sandbox's own records, in order.
func (d *daemon) records(t *testing.T, id string) []audit.Outcome {
	t.Helper()
	var all []audit.Outcome
	for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: id, Kinds: []audit.Kind{audit.KindSandbox}}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Outcome)
	}
	return all
}

func wantState(t *testing.T, s *sandbox.Sandbox, want sandbox.State) {
	t.Helper()
	if got, _ := s.State(); got != want {
		t.Errorf("%s is %s, want %s", s.Info().ID, got, want)
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// nothingLeft looks for everything that sandboxes may leave.
func (d *daemon) nothingLeft(t *testing.T) {
	t.Helper()
	d.wantOnly(t)
}

// wantOnly: what there is, wherever one looks, are these sandboxes.
func (d *daemon) wantOnly(t *testing.T, ids ...string) {
	t.Helper()
	ids = slices.Sorted(slices.Values(ids))
	check := func(where string, got []string, err error) {
		t.Helper()
		slices.Sort(got)
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s has %v (%v), want %v", where, got, err, ids)
		}
	}
	var known, held, journaled []string
	for _, s := range d.List() {
		known = append(known, s.Info().ID)
	}
	check("the manager", known, nil)
	boxes, err := d.world.keeper().List(t.Context())
	for _, k := range boxes {
		held = append(held, k.ID)
	}
	check("the keeper", held, err)
	entries, err := d.file.Entries(t.Context())
	for _, e := range entries {
		journaled = append(journaled, e.Info.ID)
	}
	check("the journal", journaled, err)
	listed, err := d.engine.List(t.Context())
	check("the engine", listed, err)
	running := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		s, err := d.Get(id)
		return err == nil && s.FilesAlone()
	})
	if got := slices.Sorted(slices.Values(d.world.processes())); !slices.Equal(got, running) {
		t.Errorf("the process list has %v, want %v", got, running)
	}
	frozen, err := os.ReadDir(d.world.path("frozen"))
	if err != nil {
		t.Error(err)
	}
	for _, e := range frozen {
		if !slices.Contains(ids, e.Name()) {
			t.Errorf("an image of %s is left", e.Name())
		}
	}
}

// processes are the ids of sandboxes whose PID 1 runs. A child that PID 1 has made, and that is to be another
// program in a moment, still has its name, and is not counted.
func (w *world) processes() []string {
	found, parents := map[string]string{}, map[string]string{} // by pid
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
		last := args[len(args)-1]
		if len(args) != len(w.Init)+1 || !slices.Equal(args[:len(w.Init)], w.Init) || filepath.Dir(last) != w.path("roots") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			continue // it has ended
		}
		_, behindName, _ := strings.Cut(string(stat), ") ")
		pid := filepath.Base(filepath.Dir(path))
		if fields := strings.Fields(behindName); len(fields) > 1 {
			found[pid], parents[pid] = filepath.Base(last), fields[1]
		}
	}
	var ids []string
	for pid, id := range found {
		if found[parents[pid]] != id {
			ids = append(ids, id)
		}
	}
	return ids
}

// plainEngine is the fake engine with its guest, said to isolate.
type plainEngine struct {
	*fake.Engine
	world *world
	// Fails, if not nil, is why the next sandboxes can't be made.
	Fails func() error
	// Before, if not nil, is called before a sandbox is made.
	Before func(engine.Spec)
	// Wrap, if not nil, makes another instance of each that is made.
	Wrap func(*fake.Instance) engine.Instance
	// Stays, if not nil, is why a sandbox can't be taken away.
	Stays func() error
	haste haste
	asked atomic.Int64 // how often for what it can do
}

// clinging is an instance that its engine may not be able to take away.
type clinging struct {
	*fake.Instance
	engine *plainEngine
}

func (c clinging) Destroy(ctx context.Context) error {
	if err := c.engine.Stays(); err != nil {
		return err
	}
	return c.Instance.Destroy(ctx)
}

// Capabilities are what a manager insists on.
func (e *plainEngine) Capabilities(ctx context.Context) (engine.Capabilities, error) {
	caps, err := e.Engine.Capabilities(ctx)
	caps.Enforces = append(caps.Enforces, engine.ControlNoNetwork, engine.ControlReadOnlyRoot)
	if e.world.OwnKernel {
		caps.Enforces = append(caps.Enforces, engine.ControlOwnKernel)
	}
	e.asked.Add(1)
	return caps, err
}

// Create starts the test's own guest agent.
func (e *plainEngine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	if e.Before != nil {
		e.Before(spec)
	}
	if e.Fails != nil {
		if err := e.Fails(); err != nil {
			return nil, err
		}
	}
	spec.Init = append(slices.Clone(e.world.Init), e.world.path("roots", spec.ID))
	spec.Root = engine.Root{Kind: engine.RootDir, Path: "/"}
	inst, err := e.Engine.Create(ctx, spec)
	if e.Wrap != nil && err == nil {
		return e.Wrap(inst.(*fake.Instance)), nil //nolint:forcetypeassert // that is what it makes
	}
	if e.Stays != nil && err == nil {
		inst = clinging{inst.(*fake.Instance), e} //nolint:forcetypeassert // that is what it makes
	}
	return inst, err
}

type plainTemplate struct{}

func (plainTemplate) Get(context.Context, string) (template.Template, error) {
	return template.Template{Name: "plain", Digest: "sha256:plain", User: "agent", Home: "/tmp", Root: engine.Root{Kind: engine.RootDir, Path: "/"}}, nil
}

func (p plainTemplate) Generation(ctx context.Context, name, _ string) (template.Template, error) {
	return p.Get(ctx, name)
}

// answered is a queue in which nothing is pending.
type answered struct{}

func (answered) Pending(context.Context, []string) ([]string, <-chan struct{}, error) {
	return nil, nil, nil
}

// encode hands a world to another process.
func (w *world) encode(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
