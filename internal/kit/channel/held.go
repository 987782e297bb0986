package channel

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The multiplexer keeps what a guest sends until somebody reads it, up to a window for each stream,
// and keeps the buffer when it was read. Hundreds of streams to somebody who reads slowly would take
// hundreds of MiB of the host. So a host's session counts its buffers. Past its limit it reads nothing
// from the guest for a moment, in which most readers catch up. If they do not, it gives up the streams
// that hold the most, and reads on: what a guest has on its streams never keeps the answers to control
// calls from the host for longer than that moment. Frames of the host are not held up at all.
const (
	// mostHeld is what one session's buffers may take: all streams that the keeper carries for a
	// sandbox, with full windows, as the agent sends.
	mostHeld = 72 << 20
	// sureHeld is what a session's buffers may take whatever others do.
	sureHeld = 4 << 20
	// allHeld is for the sessions of a Memory that take more than sureHeld, evenly.
	allHeld = 256 << 20
	// heldPatience is how long readers have to catch up.
	heldPatience = time.Second
	// pastHeld is how much a session may hold past its limit of what can't be given up. An honest guest
	// reads what it is sent, so that streams which were given up are emptied; one that does not is ended.
	pastHeld = 64 << 20
	// allPast is what the sessions of a Memory may hold past their limits, evenly.
	allPast = 128 << 20
	// smallBuffer is too little to be kept for the next frame.
	smallBuffer = 4 << 10
)

// sessionMemory is what the streams of one session have in the multiplexer's buffers.
type sessionMemory struct {
	memory   *Memory
	patience time.Duration
	ended    <-chan struct{} // closed when the session is over
	cut      func()          // ends the session
	holds    atomic.Int64    // total, for who has not mu
	shedding atomic.Bool     // shed goes on

	mu      sync.Mutex // guards what follows; never held over a call of the multiplexer
	total   int64      // bytes, of buffers
	heavy   bool       // counts in memory.heavy
	spent   bool       // over the limit, no stream is left to be given up, and none is being emptied
	before  int64      // total when streams were given up last
	gaveUp  time.Time  // when that was
	over    bool
	eased   chan struct{} // closed, and made anew, when total has fallen to the limit
	streams map[uint32]*holding
}

// holding is one stream's part. It goes when both ends have closed the stream and all is read.
type holding struct {
	raw          *yamux.Stream // nil until it is accepted
	buffer       growth
	arrived      uint64 // frames, so that one that comes as the buffer is given back is seen
	ours, theirs bool   // has closed
	giveUp       func() // nil: it can't be given up, or has been
}

func newSessionMemory(m *Memory, ended <-chan struct{}) *sessionMemory {
	return &sessionMemory{memory: m, patience: heldPatience, ended: ended, eased: make(chan struct{}), streams: map[uint32]*holding{}}
}

// begins notes that the guest opens a stream. One that is refused before it is accepted is never
// closed here, which an honest guest can't bring about; the error is for one that does it on purpose.
func (h *sessionMemory) begins(id uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= 2*MaxStreams {
		return &violation{"it goes on opening streams that nobody accepts"}
	}
	if h.streams[id] != nil { // what the first one holds would be taken for the second's
		return &violation{"it opens a stream with the id of one that is not read yet"}
	}
	h.streams[id] = &holding{}
	return nil
}

// starts notes that the host opens a stream, before the guest hears of it.
func (h *sessionMemory) starts(id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams[id] == nil {
		h.streams[id] = &holding{}
	}
}

// noteRefused notes that the multiplexer has refused a stream, of which it keeps nothing.
func (h *sessionMemory) noteRefused(id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.streams[id]; one != nil {
		h.charge(one, func() { one.buffer = growth{} })
		delete(h.streams, id)
	}
}

// opened notes the stream that has begun or started, once the host has it.
func (h *sessionMemory) opened(raw *yamux.Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.streams[raw.StreamID()]; one != nil && one.raw == nil {
		one.raw = raw
	}
}

// holdingOf is a stream's part; nil if it is forgotten, though its id be another's by now. Needs mu.
func (h *sessionMemory) holdingOf(raw *yamux.Stream) *holding {
	if one := h.streams[raw.StreamID()]; one != nil && one.raw == raw {
		return one
	}
	return nil
}

// onGiveUp has f called, once, if the stream is to be given up for what it holds.
func (h *sessionMemory) onGiveUp(raw *yamux.Stream, f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.holdingOf(raw); one != nil {
		one.giveUp = f
	}
}

// takeFrame takes a data frame's length, before the data comes. Of a stream that is not open the
// multiplexer keeps nothing.
func (h *sessionMemory) takeFrame(id, length uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.streams[id]; one != nil && length > 0 {
		one.arrived++
		h.charge(one, func() { one.buffer.addBytes(int64(length)) })
	}
}

// finished notes that the guest has closed a stream.
func (h *sessionMemory) finished(id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.streams[id]; one != nil {
		one.theirs = true
		h.dropStream(id, one)
	}
}

// closed notes that the host has.
func (h *sessionMemory) closed(raw *yamux.Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.holdingOf(raw); one != nil {
		one.ours = true
		h.dropStream(raw.StreamID(), one)
	}
}

