package e2b

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Watchers that clients poll. Bounds of one sandbox's.
const (
	maxWatchers      = 32
	maxWatcherEvents = 10_000           // kept for the next poll
	maxWatcherBytes  = 1 << 20          // kept for the next poll
	maxWatchedBytes  = 4 << 20          // kept for the next polls of all watchers of one sandbox
	watcherLife      = 10 * time.Minute // without a poll
	// watcherTimeout is how long a poll waits for the first change: a client that has just
	// written asks at once, and what it wrote is on its way.
	watcherTimeout = 50 * time.Millisecond
)

// watchers are those of all sandboxes, by their ids, which nobody can guess.
type watchers struct {
	mu  sync.Mutex // guards all
	all map[string]*watcher
}

// watcher keeps what changed until somebody asks. It ends by itself when nobody
// does, and with its sandbox.
type watcher struct {
	sandbox string
	room    context.Context //nolint:containedctx // in which it takes room for what it keeps
	stop    context.CancelFunc
	expiry  *time.Timer
	unread  chan struct{} // has one element when there is something that nobody asked for yet
	// Guarded by watchers.mu.
	events []watchEvent
	bytes  int // that they take, about
	lost   bool
	ended  error // why nothing more comes
}

type watcherRequest struct {
	WatcherID string `json:"watcherId"`
}

// createWatcher begins to watch for polls.
func (d *Data) createWatcher(w http.ResponseWriter, c *call) error {
	var req watchRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	room, leave := d.cfg.Room.Enter(ctx, roomOf(c.box)) // for as long as it is there, which is longer than this request
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	id := hex.EncodeToString(random[:])
	kept := &watcher{sandbox: c.id, room: room, unread: make(chan struct{}, 1), stop: func() {
		leave()
		cancel()
	}}
	kept.expiry = safego.After(watcherLife, func() { d.watchers.removeWatcher(id) })
	if !d.watchers.addWatcher(id, kept) { // before it is opened: that takes as long as the guest likes
		kept.expiry.Stop()
		kept.stop()
		return refuseWith(codeExhausted, "the sandbox has %d watchers already: remove one", maxWatchers)
	}
	watching, err := d.openWatch(ctx, c, req)
	if err != nil {
		d.watchers.removeWatcher(id)
		return err
	}
	safego.When(ctx, func() { _ = watching.conn.Close() })
	safego.Go(func() { d.watchers.collect(kept, watching) })
	safego.Go(func() {
		select {
		case <-c.box.Gone():
			d.watchers.removeWatcher(id)
		case <-ctx.Done():
		}
	})
	return writeUnary(w, c, watcherRequest{WatcherID: id})
}

// collect keeps changes until the stream ends.
func (ws *watchers) collect(kept *watcher, from *watch) {
	for {
		kind, payload, err := from.conn.ReadFrame()
		var changes channel.FileEvents
		if err != nil {
			err = channel.BrokenOff(err)
		} else {
			changes, err = changesOf(kind, payload)
		}
		ws.keepAll(kept, from.events(changes.Events))
		ws.noteKept(kept, changes.Lost, err)
		if err != nil {
			return
		}
	}
}

// watchedAtOnce is how many bytes of events are in memory before it is asked whether they may be kept.
const watchedAtOnce = 32 << 10

// keepAll keeps events; once one is lost, the guest is asked about no more.
func (ws *watchers) keepAll(kept *watcher, events iter.Seq[watchEvent]) {
	var some []watchEvent
	size := 0
	for e := range events {
		some = append(some, e)
		if size += backend.SizeOf(e); size < watchedAtOnce {
			continue
		}
		if !ws.keepEvents(kept, some) {
			return
		}
		some, size = nil, 0
	}
	ws.keepEvents(kept, some)
}

// keepEvents adds events to a watcher's, if its sandbox's may keep so much; false: they are lost, with those before.
func (ws *watchers) keepEvents(kept *watcher, events []watchEvent) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	size := sizeOf(events)
	switch {
	case kept.lost:
		return false
	case len(kept.events)+len(events) > maxWatcherEvents, kept.bytes+size > maxWatcherBytes, ws.heldBy(kept.sandbox)+size > maxWatchedBytes, backend.Take(kept.room, size) != nil:
		kept.loseEvents()
		return false
	}
	kept.events = append(kept.events, events...)
	kept.bytes += size
	return true
}

