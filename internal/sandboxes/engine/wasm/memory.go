package wasm

import (
	"sync"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is one machine's linear memory: addresses for the most that any call may have,
// and pages as they are touched. It goes back to the host when the machine is closed.
type memory struct {
	mu       sync.Mutex
	reserved []byte
	size     uint64 // bytes in use
	limit    uint64 // that this call may have
}

var _ experimental.LinearMemory = (*memory)(nil)

// reserve takes addresses, and no memory yet.
func reserve() (*memory, error) {
	all, err := unix.Mmap(-1, 0, mostMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(all, unix.MADV_NOHUGEPAGE) // it only costs memory without
	return &memory{reserved: all, limit: mostMemory}, nil
}

// Reallocate implements experimental.LinearMemory; nil: the call may not have as much.
func (m *memory) Reallocate(size uint64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reserved == nil || size > m.limit || size > uint64(len(m.reserved)) {
		return nil
	}
	m.size = max(m.size, size)
	return m.reserved[:size:size]
}

// setBound sets what the call may have from now on.
func (m *memory) setBound(limit uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = limit
}

// usedMost is the most that it had.
func (m *memory) usedMost() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(m.size)
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reserved != nil {
		_ = unix.Munmap(m.reserved) // of what Mmap gave it does not fail
		m.reserved = nil
	}
}
