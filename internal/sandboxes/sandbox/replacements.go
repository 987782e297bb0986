package sandbox

import (
	"context"
	"errors"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// replacements are the documents of policies that were put in the place of others, and
// narrow those sandboxes that began under these. Safe for concurrent use.
type replacements struct {
	door     *admission.Controller
	registry *registry

	mu       sync.Mutex                // guards bySource
	bySource map[string]*policy.Policy // those that narrow
}

func newReplacements(door *admission.Controller, known *registry) *replacements {
	return &replacements{door: door, registry: known, bySource: map[string]*policy.Policy{}}
}

// Applied is what became of the live sandboxes when a policy was put.
type Applied struct {
	// Live are those that began under another document of the same source; they keep
	// that for ever.
	Live int
	// Narrowed are those of them that are judged by the new one, too, from now on.
	Narrowed int
}

// putDocument replaces the document of a source; see Manager.PolicyPut.
func (r *replacements) putDocument(ctx context.Context, p *policy.Policy, source string, narrow bool) (Applied, error) {
	r.mu.Lock()
	if narrow {
		r.bySource[source] = p
	} else {
		delete(r.bySource, source) // those that are being made may have the new one, which narrows nothing
	}
	r.mu.Unlock()
	var a Applied
	var errs []error
	for _, s := range r.registry.listSandboxes() { // one that is not in it yet applies what was put
		if !s.isUnder(source, p) {
			continue
		}
		a.Live++
		if !narrow {
			continue
		}
		if err := r.door.NarrowPolicy(ctx, s.info.ID, p); err != nil {
			if state, _ := s.State(); state != Destroying && state != Destroyed {
				errs = append(errs, err)
			}
			continue
		}
		a.Narrowed++
		r.spread(ctx, s)
	}
	return a, errors.Join(errs...)
}

// isUnder tells whether a sandbox that lives began under another document of source.
func (s *Sandbox) isUnder(source string, p *policy.Policy) bool {
	state, _ := s.State()
	gone := state == Destroying || state == Destroyed || state == Failed
	return !gone && source != "" && s.info.PolicySource == source && s.info.PolicyDigest != p.Digest()
}

// applyReplaced narrows a sandbox that was being made under a document which was replaced
// meanwhile, or is a copy of one that was made before that. It must be in the registry.
func (r *replacements) applyReplaced(ctx context.Context, s *Sandbox) error {
	r.mu.Lock()
	p := r.bySource[s.info.PolicySource]
	r.mu.Unlock()
	if p != nil && s.isUnder(s.info.PolicySource, p) {
		if err := r.door.NarrowPolicy(ctx, s.info.ID, p); err != nil {
			return err
		}
	}
	r.spread(ctx, s)
	return nil
}

// spread has a sandbox that runs trust the certificates of hosts that a policy which
// narrows it has rules for.
func (r *replacements) spread(ctx context.Context, s *Sandbox) {
	if state, _ := s.State(); state == Running {
		_ = r.door.TrustAnew(ctx, s.info.ID) // or it is told when it first connects to one
	}
}
