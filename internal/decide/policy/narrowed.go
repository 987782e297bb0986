package policy

import "slices"

// maxNarrowed bounds how many policies narrow one.
const maxNarrowed = 16

// NarrowedBy is p as long as by agrees: the stricter of both decides about
// packages, names and commands. In all else it is p, and has p's digest. ok is false if
// too many narrow p already.
func (p *Policy) NarrowedBy(by *Policy) (narrowed *Policy, ok bool) {
	same := func(l *Policy) bool { return l.digest == by.digest }
	if slices.ContainsFunc(p.layers(), same) {
		return p, true
	}
	if len(p.narrowed) >= maxNarrowed {
		return p, false
	}
	n := *p
	n.narrowed = append(slices.Clip(p.narrowed), by.layers()...)
	return &n, true
}

// Narrowings are the digests of the policies that narrow p, in their order.
func (p *Policy) Narrowings() []string {
	var digests []string
	for _, by := range p.narrowed {
		digests = append(digests, by.digest)
	}
	return digests
}

// layers are p and what narrows it.
func (p *Policy) layers() []*Policy { return append([]*Policy{p}, p.narrowed...) }

// Layers are p itself and the policies that narrow it, each alone.
func (p *Policy) Layers() []*Policy {
	if len(p.narrowed) == 0 {
		return []*Policy{p}
	}
	alone := *p
	alone.narrowed = nil
	return append([]*Policy{&alone}, p.narrowed...)
}

// strictness orders decisions.
func (d Decision) strictness() int {
	switch {
	case d.Admitted() && d.Would == "":
		return 0
	case d.Admitted() && d.Would == Hold:
		return 1
	case d.Admitted():
		return 2
	case d.Allowed():
		return 3
	case d.Effect == Hold:
		return 4
	}
	return 5
}

// theStricter is the one of two decisions that lets less through, the first if they
// are equal. A release that both admit is admitted through an entry of either.
func theStricter(d, by Decision) Decision {
	if by.strictness() > d.strictness() {
		return by
	}
	if d.Through == "" && d.Admitted() {
		d.Through = by.Through
	}
	return d
}

// underNarrowing is the strictest of a decision and those of the policies that narrow.
func (j *Judge) underNarrowing(d Decision, ask func(*Judge) Decision) Decision {
	for _, by := range j.narrowed {
		d = theStricter(d, ask(by))
	}
	return d
}
