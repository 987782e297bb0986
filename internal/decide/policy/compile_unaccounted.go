package policy

import "github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"

// Unaccounted is what follows when a package is found on a sandbox's disk that
// was never served to it.
type Unaccounted string

// The effects that may follow. It is always on record.
const (
	UnaccountedRecord Unaccounted = "record" // nothing more
	UnaccountedAlarm  Unaccounted = "alarm"  // an alarm
	UnaccountedEnd    Unaccounted = "end"    // an alarm, and the sandbox's end
)

// Unaccounted is what the document asks for; an alarm if it does not say.
func (p *Policy) Unaccounted() Unaccounted {
	if p.packages.unaccounted == "" {
		return UnaccountedAlarm
	}
	return p.packages.unaccounted
}

// Lists tells whether the document's lists name a package: whoever brings
// something of that name means that package.
func (p *Policy) Lists(pkg pkgref.Ref) bool {
	key := packageKey{pkg.Ecosystem, pkg.Name}
	return len(p.packages.allowed[key]) > 0 || len(p.packages.blocked[key]) > 0
}

func (c *compiler) unaccounted(v value) {
	s, ok := c.readWord(v, string(UnaccountedRecord), string(UnaccountedAlarm), string(UnaccountedEnd))
	if !ok {
		return
	}
	c.policy.packages.unaccounted = Unaccounted(s)
	switch Unaccounted(s) {
	case UnaccountedRecord:
		c.explainEnforced(v, "a package that is found on the disk and was never served is on record, and no more")
	case UnaccountedAlarm:
		c.explainEnforced(v, "a package that is found on the disk and was never served is an alarm")
	case UnaccountedEnd:
		c.explainEnforced(v, "a package that is found on the disk and was never served is an alarm, and ends the sandbox when the command has ended")
	}
}
