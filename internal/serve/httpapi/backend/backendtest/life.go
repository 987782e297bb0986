package backendtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// Life makes boxes, pauses and copies them, and takes them away, as a manager
// would: quotas, idempotency keys and wrong states included. A copy has no inside
// of its source. Safe for concurrent use.
type Life struct {
	*Boxes

	dir string

	mu        sync.Mutex // guards what follows; taken before Boxes' own
	requests  []sandbox.Request
	keys      map[string]string // by owner and idempotency key
	narrowed  map[string]policy.Narrowing
	snapshots []sandbox.Snapshot
	refuse    map[string]error // by sandbox: what Resume answers
	fail      error            // what Create answers
	touched   map[string]int
	together  *sync.WaitGroup        // of pauses that wait for each other; nil: none do
	onResume  func(*sandbox.Sandbox) // nil: nobody is told
}

// NewLife makes one whose boxes' insides lie below dir.
func NewLife(dir string) *Life {
	return &Life{
		Boxes: &Boxes{}, dir: dir, keys: map[string]string{}, narrowed: map[string]policy.Narrowing{},
		refuse: map[string]error{}, touched: map[string]int{},
	}
}

// Requests are those that Create was given.
func (l *Life) Requests() []sandbox.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// FailCreate makes Create fail with err until it is called with nil.
func (l *Life) FailCreate(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// RefuseResume makes Resume of a sandbox fail with err.
func (l *Life) RefuseResume(id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse[id] = err
}

// HoldPauses has the next n pauses begin at once, as they would under load.
func (l *Life) HoldPauses(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.together = &sync.WaitGroup{}
	l.together.Add(n)
}

// OnResume has tell look at each sandbox that is about to go on.
func (l *Life) OnResume(tell func(*sandbox.Sandbox)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onResume = tell
}

// Touched is how often a sandbox was used.
func (l *Life) Touched(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.touched[id]
}

// Touch implements backend.Sandboxes.
func (l *Life) Touch(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched[id]++
}

// Become puts a box into a state.
func (l *Life) Become(id string, to sandbox.State) error {
	box, err := l.findBox(id)
	if err != nil {
		return err
	}
	box.Become(to)
	return nil
}

func newTestID(prefix string) string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: it ends the process instead
	return prefix + hex.EncodeToString(b)
}

// Create implements backend.Sandboxes.
func (l *Life) Create(_ context.Context, req sandbox.Request) (*sandbox.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return nil, l.fail
	}
	key := req.Owner.Token + " " + req.IdempotencyKey
	if id := l.keys[key]; id != "" && req.IdempotencyKey != "" {
		return l.Get(id)
	}
	if err := l.checkQuota(req.Owner); err != nil {
		return nil, err
	}
	box, err := l.makeBox(req, "")
	if err != nil {
		return nil, err
	}
	l.requests = append(l.requests, req)
	l.keys[key] = box.Info().ID
	return box.Sandbox, nil
}

func (l *Life) checkQuota(o sandbox.Owner) error {
	living := 0
	for _, sb := range l.List() {
		if sb.Info().Owner.Token == o.Token {
			living++
		}
	}
	if most := o.Quota.Sandboxes; most > 0 && living >= most {
		return fault.Exhausted(0, "the token has %s, and its quota is %d", text.Count(living, "sandbox", "sandboxes"), most)
	}
	made := 0
	for _, r := range l.requests {
		if r.Owner.Token == o.Token {
			made++
		}
	}
	if most := o.Quota.CreatesPerMinute; most > 0 && made >= most {
		return fault.Exhausted(100*time.Millisecond, "the token makes more than %d sandboxes a minute", most)
	}
	return nil
}

// makeBox needs mu.
func (l *Life) makeBox(req sandbox.Request, parent string) (*Box, error) {
	id := newTestID("sb")
	info := sandbox.Info{
		ID: id, Run: cmp.Or(req.Run, newTestID("run-")), Template: req.Template, Engine: "fake", PolicySource: req.PolicySource, User: req.User,
		Lifetime: req.Lifetime, Owner: req.Owner, Account: req.Account, Labels: maps.Clone(req.Labels), Created: time.Now().UTC(),
		Snapshot: req.Snapshot, Parent: parent, Limits: engine.Limits{CPU: 1.5, MemoryBytes: 2 << 30, DiskBytes: 4 << 30, Pids: 512},
	}
	if req.Policy != nil {
		info.PolicyDigest, info.Notes = req.Policy.Digest(), req.Policy.Notes()
	}
	root := filepath.Join(l.dir, id)
	if err := os.MkdirAll(filepath.Join(root, "home", "user"), 0o750); err != nil {
		return nil, err
	}
	files := &Files{Root: root, Home: "/home/user"}
	box := &Box{
		StandIn: sandbox.NewStandIn(info, req.Policy, suspend.New(context.Background(), suspend.Config{Sandbox: id})),
		Files:   files, Commands: &Commands{Files: files},
	}
	box.Lives(req.Lifetime)
	l.narrowed[id] = req.Narrowing
	l.Add(box)
	return box, nil
}

