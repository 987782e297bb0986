// Package accept takes connections from listeners, and goes on past what ends by itself: a process
// that has no descriptors or memory left for a moment has them again when something has ended. A
// listener that ended over that would take everybody's connections with it, also those of sandboxes
// that have done nothing.
package accept

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// The pauses after one such failure and the next.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// Passes tells whether a failure of accepting ends by itself.
func Passes(err error) bool {
	for _, passing := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, // until something has ended
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPROTO, syscall.EINTR, syscall.EAGAIN, // of that one connection
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// Patient makes a listener whose Accept waits and goes on after a failure that ends by itself. The
// log has one line when that begins and one when it is over; log nil: nobody is told.
func Patient(l net.Listener, log *slog.Logger) net.Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &patient{Listener: l, log: log, closed: make(chan struct{})}
}

type patient struct {
	net.Listener
	log    *slog.Logger
	once   sync.Once
	closed chan struct{}

	mu    sync.Mutex // guards both
	tries int        // that have failed in turn
	since time.Time  // of the first of them
}

// Accept implements net.Listener. Its error is that the listener is of no use any more.
func (p *patient) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil && !Passes(err) {
			return nil, err
		}
		if err == nil {
			p.recovered()
			return conn, nil
		}
		pause := time.NewTimer(p.pauseAfterFailure(err))
		select {
		case <-pause.C:
		case <-p.closed:
			pause.Stop()
			return nil, net.ErrClosed
		}
	}
}

// pauseAfterFailure takes that accepting has failed, and gives the pause before the next try.
func (p *patient) pauseAfterFailure(err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries++; p.tries == 1 {
		p.since = time.Now()
		p.log.Warn("a connection could not be accepted; others are as soon as that is possible", "listener", p.Addr().String(), "error", err)
	}
	return Pause(p.tries)
}

// Pause is how long to wait after so many failures in turn.
func Pause(tries int) time.Duration { return min(firstPause<<min(max(tries, 1)-1, 10), mostPause) }

func (p *patient) recovered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries > 0 {
		p.log.Warn("connections are accepted again", "listener", p.Addr().String(), "tries", p.tries, "after", time.Since(p.since).Round(time.Millisecond).String())
		p.tries = 0
	}
}

// Close implements net.Listener.
func (p *patient) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
