package audit

import "sync"

// markEvery is how many records lie between two places of a segment that are
// remembered: whoever reads on from a record passes over fewer than that.
const markEvery = 512

// marks remember where records begin in their segments, as far as these were
// read once. They are hints in memory; a segment's bytes never move.
type marks struct {
	mu sync.Mutex
	of map[uint64][]int64 // by the segment's first record: the offsets of every markEvery-th
}

// noteMark notes that a segment's record begins at an offset.
func (m *marks) noteMark(first, seq uint64, offset int64) {
	n := seq - first
	if n%markEvery != 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[uint64][]int64{}
	}
	if uint64(len(m.of[first])) == n/markEvery {
		m.of[first] = append(m.of[first], offset)
	}
}

// nearest returns the last known place at or before a segment's record: that of
// the segment's first record if none is nearer.
func (m *marks) nearest(first, seq uint64) (at uint64, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of[first]
	if len(known) == 0 {
		return first, 0
	}
	i := min((seq-first)/markEvery, uint64(len(known)-1))
	return first + i*markEvery, known[i]
}
