package sandbox_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// camera is an engine whose sandboxes are ordinary processes, each with a directory
// that stands for its root. Its copies have the files, and no processes.
type camera struct {
	engine.Engine
	init func(root string) []string // PID 1
	dir  string
	mu   sync.Mutex
	fail error                     // of Snapshot, after the half of it
	seen map[string]engine.Spec    // of what was started, by id
	hook func(ctx context.Context) // called while a copy is being written
	size int64                     // of memory, as Stats tells it; 0: what it is
	// filesOnly: it copies no memory.
	filesOnly bool
}

var _ engine.Restorer = (*camera)(nil)

func (c *camera) root(id string) string { return filepath.Join(c.dir, "roots", id) }

func (c *camera) Name() string { return "camera" }

func (c *camera) Capabilities(context.Context) (engine.Capabilities, error) {
	caps := engine.Capabilities{Enforces: []engine.Control{
		engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlFreeze, engine.ControlSnapshotFiles,
	}}
	if c.filesOnly {
		caps.Missing = map[engine.Control]string{engine.ControlSnapshot: "it has no film"}
	} else {
		caps.Enforces = append(caps.Enforces, engine.ControlSnapshot)
	}
	return caps, nil
}

func (c *camera) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	c.mu.Lock()
	c.seen[spec.ID] = spec
	c.mu.Unlock()
	spec.Init = c.init(c.root(spec.ID))
	inst, err := c.Engine.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &subject{Instance: inst, camera: c, id: spec.ID}, nil
}

func (c *camera) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	inst, err := c.Engine.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	return &subject{Instance: inst, camera: c, id: h.ID}, nil
}

func (c *camera) Restore(ctx context.Context, spec engine.Spec, dir string) (engine.Instance, error) {
	if err := image.Intact(dir); err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join(dir, "of"))
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(c.root(spec.ID), os.DirFS(filepath.Join(c.dir, "photos", string(source)))); err != nil {
		return nil, err
	}
	return c.Create(ctx, spec)
}

type subject struct {
	engine.Instance
	camera *camera
	id     string
}

var _ engine.Snapshotter = (*subject)(nil)

func (s *subject) Stats(ctx context.Context) (engine.Stats, error) {
	if s.camera.size > 0 {
		return engine.Stats{MemoryBytes: s.camera.size}, nil
	}
	return s.Instance.Stats(ctx)
}

// Freeze and Thaw are those of the engine within.
func (s *subject) Freeze(ctx context.Context, dir string) error {
	return s.Instance.(engine.Freezer).Freeze(ctx, dir) //nolint:forcetypeassert // the fake engine's are
}

func (s *subject) FreezeFiles(ctx context.Context, dir string) error {
	return s.Instance.(engine.Freezer).FreezeFiles(ctx, dir) //nolint:forcetypeassert // the fake engine's are
}

func (s *subject) Thaw(ctx context.Context, dir string) error {
	return s.Instance.(engine.Freezer).Thaw(ctx, dir) //nolint:forcetypeassert // the fake engine's are
}

// Snapshot keeps the files beside the image, which has directories in no engine.
func (s *subject) Snapshot(ctx context.Context, dir string, _ engine.Contents) error {
	if err := image.Make(dir); err != nil {
		return err
	}
	s.camera.mu.Lock()
	fail, hook := s.camera.fail, s.camera.hook
	s.camera.mu.Unlock()
	if hook != nil {
		hook(ctx)
	}
	if fail != nil {
		return errors.Join(fail, os.RemoveAll(dir))
	}
	photo := filepath.Base(filepath.Dir(dir))
	if err := os.CopyFS(filepath.Join(s.camera.dir, "photos", photo), regular{os.DirFS(s.camera.root(s.id))}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "of"), []byte(photo), 0o600); err != nil {
		return err
	}
	return image.Seal(dir, s.id)
}

