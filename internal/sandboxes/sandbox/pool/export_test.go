package pool

// Has reports whether an id is a member's that waits.
func (p *Pool) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, members := range p.ready {
		for _, m := range members {
			if m.ID == id {
				return true
			}
		}
	}
	return false
}
