package keeper

import "slices"

// ringCost is the memory of a ring of so many bytes: beside its buffer its marks, and its changes of
// stream, of which there is room for half as many again. Those of a choppy one take more than it does.
func ringCost(size int64, choppy bool) int64 {
	if choppy {
		return size * 11 / 4
	}
	return size * 5 / 4
}

// costOf is ringCost for this one, which has more marks than these if little was written for long. Needs mu.
func (r *ring) costOf(size int64) int64 {
	return ringCost(size, r.choppy) + 2*markCost*max(int64(len(r.marks))-max(size, firstRing)/passageCost, 0)
}

// sizeWithin is the size of which the ring takes at most so much memory, with few marks. Needs mu.
func (r *ring) sizeWithin(memory int64) int64 {
	return memory * plainCost / ringCost(plainCost, r.choppy)
}

// charge has the ring take so much of its sandbox's share, which is what it has and more; false: there
// is not so much. Needs mu.
func (r *ring) charge(cost int64) bool {
	if !r.share.takeBytes(cost - r.taken) {
		return false
	}
	if r.taken == 0 && cost > 0 {
		r.share.addRing(r)
	}
	r.taken = cost
	return true
}

// refund gives back what the ring has taken beyond what it takes as it is. Needs mu.
func (r *ring) refund() {
	size := int64(len(r.buf))
	// A ring that has ended has no more buffer than bytes, and the changes of stream that came in these.
	cost := max(r.costOf(size), size+int64(len(r.segments))*segmentSize+int64(len(r.marks))*markCost)
	if r.retired && len(r.cursors) == 0 {
		cost = 0
	}
	if cost >= r.taken {
		return
	}
	r.share.giveBytes(r.taken - cost)
	if r.taken = cost; cost == 0 {
		r.share.unknow(r)
	}
}

// tidyMarks gives back what the changes of stream and the marks have too much. Needs mu.
func (r *ring) tidyMarks() {
	r.segments, r.marks = slices.Clone(r.segments), slices.Clone(r.marks)
	r.choppy = r.choppy && int64(len(r.segments)) > int64(len(r.buf))/plainCost
}

// shrink drops the oldest bytes until the ring takes at most so much memory, or is as small as rings
// begin, with as many changes of stream and marks as one of that size remembers. Readers that have not
// read them meet a gap.
func (r *ring) shrink(memory int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken <= memory {
		return
	}
	size := min(max(r.sizeWithin(memory), firstRing), int64(len(r.buf)))
	remembered := max(size, firstRing)
	r.dropBefore(r.end - size)
	if more := int64(len(r.segments)) - remembered/r.changeCost(); more > 0 {
		r.dropBefore(r.segments[more].start)
	}
	if more := int64(len(r.marks)) - remembered/passageCost; more > 0 {
		r.marks = r.marks[more:]
	}
	if size < int64(len(r.buf)) {
		r.resize(size)
		r.limit = size
	}
	r.tidyMarks()
	r.refund()
	r.changed.Broadcast()
}

// retire has the ring give its memory back as soon as nobody reads it any more: its command is
// forgotten.
func (r *ring) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = true
	r.refund()
}

// weight is what the output takes of what is kept of ended commands: its bytes, and what changes of stream
// and marks take beyond a quarter of these.
func (r *ring) weight() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := int64(len(r.buf))
	return size + max(int64(len(r.segments))*segmentSize+int64(len(r.marks))*markCost-size/4, 0)
}