// regular is a file system without its sockets.
type regular struct{ fs.FS }

func (r regular) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && !e.Type().IsRegular() }), err
}

// studio is a manager over such an engine, with all that belongs to it.
type studio struct {
	*sandbox.Manager
	t          *testing.T
	dir        string
	engine     engine.Engine
	camera     *camera // the engine, unless a test has another
	tpl        template.Template
	keeper     *keeper.Client
	log        *audit.FileLog
	door       *admission.Controller
	advisories *gazette
	room       snapshots.Room
	secrets    *secret.Broker // that policies can name; nil: none
}

// gazette has one advisory, if any.
type gazette struct {
	mu   sync.Mutex
	name string
}

func (g *gazette) Facts(pkg pkgref.Ref) (advisory.Facts, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pkg.Name != g.name || g.name == "" {
		return advisory.Facts{}, nil
	}
	return advisory.Facts{Malware: []policy.Malware{{ID: "MAL-2026-9", Every: true}}}, nil
}

func (g *gazette) Vulnerabilities(pkgref.Ref) (advisory.Vulnerabilities, error) {
	return advisory.Vulnerabilities{}, nil
}

func (g *gazette) Generation() string { return "" }

func (g *gazette) burn(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.name = name
}

// rack has one template.
type rack struct{ template.Template }

func (r rack) Get(context.Context, string) (template.Template, error) { return r.Template, nil }

func (r rack) Generation(_ context.Context, name, digest string) (template.Template, error) {
	if digest != r.Digest {
		return template.Template{}, fault.New(fault.ErrConflict, "the template %s is another than it was", name)
	}
	return r.Template, nil
}

// nobody waits for anybody.
type nobody struct{}

func (nobody) Pending(context.Context, []string) ([]string, <-chan struct{}, error) {
	return nil, make(chan struct{}), nil
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := newStudioWith(t, func(s *studio) {
		s.camera = &camera{
			Engine: fake.New(filepath.Join(s.dir, "state"), s.keeper), dir: s.dir, seen: map[string]engine.Spec{},
			init: func(root string) []string { return enginetest.PlainInit(t, root) },
		}
		s.engine = s.camera
		s.tpl = template.Template{Name: "plain", Root: engine.Root{Kind: engine.RootDir, Path: "/"}, User: "agent", Home: "/home/agent"}
		must(t, os.WriteFile(filepath.Join(s.dir, "agent", "cofferdam-guest"), []byte("agent"), 0o600))
	})
	return s
}

// newStudioWith has equip choose engine and template.
func newStudioWith(t *testing.T, equip func(*studio)) *studio {
	t.Helper()
	dir, err := os.MkdirTemp("", "studio") //nolint:usetesting // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // engines that map users pass through
	for _, sub := range []string{"agent", "policies", "baselines", "frozen", "snapshots", "log"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	s := &studio{t: t, dir: dir, advisories: &gazette{}, room: snapshots.Room{Bytes: 1 << 30, Count: 100}}
	s.keeper = enginetest.StartKeeper(t, filepath.Join(dir, "k.sock"))
	equip(s)
	s.log, err = audit.Open(filepath.Join(dir, "log"), audit.Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.log.Close() })
	s.begin("sha256:template")
	t.Cleanup(func() {
		for _, one := range s.List() {
			if err := s.Destroy(context.WithoutCancel(t.Context()), one.Info().ID); err != nil {
				t.Error(err)
			}
		}
		s.Close()
	})
	return s
}

