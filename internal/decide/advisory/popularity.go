package advisory

import (
	"math/bits"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// popularity is the popular names of one ecosystem, ready to be searched. It
// never changes.
type popularity struct {
	ecosystem pkgref.Ecosystem
	names     []string         // by rank
	rank      map[string]int32 // of a name
	lower     map[string]int32 // the best rank of names that are equal but for their case,
	squeezed  map[string]int32 // without separators,
	folded    map[string]int32 // with characters that look alike as one,
	sorted    map[string]int32 // with their words sorted,
	stems     map[string]int32 // and without an affix
	lengths   [][]lettered     // by length
	owners    map[string]bool  // scopes of node; host/owner of go
	bare      map[string][]int32
}

// lettered is a name's letters, to pass over most names without comparing.
type lettered struct {
	letters uint64
	rank    int32
}

func newPopularity(ecosystem pkgref.Ecosystem, names []string) *popularity {
	p := &popularity{
		ecosystem: ecosystem, names: names, rank: make(map[string]int32, len(names)),
		lower: map[string]int32{}, squeezed: map[string]int32{}, folded: map[string]int32{}, sorted: map[string]int32{}, stems: map[string]int32{},
		owners: map[string]bool{}, bare: map[string][]int32{},
	}
	for i, name := range names {
		p.rank[name] = int32(i)
	}
	for i, name := range names {
		rank := int32(i)
		if ecosystem.Traits().NamesArePaths {
			p.addModule(name, rank)
			continue
		}
		p.addName(name, rank)
	}
	return p
}

func (p *popularity) addName(name string, rank int32) {
	keepBestRank(p.lower, strings.ToLower(name), rank)
	keepBestRank(p.squeezed, squeeze(name), rank)
	keepBestRank(p.folded, foldLookalikes(name), rank)
	keepBestRank(p.sorted, sortedWords(name), rank)
	for _, stem := range nameStems(name) {
		keepBestRank(p.stems, stem, rank)
	}
	for len(p.lengths) <= len(name) {
		p.lengths = append(p.lengths, nil)
	}
	p.lengths[len(name)] = append(p.lengths[len(name)], lettered{letters(name), rank})
	if scope, bare, scoped := splitScope(name); scoped {
		p.owners[scope] = true
		p.bare[bare] = append(p.bare[bare], rank)
	}
}

// keepBestRank keeps the best rank of a form.
func keepBestRank(ranks map[string]int32, form string, rank int32) {
	if _, known := ranks[form]; !known && form != "" {
		ranks[form] = rank
	}
}

// nearest is the popular package that a name is near to; nil if there is none
// or the name is popular itself. It depends on the list and the name only.
func (p *popularity) nearest(name string) *policy.Lookalike {
	if _, popular := p.rank[name]; popular || len(p.names) == 0 {
		return nil
	}
	switch {
	case p.ecosystem.Traits().NamesArePaths:
		return p.nearestModule(name)
	case p.ownScope(name):
		return nil
	}
	for _, look := range []func(string) *policy.Lookalike{p.sameForm, p.oneLetter, p.compareScopes, p.sameWords, p.twoLetters, p.compareAffixes} {
		if found := look(name); found != nil {
			return found
		}
	}
	return nil
}

// ownScope reports a name in a scope that has popular packages: its owner needs
// nobody's mistakes.
func (p *popularity) ownScope(name string) bool {
	scope, _, scoped := splitScope(name)
	return scoped && p.owners[scope]
}

func splitScope(name string) (scope, bare string, scoped bool) {
	if !strings.HasPrefix(name, "@") {
		return "", name, false
	}
	scope, bare, scoped = strings.Cut(name[1:], "/")
	return scope, bare, scoped
}

func (p *popularity) sameForm(name string) *policy.Lookalike {
	if rank, ok := p.lower[strings.ToLower(name)]; ok {
		return lookalikeOf(p.names[rank], howCase)
	}
	if rank, ok := p.squeezed[squeeze(name)]; ok {
		if strings.ContainsAny(name+p.names[rank], "@") {
			return lookalikeOf(p.names[rank], howScope)
		}
		return lookalikeOf(p.names[rank], howSeparators)
	}
	if rank, ok := p.folded[foldLookalikes(name)]; ok && len(name) >= oneLetterFrom {
		return lookalikeOf(p.names[rank], howConfusable)
	}
	return nil
}

func (p *popularity) oneLetter(name string) *policy.Lookalike  { return p.differing(name, 1) }
func (p *popularity) twoLetters(name string) *policy.Lookalike { return p.differing(name, 2) }

// differing finds the most popular name that differs in n letters.
func (p *popularity) differing(name string, n int) *policy.Lookalike {
	if mostDifference(len(name)+n) < n {
		return nil
	}
	set, best := letters(name), int32(len(p.names))
	for length := max(len(name)-n, 0); length <= len(name)+n && length < len(p.lengths); length++ {
		for _, candidate := range p.lengths[length] {
			if candidate.rank < best && bits.OnesCount64(candidate.letters^set) <= 2*n && differing(name, p.names[candidate.rank]) == n {
				best = candidate.rank
			}
		}
	}
	if best == int32(len(p.names)) {
		return nil
	}
	return lookalikeOf(p.names[best], howDiffering(name, p.names[best], n))
}

func (p *popularity) sameWords(name string) *policy.Lookalike {
	if rank, ok := p.sorted[sortedWords(name)]; ok {
		return lookalikeOf(p.names[rank], howWords)
	}
	return nil
}

// compareAffixes compares without the affixes of either name.
func (p *popularity) compareAffixes(name string) *policy.Lookalike {
	best := int32(len(p.names))
	for _, stem := range nameStems(name) {
		for _, ranks := range []map[string]int32{p.rank, p.stems} {
			if rank, ok := ranks[stem]; ok {
				best = min(best, rank)
			}
		}
	}
	if rank, ok := p.stems[name]; ok {
		best = min(best, rank)
	}
	if best == int32(len(p.names)) {
		return nil
	}
	return lookalikeOf(p.names[best], howAffix)
}

// compareScopes compares the scopes of packages with the same name in them.
func (p *popularity) compareScopes(name string) *policy.Lookalike {
	scope, bare, scoped := splitScope(name)
	if !scoped {
		return nil
	}
	for _, rank := range p.bare[bare] {
		popular, _, _ := splitScope(p.names[rank])
		if nearWord(scope, popular) != "" {
			return lookalikeOf(p.names[rank], howScopeNear)
		}
	}
	return nil
}