func sizeOf(events []watchEvent) int {
	n := 0
	for _, e := range events {
		n += backend.SizeOf(e)
	}
	return n
}

// noteKept has a watcher's client hear of what was kept, that something was lost, and why nothing more comes.
func (ws *watchers) noteKept(kept *watcher, lost bool, ended error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	kept.ended = ended
	if lost {
		kept.loseEvents()
	}
	select {
	case kept.unread <- struct{}{}:
	default:
	}
}

// noteLost tells a watcher's next poll that changes did not reach its client.
func (ws *watchers) noteLost(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if kept := ws.all[id]; kept != nil {
		kept.loseEvents()
	}
}

// heldBy is what a sandbox's watchers keep. It needs mu.
func (ws *watchers) heldBy(sandbox string) int {
	n := 0
	for _, kept := range ws.all {
		if kept.sandbox == sandbox {
			n += kept.bytes
		}
	}
	return n
}

// loseEvents lets go of what it keeps, and has the next poll hear of that. It needs watchers.mu.
func (w *watcher) loseEvents() {
	w.lost = true
	w.forgetEvents()
}

// forgetEvents lets go of what it keeps. It needs watchers.mu.
func (w *watcher) forgetEvents() {
	w.events, w.bytes = nil, 0
	backend.Release(w.room)
}

// watcherEvents answers a poll with what changed since the last one. Changes that
// could not be kept are told once, as data_loss.
func (d *Data) watcherEvents(w http.ResponseWriter, c *call) error {
	var req watcherRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	events, err := d.watchers.pollEvents(c.id, req.WatcherID)
	if err == nil && len(events) == 0 {
		d.watchers.awaitEvents(c.Context(), c.id, req.WatcherID)
		events, err = d.watchers.pollEvents(c.id, req.WatcherID)
	}
	if err != nil {
		return err
	}
	answer := struct {
		Events []watchEvent `json:"events"`
	}{Events: events}
	err = writeUnary(w, c, answer)
	if err != nil { // they are not kept any more
		d.watchers.noteLost(req.WatcherID)
	}
	return err
}

// awaitEvents returns when a watcher has something to tell, or soon.
func (ws *watchers) awaitEvents(ctx context.Context, sandbox, id string) {
	ws.mu.Lock()
	kept := ws.all[id]
	ws.mu.Unlock()
	if kept == nil || kept.sandbox != sandbox {
		return
	}
	timer := time.NewTimer(watcherTimeout)
	defer timer.Stop()
	select {
	case <-kept.unread:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (ws *watchers) pollEvents(sandbox, id string) ([]watchEvent, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	kept := ws.all[id]
	if kept == nil || kept.sandbox != sandbox {
		return nil, refuseWith(codeNotFound, "there is no watcher %q; one that is not asked for %s ends", text.Shorten(id, 40), watcherLife)
	}
	kept.expiry.Reset(watcherLife)
	events := kept.events
	kept.forgetEvents() // the answer is no more than one watcher may keep
	select {
	case <-kept.unread:
	default:
	}
	switch {
	case kept.lost:
		kept.lost = false
		return nil, errLost
	case len(events) == 0 && kept.ended != nil:
		return nil, kept.ended
	case events == nil:
		events = []watchEvent{}
	}
	return events, nil
}

// removeWatcher ends one; one that is not there has ended.
func (d *Data) removeWatcher(w http.ResponseWriter, c *call) error {
	var req watcherRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if d.watchers.hasWatcher(c.id, req.WatcherID) {
		d.watchers.removeWatcher(req.WatcherID)
	}
	return writeUnary(w, c, struct{}{})
}

// addWatcher takes a watcher in; false: its sandbox has as many as it may.
func (ws *watchers) addWatcher(id string, kept *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.countWatchers(kept.sandbox) >= maxWatchers {
		return false
	}
	if ws.all == nil {
		ws.all = map[string]*watcher{}
	}
	ws.all[id] = kept
	return true
}

func (ws *watchers) hasWatcher(sandbox, id string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	kept := ws.all[id]
	return kept != nil && kept.sandbox == sandbox
}

func (ws *watchers) removeWatcher(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if kept := ws.all[id]; kept != nil {
		kept.expiry.Stop()
		kept.stop()
		delete(ws.all, id)
	}
}

// countWatchers needs mu.
func (ws *watchers) countWatchers(sandbox string) int {
	n := 0
	for _, kept := range ws.all {
		if kept.sandbox == sandbox {
			n++
		}
	}
	return n
}
