package guest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// maxEvents is how many changes wait for a host that does not read.
const maxEvents = 4096

// watchDir tells of changes in a directory until the host closes the stream, the
// directory is gone, or the agent ends.
func (c *fileCall) watchDir(ctx context.Context) error {
	var tree *watchTree
	var info *channel.FileInfo
	err := c.doAt(search{follow: true}, func(p *filePlace) (err error) {
		if info, err = c.infoOf(p); err != nil {
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
	defer tree.closeTree()
	ctx, stop := untilHostCloses(ctx, c.stream)
	defer stop()
	if err := replyFile(c.stream, info, nil); err != nil {
		return err
	}
	queue := newEventQueue()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer tree.closeTree()
	reading.Go(func() {
		defer queue.endQueue()
		tree.readEvents(func(look func()) { _ = actAs(c.user, func() error { look(); return nil }) }, queue)
	})
	defer context.AfterFunc(ctx, func() {
		tree.closeTree()
		queue.endQueue()
	})()
	return queue.sendEvents(c.stream)
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

// pushEvents adds changes, of which the host is told together; one that only repeats the
// last is left out.
func (q *eventQueue) pushEvents(events ...channel.FileEvent) {
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

// noteLoss notes that the kernel could not keep all.
func (q *eventQueue) noteLoss() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = true
	q.change.Signal()
}

func (q *eventQueue) endQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.change.Signal()
}

// takeEvents waits for changes. False once there are none and none will come.
func (q *eventQueue) takeEvents() (events []channel.FileEvent, lost, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.lost && !q.ended {
		q.change.Wait()
	}
	events, lost = q.waiting, q.lost
	q.waiting, q.lost = nil, false
	return events, lost, len(events) > 0 || lost
}

// sendEvents tells the host until the end. That the stream breaks is its right.
func (q *eventQueue) sendEvents(to *channel.Conn) error {
	out := packer{stream: to, wrap: func(items []json.RawMessage) any { return map[string]any{"events": items} }}
	for {
		events, lost, ok := q.takeEvents()
		if !ok {
			return nil
		}
		for _, event := range events {
			if err := out.addItem(event); err != nil {
				return err
			}
		}
		if err := out.flushItems(); err != nil {
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
