package policy

import (
	"slices"
)

// JudgesCommands reports whether the document has anything to say about
// commands, code and tools; if not, DecideCommand allows them all.
func (p *Policy) JudgesCommands() bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.commands.judges || l.toolsGiven })
}

// AsksHosts reports whether a person may be asked about names that no list has.
func (p *Policy) AsksHosts() bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.unlisted == Hold })
}
