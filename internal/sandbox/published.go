package sandbox

// Publishes reports whether the policy lets clients connect to a port inside.
func (s *Sandbox) Publishes(port int) bool { return s.policy != nil && s.policy.Publishes(port) }
