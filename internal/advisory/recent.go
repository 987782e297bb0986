package advisory

import (
	"container/list"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// recent remembers the lookalikes of the names that were asked for last.
type recent struct {
	most int

	mu    sync.Mutex // guards what follows
	order *list.List // of *recentName, last asked first
	names map[pkgref.Ref]*list.Element
}

type recentName struct {
	pkg       pkgref.Ref
	lookalike *policy.Lookalike
}

func newRecent(most int) *recent {
	return &recent{most: most, order: list.New(), names: map[pkgref.Ref]*list.Element{}}
}

func (r *recent) get(pkg pkgref.Ref) (lookalike *policy.Lookalike, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.names[pkg]
	if !known {
		return nil, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*recentName).lookalike, true //nolint:forcetypeassert // the list has nothing else
}

func (r *recent) put(pkg pkgref.Ref, lookalike *policy.Lookalike) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.names[pkg]; known {
		return
	}
	r.names[pkg] = r.order.PushFront(&recentName{pkg, lookalike})
	if r.order.Len() > r.most {
		oldest := r.order.Back()
		delete(r.names, oldest.Value.(*recentName).pkg) //nolint:forcetypeassert // as above
		r.order.Remove(oldest)
	}
}
