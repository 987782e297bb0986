package dialer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Serve answers the questions on a socket of Pair until its other end closes or ctx ends.
// resolver nil is this host's own.
func Serve(ctx context.Context, socket *os.File, a Allowed, resolver Resolver) error {
	conn, err := packetConn(socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // its other end is told
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer safego.When(ctx, func() { _ = conn.Close() })()
	if resolver == nil {
		resolver = &net.Resolver{PreferGo: true}
	}
	s := &server{conn: conn, guard: newGuard(a), resolver: resolver, places: make(chan struct{}, maxQuestions)}
	packet := make([]byte, maxPacket)
	for tries := 0; ; {
		n, err := conn.Read(packet)
		if n == 0 || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
			return nil
		}
		if accept.Passes(err) { // of a moment without memory
			tries++
			time.Sleep(accept.Pause(tries))
			continue
		}
		if err != nil {
			return err
		}
		tries = 0
		var q dialQuestion
		if err := json.Unmarshal(packet[:n], &q); err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "a question to the dialer can't be read")
		}
		s.takeQuestion(ctx, q)
	}
}

// packetConn takes over the socket.
func packetConn(socket *os.File) (*net.UnixConn, error) {
	defer socket.Close()
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, fmt.Errorf("take the dialer's socket: %w", err)
	}
	packets, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the dialer's socket is none of Unix")
	}
	return packets, nil
}

type server struct {
	conn     *net.UnixConn
	guard    *guard
	resolver Resolver
	places   chan struct{} // a slot for each question under way
}

// takeQuestion answers a question in the background.
func (s *server) takeQuestion(ctx context.Context, q dialQuestion) {
	select {
	case s.places <- struct{}{}:
	default:
		s.sendAnswer(dialAnswer{ID: q.ID, Error: "too many connections are being made"}, nil)
		return
	}
	safego.Go(func() {
		defer func() { <-s.places }()
		limit := min(max(time.Duration(q.Millis)*time.Millisecond, 0), longest)
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if q.Dial != "" {
			s.dialAddress(ctx, q)
			return
		}
		s.resolveName(ctx, q)
	})
}

func (s *server) resolveName(ctx context.Context, q dialQuestion) {
	found, err := s.resolver.LookupNetIP(ctx, "ip", q.Resolve)
	if err != nil {
		s.sendAnswer(dialAnswer{ID: q.ID, Error: err.Error()}, nil)
		return
	}
	found = found[:min(len(found), maxAddresses)]
	s.guard.resolved(q.Resolve, found)
	s.sendAnswer(dialAnswer{ID: q.ID, Addresses: found}, nil)
}

// dialAddress connects. The check is made on the address that the kernel is about to connect to.
func (s *server) dialAddress(ctx context.Context, q dialQuestion) {
	if _, err := netip.ParseAddrPort(q.Dial); err != nil {
		s.sendAnswer(dialAnswer{ID: q.ID, Refused: true, Error: fmt.Sprintf("%.100q is no address and port", q.Dial)}, nil)
		return
	}
	var refused error
	d := &net.Dialer{ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(at)
		if err == nil {
			err = s.guard.permits(to)
		}
		refused = err
		return err
	}}
	conn, err := d.DialContext(ctx, "tcp", q.Dial)
	switch {
	case refused != nil:
		s.sendAnswer(dialAnswer{ID: q.ID, Refused: true, Error: refused.Error()}, nil)
	case err != nil:
		s.sendAnswer(dialAnswer{ID: q.ID, Error: err.Error()}, nil)
	default:
		defer conn.Close()
		s.sendAnswer(dialAnswer{ID: q.ID}, conn)
	}
}

// sendAnswer sends an answer with a connection's socket, or without one. An asker that does not read any more gets none.
func (s *server) sendAnswer(a dialAnswer, conn net.Conn) {
	text, err := json.Marshal(a)
	if err != nil {
		return
	}
	if conn == nil {
		_, _, _ = s.conn.WriteMsgUnix(text, nil, nil)
		return
	}
	raw, err := conn.(*net.TCPConn).SyscallConn() //nolint:forcetypeassert // it was dialled over tcp
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = s.conn.WriteMsgUnix(text, unix.UnixRights(int(fd)), nil)
	})
}
