package guest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// maxEvents is how many changes wait for a host that does not read.
const maxEvents = 4096

// watch tells of changes in a directory until the host closes the stream, the
// directory is gone, or the agent ends.
func (c *fileCall) watch(ctx context.Context) error {
	var tree *watchTree
	var info *channel.FileInfo
	err := c.at(search{follow: true}, func(p *place) (err error) {
		if info, err = c.info(p); err != nil {
			return err
		}
		if info.Kind != channel.KindDir {
			return invalidFile("%.300q is not a directory, and only those can be watched", c.path)
		}
		tree, err = newWatchTree(c.agent.config.Root+p.real, c.Recursive)
		return err
	})
	if err != nil {
		return replyFile(c.stream, nil, explainFile(c.path, err))
	}
	defer tree.close()
	ctx, stop := heard(ctx, c.stream)
	defer stop()
	if err := replyFile(c.stream, info, nil); err != nil {
		return err
	}
	queue := newEventQueue()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer tree.close()
	reading.Go(func() {
		defer queue.end()
		tree.read(func(look func()) { _ = as(c.user, func() error { look(); return nil }) }, queue)
	})
	defer context.AfterFunc(ctx, func() {
		tree.close()
		queue.end()
	})()
	return queue.send(c.stream)
}

// eventQueue is what a watch has seen and the host has not been told. Past
// maxEvents it forgets what is new, and says so.
type eventQueue struct {
	mu      sync.Mutex // guards the rest
	change  *sync.Cond
	waiting []channel.FileEvent
	lost    bool
	ended   bool
}

func newEventQueue() *eventQueue {
	q := &eventQueue{}
	q.change = sync.NewCond(&q.mu)
	return q
}

// push adds changes, of which the host is told together; one that only repeats the
// last is left out.
func (q *eventQueue) push(events ...channel.FileEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, event := range events {
		n := len(q.waiting)
		switch {
		case n > 0 && q.waiting[n-1] == event:
		case n >= maxEvents:
			q.lost = true
		default:
			q.waiting = append(q.waiting, event)
		}
	}
	q.change.Signal()
}

// lose notes that the kernel could not keep all.
func (q *eventQueue) lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = true
	q.change.Signal()
}

func (q *eventQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.change.Signal()
}

// take waits for changes. False once there are none and none will come.
func (q *eventQueue) take() (events []channel.FileEvent, lost, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.lost && !q.ended {
		q.change.Wait()
	}
	events, lost = q.waiting, q.lost
	q.waiting, q.lost = nil, false
	return events, lost, len(events) > 0 || lost
}

// send tells the host until the end. That the stream breaks is its right.
func (q *eventQueue) send(to *channel.Conn) error {
	out := packer{stream: to, wrap: func(items []json.RawMessage) any { return map[string]any{"events": items} }}
	for {
		events, lost, ok := q.take()
		if !ok {
			return nil
		}
		for _, event := range events {
			if err := out.add(event); err != nil {
				return err
			}
		}
		if err := out.flush(); err != nil {
			return err
		}
		if lost {
			if err := to.WriteJSON(channel.FrameEvent, channel.FileEvents{Events: []channel.FileEvent{}, Lost: true}); err != nil {
				return err
			}
		}
	}
}

// openInotify makes the kernel's queue of changes, non-blocking, so that closing
// it ends a read.
func openInotify() (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if errors.Is(err, unix.EMFILE) {
		return nil, &fileError{"", "the sandbox is at its limit of watches; close another one first"}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}
