package gateway

import (
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// together does something with each of a list, a few at a time, and returns once all
// of it is done.
func together[T any](list []T, do func(T)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, stepWidth)
	for _, item := range list {
		turns <- struct{}{}
		errand.In(&all, func() {
			defer func() { <-turns }()
			do(item)
		})
	}
	all.Wait()
}
