package sandbox

import (
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// registry has all that is a sandbox, is to be one, or is kept ready to be one. Safe for
// concurrent use.
type registry struct {
	mu        sync.Mutex // guards what follows
	sandboxes map[string]*Sandbox
	members   map[string]engine.Instance // of the pool, by id
	making    map[string]int             // ids of what is being made: the sweeps leave them alone
}

func newRegistry() *registry {
	return &registry{sandboxes: map[string]*Sandbox{}, members: map[string]engine.Instance{}, making: map[string]int{}}
}

// getSandbox returns a sandbox, or fault.ErrNotFound.
func (r *registry) getSandbox(id string) (*Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[id]
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
	}
	return s, nil
}

// listSandboxes returns all sandboxes, oldest first.
func (r *registry) listSandboxes() []*Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Sandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Sandbox) int { return a.info.Created.Compare(b.info.Created) })
	return all
}

// countSandboxes counts the sandboxes that there are or are being made.
func (r *registry) countSandboxes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sandboxes) + len(r.making)
}

func (r *registry) addSandbox(s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes[s.info.ID] = s
}

func (r *registry) dropSandbox(s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, s.info.ID)
}

// knowsID reports whether an id is a sandbox's, or will be one's. To be asked after
// what is to be swept was found, never before.
func (r *registry) knowsID(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sandboxes[id] != nil || r.making[id] > 0 || r.members[id] != nil
}

// occupy keeps the sweeps from an id until leave is called.
func (r *registry) occupy(id string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making[id]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.making[id]--; r.making[id] <= 0 {
			delete(r.making, id)
		}
	}
}

// enlist notes a member of the pool.
func (r *registry) enlist(id string, inst engine.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[id] = inst
}

// poolMember is the pool's of an id; nil: there is none.
func (r *registry) poolMember(id string) engine.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members[id]
}

// discharge forgets a member that is a sandbox's now, or nobody's, and returns it.
func (r *registry) discharge(id string) engine.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	inst := r.members[id]
	delete(r.members, id)
	return inst
}
