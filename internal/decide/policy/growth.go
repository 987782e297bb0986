package policy

import "slices"

// growth is a document that gets entries, and what it says by now.
type growth struct {
	text    []byte
	policy  *Policy
	added   int
	roots   map[packageKey]bool // that got an entry, and whether it has what they require come with them
	leftOut []string
}

// takeWanted adds what lets in a package, unless something does.
func (g *growth) takeWanted(w Wanted) error {
	if w.Lines != "" {
		return g.takeLines(w)
	}
	s, standing := g.policy.suggestionFor(w)
	switch {
	case standing == standsAllowed || w.comesThrough(g.roots):
		return nil
	case standing == standsBeyond || g.added == maxSuggested:
		g.leaveOut(w)
		return nil
	}
	return g.addSuggestion(s)
}

// takeLines adds the entries of lines that are not there yet.
func (g *growth) takeLines(w Wanted) error {
	lines, ok := entriesOf(w.Lines)
	if !ok || g.added+len(lines) > maxSuggested || isBeyond(g.policy, w.Package) {
		g.leaveOut(w)
		return nil
	}
	for _, s := range lines {
		if err := g.takeLine(w, s); err != nil {
			return err
		}
	}
	return nil
}

// takeLine adds an entry, or to one with the same versions what it lacks. A document has no two entries with the same
// versions, so that one which differs in pre-releases is left as it is: to add to it would let in more than the lines.
func (g *growth) takeLine(w Wanted, s suggestion) error {
	key := packageKey{s.ecosystem, s.name}
	same := func(e listEntry) bool {
		return e.limitText == s.limit && e.versionText == s.version && slices.Equal(e.extras, s.extras)
	}
	at := slices.IndexFunc(g.policy.packages.allowed[key], same)
	switch {
	case at < 0:
		return g.addSuggestion(s)
	case g.policy.packages.allowed[key][at].prereleases != s.prereleases:
		g.leaveOut(w)
		return nil
	}
	for _, missing := range []struct {
		key    string
		wanted bool
		has    func(listEntry) bool
	}{
		{keyDependencies, s.withDependencies, func(e listEntry) bool { return e.withDependencies }},
		{keyScripts, s.installScripts, func(e listEntry) bool { return e.installScripts }},
	} {
		if e := g.policy.packages.allowed[key][at]; missing.wanted && !missing.has(e) {
			s.within, s.key = e.line, missing.key
			if err := g.addSuggestion(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *growth) addSuggestion(s suggestion) (err error) {
	if g.text, g.policy, err = addEntry(g.text, g.policy, s); err != nil {
		return err
	}
	key := packageKey{s.ecosystem, s.name}
	g.roots[key] = g.roots[key] || s.withDependencies
	g.added++
	return nil
}

func (g *growth) leaveOut(w Wanted) {
	g.leftOut = append(g.leftOut, plainASCII(w.Package.String(), 80))
}
