package docker

import (
	"runtime"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// threads are those that nothing else in the process uses: what is done to one, such as to
// enter a namespace, stays with it. None of them ever ends, because the kernel tells a
// process that asked for it of the end of the thread that started it, which may be any.
type threads struct {
	mu   sync.Mutex // guards idle
	idle []chan func()
}

// aside are the process's.
var aside threads //nolint:gochecknoglobals // a thread is the process's, whatever engine uses it

// doOnThread runs f on one, and returns when it has.
func (t *threads) doOnThread(f func() error) error {
	work := t.takeThread()
	done := make(chan error, 1)
	work <- func() { done <- safego.Try(f) }
	err := <-done
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, work)
	return err
}

func (t *threads) takeThread() chan func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle); n > 0 {
		work := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return work
	}
	work := make(chan func())
	safego.Go(func() {
		runtime.LockOSThread() // never unlocked, and never ended
		for f := range work {
			f()
		}
	})
	return work
}