// WaitsIn has a sandbox wait, and be paused, in a list of the test's.
func (l *Life) WaitsIn(id string, list *suspend.List) error {
	box, err := l.findBox(id)
	if err == nil {
		box.StandIn, box.Holds = sandbox.NewStandIn(box.Info(), nil, list), list
	}
	return err
}

// StandsIn are the words for what sandboxes are made for that nobody asked for; see
// journal.Info.
func StandsIn() []string { return []string{"rehearsal", "workshop", "proof", "build"} }

// StandIn makes a running sandbox that the daemon made for a token's other one.
func (l *Life) StandIn(what, owner string) (id string) {
	id = newTestID("sb")
	info := sandbox.Info{
		ID: id, Run: newTestID(what + "-"), Template: "debian", Engine: "fake", Owner: sandbox.Owner{Token: owner}, Created: time.Now().UTC(),
		Rehearsal: what == "rehearsal", Workshop: what == "workshop", Proof: what == "proof",
	}
	if what == "build" {
		info.Labels = map[string]string{journal.BuildLabel: "b1"}
	}
	l.Add(&Box{
		StandIn: sandbox.NewStandIn(info, nil, suspend.New(context.Background(), suspend.Config{Sandbox: id})),
		Files:   &Files{Root: l.dir}, Commands: &Commands{Files: &Files{Root: l.dir}},
	})
	return id
}

// SetLifetime implements backend.Sandboxes.
func (l *Life) SetLifetime(_ context.Context, id string, life sandbox.Lifetime) error {
	box, err := l.findBox(id)
	if err != nil {
		return err
	}
	box.Lives(life)
	return nil
}

// Pause implements backend.Sandboxes.
func (l *Life) Pause(_ context.Context, id string) error {
	l.mu.Lock()
	together := l.together
	l.mu.Unlock()
	if together != nil {
		together.Done()
		together.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	box, err := l.running(id)
	if err != nil {
		return err
	}
	box.Become(sandbox.Paused)
	return nil
}

// PauseFiles implements backend.Sandboxes.
func (l *Life) PauseFiles(ctx context.Context, id string) error {
	if err := l.Pause(ctx, id); err != nil {
		return err
	}
	box, err := l.findBox(id)
	if err == nil {
		box.KeepsFiles(true)
	}
	return err
}

// Resume implements backend.Sandboxes.
func (l *Life) Resume(_ context.Context, id string) (bool, error) {
	box, err := l.findBox(id)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	refused, onResume := l.refuse[id], l.onResume
	l.mu.Unlock()
	if refused != nil {
		return false, refused
	}
	if state, _ := box.State(); state != sandbox.Paused {
		return false, nil
	}
	if onResume != nil {
		onResume(box.Sandbox)
	}
	box.Become(sandbox.Running)
	box.KeepsFiles(false)
	box.WasSilent(false)
	return true, nil
}

// ResumeFiles implements backend.Sandboxes: the commands of one that is paused end.
func (l *Life) ResumeFiles(ctx context.Context, id string) (bool, error) {
	box, err := l.findBox(id)
	if err != nil {
		return false, err
	}
	if state, _ := box.State(); state == sandbox.Paused {
		box.Commands.Kill()
	}
	return l.Resume(ctx, id)
}

// PolicyPut implements backend.Sandboxes: two live, and both are narrowed.
func (l *Life) PolicyPut(_ context.Context, _ *policy.Policy, _ string, _ []byte, narrow bool) (sandbox.Applied, error) {
	if narrow {
		return sandbox.Applied{Live: 2, Narrowed: 2}, nil
	}
	return sandbox.Applied{Live: 2}, nil
}

// Narrow implements the E2B wire's Sandboxes.
func (l *Life) Narrow(_ context.Context, id string, n policy.Narrowing) error {
	if _, err := l.findBox(id); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.narrowed[id] = n
	return nil
}

// Narrowing implements the E2B wire's Sandboxes.
func (l *Life) Narrowing(id string) policy.Narrowing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.narrowed[id]
}

// Events implements backend.Sandboxes: there are none.
func (l *Life) Events(ctx context.Context, _ int64) (<-chan sandbox.Event, error) {
	none := make(chan sandbox.Event)
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}
