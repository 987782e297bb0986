package planning

import (
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Placed is a release in the order of a plan's tree.
type Placed struct {
	*Weighed
	Depth int // 0: nothing in the plan requires it
}

// Tree puts the releases of a plan into the order of the tree: a release follows the
// first one that wanted it, one deeper.
func (p Plan) Tree() []Placed {
	t := &treeOrder{byRef: map[pkgref.Ref]*Weighed{}, children: map[pkgref.Ref][]pkgref.Ref{}, seen: map[pkgref.Ref]bool{}}
	for i := range p.Releases {
		w := &p.Releases[i]
		t.byRef[w.Package] = w
		for _, by := range w.WantedBy {
			if !slices.Contains(t.children[by.Parent], w.Package) {
				t.children[by.Parent] = append(t.children[by.Parent], w.Package)
			}
		}
	}
	refs := slices.SortedFunc(maps.Keys(t.byRef), pkgref.Ref.CompareSpelled)
	for _, ref := range refs {
		if len(t.byRef[ref].WantedBy) == 0 {
			t.addRelease(ref, 0)
		}
	}
	for _, ref := range refs { // what only requires each other
		t.addRelease(ref, 0)
	}
	return t.out
}

type treeOrder struct {
	byRef    map[pkgref.Ref]*Weighed
	children map[pkgref.Ref][]pkgref.Ref
	seen     map[pkgref.Ref]bool
	out      []Placed
}

// addRelease appends a release and what it requires. Requirements may go in circles.
// The depth of the tree is bounded by the number of its releases, which is.
func (t *treeOrder) addRelease(ref pkgref.Ref, depth int) {
	w := t.byRef[ref]
	if t.seen[ref] || w == nil {
		return
	}
	t.seen[ref] = true
	t.out = append(t.out, Placed{w, depth})
	for _, child := range slices.SortedFunc(slices.Values(t.children[ref]), pkgref.Ref.CompareSpelled) {
		t.addRelease(child, depth+1)
	}
}
