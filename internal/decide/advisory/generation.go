package advisory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
)

// nearVersion changes whenever other names become lookalikes with the same
// lists, so that nobody takes old answers for these.
const nearVersion = "near-1"

// mostRecent lookalikes are remembered.
const mostRecent = 8192

// generation is one state of all facts. It never changes, but for what it
// remembers of its own answers.
type generation struct {
	name     string
	malware  string // names the malware alone
	manifest manifest
	damage   error // then there are no facts
	tables   []*table
	popular  map[pkgref.Ecosystem]func() *popularity // made ready at the first question
	recent   *lru.Cache[pkgref.Ref, *policy.Lookalike]
}

// loadGeneration reads what the manifest of dir lists and checks every byte of
// it against its digest. It always returns a generation; a damaged one answers
// with its damage.
func loadGeneration(dir string) *generation {
	g := &generation{name: "damaged", popular: map[pkgref.Ecosystem]func() *popularity{}, recent: lru.New[pkgref.Ref, *policy.Lookalike](mostRecent)}
	m, err := readManifest(dir)
	if err != nil {
		g.damage = repairAll(err)
		return g
	}
	g.manifest = m
	all, bad, lists := sha256.New(), sha256.New(), map[pkgref.Ecosystem][][]string{}
	fmt.Fprintf(all, "%s %s\n", nearVersion, shippedDigest())
	for _, s := range m.Sources {
		if err := g.loadSource(dir, s, lists); err != nil {
			g.damage = errors.Join(g.damage, err)
			continue
		}
		fmt.Fprintf(all, "%s %s\n", s.Kind, s.SHA256)
		if s.Kind == KindMalware {
			fmt.Fprintln(bad, s.SHA256)
		}
	}
	if g.damage != nil {
		return g
	}
	for _, e := range pkgref.Ecosystems() {
		if len(lists[e]) == 0 {
			lists[e] = [][]string{shippedNames(e)}
		}
		names := interleave(lists[e])
		g.popular[e] = sync.OnceValue(func() *popularity { return newPopularity(e, names) })
	}
	g.name = hex.EncodeToString(all.Sum(nil))[:16]
	g.malware = hex.EncodeToString(bad.Sum(nil))[:16]
	return g
}

// loadSource reads one source.
func (g *generation) loadSource(dir string, s source, lists map[pkgref.Ecosystem][][]string) error {
	data, err := readFile(filepath.Join(dir, s.File), s.Bytes)
	if err != nil {
		return repairOne(err, s, "can't be read")
	}
	if digest(data) != s.SHA256 {
		return repairOne(nil, s, "is not what was imported")
	}
	if s.Kind == KindPopular {
		list, err := readNames(bytes.NewReader(data), "")
		if err != nil || list.badLines > 0 {
			return repairOne(err, s, "can't be read")
		}
		lists[list.ecosystem] = append(lists[list.ecosystem], list.names)
		return nil
	}
	t, err := openTable(data)
	if err != nil {
		return repairOne(err, s, "can't be read")
	}
	g.tables = append(g.tables, t)
	return nil
}

// The sentences of damage name their cause in the middle, so that what to do
// stands at the end.
func repairOne(cause error, s source, what string) error {
	if cause != nil {
		what += " (" + cause.Error() + ")"
	}
	from := s.Path
	if from == "" {
		from = "it" // it was uploaded
	}
	return fault.New(fault.ErrUnavailable, "%s: %q (%s) %s; import %s again, or run: cofferdam advisory remove %s",
		damaged, s.Label, s.File, what, from, s.Label)
}

func repairAll(cause error) error {
	return fault.New(fault.ErrUnavailable, "%s: %s; run: cofferdam advisory remove --all, and import everything again", damaged, cause)
}

const damaged = "the advisory database is damaged, so every package is refused"

// interleave joins lists: first the most popular of each, then the second, and
// so on.
func interleave(lists [][]string) []string {
	if len(lists) == 1 {
		return lists[0]
	}
	var names []string
	seen := map[string]bool{}
	for i := 0; ; i++ {
		left := false
		for _, list := range lists {
			if i >= len(list) {
				continue
			}
			left = true
			if name := list[i]; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		if !left {
			return names[:min(len(names), maxPopular)]
		}
	}
}

// factsOf answers about a package; the version is not looked at.
func (g *generation) factsOf(pkg pkgref.Ref) (Facts, error) {
	pkg.Version = ""
	malware, err := g.malwareOf(pkg)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Malware: malware}
	ready := g.popular[pkg.Ecosystem]
	if ready == nil {
		return f, nil
	}
	p := ready()
	if _, f.Popular = p.rank[pkg.Name]; !f.Popular {
		f.Lookalike = g.lookalike(p, pkg)
	}
	return f, nil
}

func (g *generation) lookalike(p *popularity, pkg pkgref.Ref) *policy.Lookalike {
	if l, known := g.recent.Get(pkg); known {
		return l
	}
	l := p.nearest(pkg.Name)
	g.recent.Put(pkg, l, 1)
	return l
}

// malwareOf is what is known against a package; no lookalike is looked for.
func (g *generation) malwareOf(pkg pkgref.Ref) ([]policy.Malware, error) {
	if g.damage != nil {
		return nil, g.damage
	}
	pkg.Version = ""
	var all []policy.Malware
	for _, t := range g.tables {
		found, err := t.malwareOf(pkg)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// vulnerabilitiesOf is what is known of a package's vulnerabilities, of all sources.
func (g *generation) vulnerabilitiesOf(pkg pkgref.Ref) (Vulnerabilities, error) {
	if g.damage != nil {
		return Vulnerabilities{}, g.damage
	}
	pkg.Version = ""
	var known Vulnerabilities
	for _, t := range g.tables {
		found, err := t.findPackage(pkg)
		if err != nil {
			return Vulnerabilities{}, err
		}
		known.Known = append(known.Known, found.vulnerabilities...)
	}
	for _, s := range g.manifest.Sources {
		if s.Vulnerable[pkg.Ecosystem] == 0 {
			continue
		}
		if !known.Assessed || s.Imported.Before(known.Imported) {
			known.Imported = s.Imported
		}
		known.Assessed = true
	}
	return known, nil
}
