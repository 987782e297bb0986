package sandbox

import "context"

// Lives is lives, for tests outside of the package.
func (m *Manager) Lives(ctx context.Context, s *Sandbox) bool { return m.lives(ctx, s) }
