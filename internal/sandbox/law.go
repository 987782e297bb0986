package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Applied is what became of the live sandboxes when a policy was put.
type Applied struct {
	// Live are those that began under another document of the same source; they keep
	// that for ever.
	Live int
	// Narrowed are those of them that are judged by the new one, too, from now on.
	Narrowed int
}

// PolicyPut tells that the document of a source was replaced. With narrow the live
// sandboxes that began under another document of it, those that are being made, and
// their copies are narrowed by the new one: what either refuses is refused. It can't
// be taken back. After an error some of them may be narrowed.
func (m *Manager) PolicyPut(ctx context.Context, p *policy.Policy, source string, text []byte, narrow bool) (Applied, error) {
	var a Applied
	if narrow {
		if err := m.keepText(p.Digest(), text); err != nil {
			return a, err
		}
	}
	m.mu.Lock()
	if narrow {
		if m.laws == nil {
			m.laws = map[string]*policy.Policy{}
		}
		m.laws[source] = p
	} else {
		delete(m.laws, source) // those that are being made may have the new one, which is no law
	}
	all := slices.Collect(maps.Values(m.sandboxes))
	m.mu.Unlock()
	var errs []error
	for _, s := range all {
		if !s.under(source, p) {
			continue
		}
		a.Live++
		if !narrow {
			continue
		}
		if err := m.cfg.Door.NarrowPolicy(ctx, s.info.ID, p); err != nil {
			if state, _ := s.State(); state != Destroying && state != Destroyed {
				errs = append(errs, err)
			}
			continue
		}
		a.Narrowed++
	}
	return a, errors.Join(errs...)
}

// under tells whether a sandbox that lives began under another document of source.
func (s *Sandbox) under(source string, p *policy.Policy) bool {
	state, _ := s.State()
	gone := state == Destroying || state == Destroyed || state == Failed
	return !gone && source != "" && s.info.PolicySource == source && s.info.PolicyDigest != p.Digest()
}

// obey narrows a sandbox that was being made under a document which was replaced
// meanwhile, or is a copy of one that was made before that.
func (m *Manager) obey(ctx context.Context, s *Sandbox) error {
	m.mu.Lock()
	law := m.laws[s.info.PolicySource]
	m.mu.Unlock()
	if law == nil || !s.under(s.info.PolicySource, law) {
		return nil
	}
	return m.cfg.Door.NarrowPolicy(ctx, s.info.ID, law)
}
