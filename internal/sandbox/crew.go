package sandbox

import (
	"context"
	"math"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/turns"
)

// crew does things in the background, a few at one time, and no owner's many before
// another's few.
type crew struct {
	start func(work func()) // starts a goroutine
	turns *turns.Table
}

func newCrew(start func(work func()), most int) *crew {
	return &crew{start: start, turns: turns.New(most, math.MaxInt)}
}

// do returns at once.
func (c *crew) do(owner string, thing func()) {
	c.start(func() {
		leave, _, err := c.turns.Take(context.Background(), owner) // lines are as long as they are, and nothing ends a wait
		if err == nil {
			defer leave()
			thing()
		}
	})
}

// inParallel does a thing with each, so many at one time, and returns when all is
// done.
func inParallel[T any](most int, all []T, do func(T)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, most)
	for _, one := range all {
		slots <- struct{}{}
		errand.In(&group, func() {
			defer func() { <-slots }()
			do(one)
		})
	}
	group.Wait()
}
