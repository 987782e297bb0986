package gateway

import (
	"net"
	"sync"
)

// copyBytes is how much of a file is sent at once.
const copyBytes = 128 << 10

// batch is a connection below TLS that sends the records of one write of the
// server in one call: each record by itself would wake the keeper, the guest
// agent and the client in turn.
type batch struct {
	net.Conn

	mu   sync.Mutex // guards what follows, and the order of what is sent
	open bool
	out  []byte
}

// Write implements net.Conn. Between begin and flush it only collects.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return b.Conn.Write(p)
	}
	b.out = append(b.out, p...)
	if len(b.out) < copyBytes {
		return len(p), nil
	}
	return len(p), b.send()
}

func (b *batch) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
}

// flush ends what begin began; an error is that of the connection.
func (b *batch) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	return b.send()
}

// send needs mu.
func (b *batch) send() error {
	if len(b.out) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.out)
	b.out = b.out[:0]
	if cap(b.out) > 2*copyBytes {
		b.out = nil
	}
	return err
}