// begin makes the manager, or another one after the first has ended.
func (s *studio) begin(digest string) {
	s.t.Helper()
	s.door = admission.New(admission.Config{Log: s.log, Advisories: s.advisories, Secrets: s.secrets})
	quiet := slog.New(slog.DiscardHandler)
	tpl := s.tpl
	tpl.Digest = digest
	store, err := snapshots.Open(snapshots.Config{Dir: filepath.Join(s.dir, "snapshots"), Room: s.room, Log: quiet})
	must(s.t, err)
	record, err := written.Open(filepath.Join(s.dir, "written"))
	must(s.t, err)
	s.Manager = sandbox.New(sandbox.Config{
		Written: record,
		Engines: map[string]engine.Engine{s.engine.Name(): s.engine}, DefaultEngine: s.engine.Name(), Keeper: s.keeper, Templates: rack{tpl}, Door: s.door,
		Trust: func(context.Context) ([]byte, []string, error) {
			return []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), nil, nil
		},
		ClientEnv: func() map[string]string { return nil }, AgentDir: filepath.Join(s.dir, "agent"), EmptyFile: filepath.Join(s.dir, "agent", "empty"),
		Own: []string{s.dir}, PolicyDir: filepath.Join(s.dir, "policies"), BaselineDir: filepath.Join(s.dir, "baselines"), DefaultTemplate: "plain",
		Queue: nobody{}, Shelf: suspend.NewShelf(filepath.Join(s.dir, "frozen"), suspend.Room{Bytes: 1 << 30, Count: 10}), FreezeAfter: time.Second,
		Log: quiet, Snapshots: store, Reserve: 1, Secrets: s.secrets,
		TrustHosts: func(context.Context, []string) ([]byte, error) { return nil, nil },
	})
	must(s.t, s.Recover(s.t.Context()))
}

// restart is the daemon's.
func (s *studio) restart(digest string) {
	s.t.Helper()
	s.Close()
	s.begin(digest)
}

const house = `
allowed_packages: { python: [ { name: requests } ] }
rules: [ { name: no-curl, condition: { field: command, operator: matches, value: "curl" }, action: deny, priority: 10 } ]
defaults: { action: allow }
`

// request asks for a sandbox under a policy.
func (s *studio) request(document string) sandbox.Request {
	s.t.Helper()
	p, err := policy.Parse("", []byte(document))
	must(s.t, err)
	return sandbox.Request{Policy: p, PolicyText: []byte(document), User: "ann", Linger: true, Env: map[string]string{"MINE": "yes"}}
}

func (s *studio) create(req sandbox.Request) *sandbox.Sandbox {
	s.t.Helper()
	one, err := s.Create(s.t.Context(), req)
	must(s.t, err)
	return one
}

// write puts a file into a sandbox, past its guest.
func (s *studio) write(id, path, text string) {
	s.t.Helper()
	path = filepath.Join(s.camera.root(id), path)
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(s.t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *studio) read(id, path string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.camera.root(id), path))
	must(s.t, err)
	return strings.TrimSpace(string(data))
}

// serve has the door serve requests to a sandbox.
func (s *studio) serve(id string) {
	s.t.Helper()
	sum := strings.Repeat("ab", 32)
	a, err := s.door.Serve(s.t.Context(), door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: id, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "requests", Version: "2.31.0"}, SourceURL: "https://files.example/r",
		File: door.File{Name: "requests-2.31.0-py3-none-any.whl", Version: "2.31.0", Kind: policy.KindWheel, Digest: "sha256:" + sum, Published: time.Now().AddDate(-1, 0, 0)},
	}, Bytes: door.Bytes{SHA256: sum, Size: 10}})
	must(s.t, err)
	if !a.Decision.Allowed() {
		s.t.Fatalf("requests is not served: %+v", a.Decision)
	}
}

// records are those of a sandbox with an outcome.
func (s *studio) records(id string, outcome audit.Outcome) []audit.Record {
	s.t.Helper()
	var all []audit.Record
	for r, err := range s.log.Records(s.t.Context(), audit.Filter{Sandbox: id, Outcomes: []audit.Outcome{outcome}}) {
		must(s.t, err)
		all = append(all, r)
	}
	return all
}

// left are the names in the directory of snapshots.
func (s *studio) left() []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "snapshots"))
	must(s.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
