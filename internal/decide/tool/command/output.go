package command

import (
	"errors"
	"sync"
)

// boundedOutput keeps what a program writes, up to a bound.
type boundedOutput struct {
	most int64
	over chan struct{} // closed when there is more

	mu   sync.Mutex // guards what follows
	kept []byte
	full bool
}

var errOver = errors.New("the program writes more than it may")

// Write implements io.Writer. Past the bound it fails, and the program's next write waits for
// ever, or until it is killed.
func (o *boundedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full {
		return 0, errOver
	}
	if int64(len(o.kept))+int64(len(p)) > o.most {
		o.full, o.kept = true, nil
		close(o.over)
		return 0, errOver
	}
	o.kept = append(o.kept, p...)
	return len(p), nil
}

func (o *boundedOutput) isOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full
}

func (o *boundedOutput) allBytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept
}

// tail keeps the end of what is written. Safe for concurrent use.
type tail struct {
	most int

	mu   sync.Mutex // guards kept
	kept []byte
}

// Write implements io.Writer; it takes everything.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > t.most {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-t.most:]...)
	}
	return len(p), nil
}

func (t *tail) textOf() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
