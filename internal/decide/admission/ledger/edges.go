package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// edgeSet holds what verified metadata of admitted releases requires. The
// slice of a package is replaced, never changed, so that whoever took it may
// read it without the lock.
type edgeSet struct {
	byPackage map[pkgref.Ref]Edges
	known     map[policy.Edge]bool // keys of a batch
}

// Edges are those to one package, sorted, and the name of that set: two runs with the
// same facts have the same epoch. List is never changed.
type Edges struct {
	List  []policy.Edge
	Epoch string
}

func newEdgeSet() edgeSet {
	return edgeSet{byPackage: map[pkgref.Ref]Edges{}, known: map[policy.Edge]bool{}}
}

func (s edgeSet) addBatch(b *edgeBatch) {
	maps.Copy(s.known, b.known)
	fresh := map[pkgref.Ref][]policy.Edge{}
	for _, e := range b.edges {
		p := pkgref.Ref{Ecosystem: e.Parent.Ecosystem, Name: e.Name}
		fresh[p] = append(fresh[p], e)
	}
	for p, more := range fresh {
		all := slices.Concat(s.byPackage[p].List, more)
		slices.SortFunc(all, compareEdges)
		s.byPackage[p] = Edges{List: all, Epoch: EpochOf(all)}
	}
}

func compareEdges(a, b policy.Edge) int {
	return cmp.Or(
		cmp.Compare(a.Parent.Name, b.Parent.Name), cmp.Compare(a.Parent.Version, b.Parent.Version),
		cmp.Compare(a.Specifier, b.Specifier), cmp.Compare(a.Through, b.Through), cmp.Compare(a.Unasked, b.Unasked), cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)),
	)
}

// EpochOf names a set of edges.
func EpochOf(edges []policy.Edge) string {
	h := sha256.New()
	for _, e := range edges {
		for _, field := range []string{e.Parent.Name, e.Parent.Version, e.Specifier, e.Through, e.Unasked, strconv.FormatBool(e.Optional), "\n"} {
			h.Write([]byte(field))
			h.Write([]byte{0})
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// EdgesTo are the edges to a project.
func (l *Ledger) EdgesTo(project pkgref.Ref) Edges {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.edges.byPackage[project.Project()]
}

// Edges yields all edges, each with where its parent stands. The ledger must not be asked
// meanwhile.
func (l *Ledger) Edges() iter.Seq2[policy.Edge, Standing] {
	return func(yield func(policy.Edge, Standing) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, to := range l.edges.byPackage {
			for _, e := range to.List {
				if !yield(e, l.releases.Of(e.Parent)) {
					return
				}
			}
		}
	}
}

// LeadsBelow tells whether there is an edge to a project whose name begins with a prefix.
func (l *Ledger) LeadsBelow(e pkgref.Ecosystem, prefix string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for project := range l.edges.byPackage {
		if project.Ecosystem == e && strings.HasPrefix(project.Name, prefix) {
			return true
		}
	}
	return false
}

// Declares tells whether a release that this run admitted, through an entry or through
// none, requires a project. A release that was only shown declares nothing: anybody can publish a
// requirement.
func (l *Ledger) Declares(p pkgref.Ref) bool {
	p = p.Project()
	l.mu.Lock()
	defer l.mu.Unlock()
	looked := map[pkgref.Ref]bool{}
	for _, e := range l.edges.byPackage[p].List {
		parent := e.Parent.Project()
		if looked[parent] || parent == p {
			continue
		}
		looked[parent] = true
		if l.admittedRequires(parent, p.Name) {
			return true
		}
	}
	return false
}

// admittedRequires looks through a project's releases; mu is held.
func (l *Ledger) admittedRequires(parent pkgref.Ref, name string) bool {
	r := l.required[parent]
	if r == nil {
		return false
	}
	for _, version := range slices.Backward(r.versions) { // pages often have the newest last
		parent.Version = version
		if l.releases.Of(parent).State == Admitted && r.requires(version, name) {
			return true
		}
	}
	return false
}