// noteRead notes that n bytes were read, or with last that nothing more can be. A buffer that is empty
// is given back if it is worth it.
func (h *sessionMemory) noteRead(raw *yamux.Stream, n int, last bool) {
	h.mu.Lock()
	one := h.holdingOf(raw)
	if one == nil {
		h.mu.Unlock()
		return
	}
	one.buffer.takeBytes(int64(n))
	if last {
		h.charge(one, func() { one.buffer = growth{} })
		h.dropStream(raw.StreamID(), one)
	}
	giveBack := one.buffer.unread == 0 && one.buffer.size > 0 && (one.buffer.size <= smallBuffer || h.total > h.memory.sessionLimit()/4)
	arrived := one.arrived
	h.mu.Unlock()
	if giveBack {
		h.giveBack(raw, one, arrived)
	}
}

// giveBack lets an empty buffer go. One into which something has come meanwhile stays, or is counted
// until it is empty the next time.
func (h *sessionMemory) giveBack(raw *yamux.Stream, one *holding, arrived uint64) {
	raw.Shrink()
	h.mu.Lock()
	defer h.mu.Unlock()
	if one.arrived == arrived {
		h.charge(one, func() { one.buffer = growth{} })
	}
}

// charge changes a stream's buffer, and what follows from it. Needs mu.
func (h *sessionMemory) charge(one *holding, change func()) {
	before := one.buffer.size
	change()
	h.total += one.buffer.size - before
	h.holds.Store(h.total)
	if heavy := h.total > sureHeld && !h.over; heavy != h.heavy {
		h.heavy = heavy
		if heavy {
			h.memory.joinSession(h)
		} else {
			h.memory.leaveSession(h)
		}
	}
	if h.total <= h.memory.sessionLimit() {
		h.spent = false
		close(h.eased)
		h.eased = make(chan struct{})
	}
}

// dropStream forgets a stream that is over. Needs mu.
func (h *sessionMemory) dropStream(id uint32, one *holding) {
	if one.ours && one.theirs && one.buffer.unread == 0 {
		h.charge(one, func() { one.buffer = growth{} })
		delete(h.streams, id)
	}
}

// endSession notes that the session has ended: it no longer counts among those that share the memory.
func (h *sessionMemory) endSession() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.heavy {
		h.heavy = false
		h.memory.leaveSession(h)
	}
}

// isFull tells whether nothing more should be read now, and what tells that it may be.
func (h *sessionMemory) isFull() (eased <-chan struct{}, full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.eased, h.total > h.memory.sessionLimit() && !h.spent && !h.over
}

// awaitRoom returns when there is room for more, or nothing that could be given up for it. It is called
// between two frames, when the multiplexer holds none of its locks.
func (h *sessionMemory) awaitRoom() {
	if _, full := h.isFull(); !full {
		return
	}
	h.trimBuffers()
	h.easeOnce()
}

// shedExcess waits, as awaitRoom does, for a session whose part has become smaller, and of which nothing more may come.
func (h *sessionMemory) shedExcess() {
	for h.shedding.CompareAndSwap(false, true) {
		h.easeOnce()
		h.shedding.Store(false)
		if _, full := h.isFull(); !full { // nobody has made its part still smaller meanwhile
			break
		}
	}
	if h.judgeSession() != nil {
		h.cut()
	}
}

// easeOnce waits once until the session has no more than its part.
func (h *sessionMemory) easeOnce() {
	late := time.NewTimer(h.patience)
	defer late.Stop()
	for {
		eased, full := h.isFull()
		if !full {
			return
		}
		select {
		case <-eased:
		case <-h.ended:
			return
		case <-late.C:
			h.giveUp()
			late.Reset(h.patience)
		}
	}
}

// trimBuffers gives all empty buffers back.
func (h *sessionMemory) trimBuffers() {
	type empty struct {
		one     *holding
		arrived uint64
	}
	h.mu.Lock()
	var empties []empty
	for _, one := range h.streams {
		if one.raw != nil && one.buffer.unread == 0 && one.buffer.size > 0 {
			empties = append(empties, empty{one, one.arrived})
		}
	}
	h.mu.Unlock()
	for _, e := range empties {
		h.giveBack(e.one.raw, e.one, e.arrived)
	}
}

// giveUp gives streams up, those that hold the most first, until half of the limit is left. It does
// nothing if there is room by now, or those that it gave up last have not had their time to be emptied.
func (h *sessionMemory) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total <= h.memory.sessionLimit() || time.Since(h.gaveUp) < h.patience {
		return
	}
	h.gaveUp = time.Now()
	var some []*holding
	for _, one := range h.streams {
		if one.giveUp != nil && one.buffer.unread > 0 {
			some = append(some, one)
		}
	}
	slices.SortFunc(some, func(a, b *holding) int { return cmp.Compare(b.buffer.size, a.buffer.size) })
	left := h.total
	for _, one := range some {
		if left <= h.memory.sessionLimit()/2 {
			break
		}
		left -= one.buffer.size
		f := one.giveUp
		one.giveUp = nil
		safego.Go(f)
	}
	h.spent = len(some) == 0 && h.total >= h.before
	h.before = h.total
}

// judgeSession tells whether the session is to be ended for what it holds.
func (h *sessionMemory) judgeSession() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.spent || h.total <= h.memory.sessionLimit()+h.memory.pastLimit() {
		return nil
	}
	for _, one := range h.streams {
		if one.giveUp != nil && one.buffer.unread > 0 { // that has come since: it first
			h.spent = false
			return nil
		}
	}
	return &violation{"it sends on many streams, and reads nothing of what it is sent"}
}
