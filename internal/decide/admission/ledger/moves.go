package ledger

import (
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Move moves a release that was found there, and follows what that opens or closes. A
// project without a version is only found: its release is asked about next.
func (l *Ledger) Move(ref pkgref.Ref, from Origin, e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.origins[ref.Project()] = from
	if ref.Version == "" {
		return nil
	}
	return l.moveRelease(ref, e)
}

// moveRelease moves a release. Its requirements are followed once it is admitted through an
// entry; once it is not any more, all that was admitted for being required has to be
// reached anew. mu is held.
func (l *Ledger) moveRelease(ref pkgref.Ref, e Event) error {
	before, after := l.releases.Move(ref, e)
	if r := l.required[ref.Project()]; r == nil || !r.met[ref.Version] {
		return nil // nothing rests on it
	}
	switch {
	case before.Admits() != "" && after.Admits() == "":
		return l.respread()
	case before.Admits() == "" && after.Admits() != "":
		return l.spread(ref.Project())
	}
	return nil
}

// ShowPage takes the page that a project is shown by, in place of an earlier one. few
// tells that nothing is refused for want of it but what few requirements would let in.
// wantEdges: what the releases on it require is not known yet.
func (l *Ledger) ShowPage(project pkgref.Ref, from Origin, page *Page, few bool) (wantEdges bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if page.Shown() == 0 && !l.releases.Knows(project) {
		return false, nil // nothing was shown, now or before
	}
	l.origins[project] = from
	withdrawn, ok := l.releases.SetPage(project, page)
	if !ok && few {
		return false, nil
	}
	if !ok {
		return false, l.tooMuch()
	}
	if withdrawn {
		if err := l.respread(); err != nil {
			return false, err
		}
	}
	if r := l.required[project]; r == nil || r.epoch != page.Epoch() {
		return page.Shown() > 0, nil
	}
	return false, l.spread(project)
}

// Anew makes all edges again, under rules that have changed. If it fails there are fewer
// edges than there could be.
func (l *Ledger) Anew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.respread()
}

// respread makes all edges anew. It is rare, and takes as long as all requirements
// did: a release was let in and then was not. If it fails there are fewer edges than
// there could be, and never more. mu is held.
func (l *Ledger) respread() error {
	l.releases.Loosen()
	l.edges, l.extras = newEdgeSet(), extras{}
	for _, r := range l.required {
		r.made = map[string]string{}
	}
	for _, project := range slices.SortedFunc(maps.Keys(l.required), pkgref.Ref.CompareSpelled) {
		if err := l.spread(project); err != nil {
			return err
		}
	}
	return nil
}
