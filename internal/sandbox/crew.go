package sandbox

import "sync"

// crew does things in the background, a few at one time, in the order in which they
// came.
type crew struct {
	start func(work func()) // starts a goroutine
	most  int

	mu      sync.Mutex // guards what follows
	waiting []func()
	working int
}

// do returns at once.
func (c *crew) do(thing func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, thing)
	if c.working < c.most {
		c.working++
		c.start(c.work)
	}
}

func (c *crew) work() {
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 {
			c.working--
			c.mu.Unlock()
			return
		}
		thing := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.mu.Unlock()
		thing()
	}
}

// inParallel does a thing with each, so many at one time, and returns when all is
// done.
func inParallel[T any](most int, all []T, do func(T)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, most)
	for _, one := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(one)
		})
	}
	group.Wait()
}
