package policy

// Planning is the policy by which a plan's resolver is shown releases: what is
// denied only because no list names it waits for a person instead, so that it
// is looked at as any other is, and shown. It has the digest of p, and admits
// nothing that p does not.
func (p *Policy) Planning() *Policy {
	if len(p.narrowed) == 0 && showsAll(p) {
		return p
	}
	planning := *p
	planning.narrowed = nil
	for _, by := range p.narrowed {
		planning.narrowed = append(planning.narrowed, by.Planning())
	}
	if showsAll(p) {
		return &planning
	}
	planning.packages.byDefault, planning.packages.planning = Hold, true
	return &planning
}

// showsAll tells that no name is denied for being on no list.
func showsAll(p *Policy) bool {
	return p.packages.byDefault == Allow || p.packages.byDefault == Hold || p.observes
}
