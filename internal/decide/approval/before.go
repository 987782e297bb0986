package approval

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// ApprovedBefore are the requests about other releases of a package's project that a person approved here, whether
// the answers hold or not, the newest first, at most 100.
func ApprovedBefore(ctx context.Context, q *Queue, release pkgref.Ref) ([]Request, error) {
	if err := q.checkCurrent(ctx); err != nil {
		return nil, err
	}
	entries, err := approvedOf(ctx, q.cfg.Store, release)
	var all []Request
	for _, e := range entries {
		if e.Package != release {
			all = append(all, e.asOf(q.now()))
		}
	}
	return all, err
}

// approvedOf are the entries about a package's project that a person approved, the newest first.
func approvedOf(ctx context.Context, store Store, of pkgref.Ref) ([]Entry, error) {
	earlier, err := store.List(ctx, Filter{
		States: []State{Approved, Expired}, Ecosystem: of.Ecosystem, Package: of.Name, Limit: lookBack,
	})
	return slices.DeleteFunc(earlier, func(e Entry) bool {
		return e.Answer == nil || e.Answer.State != Approved || e.IsTree()
	}), err
}
