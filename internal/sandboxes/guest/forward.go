package guest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const (
	// maxForwards is how many connections may be on their way at once. The
	// channel has channel.MaxStreams in all, and past that it is ended, so the
	// sandbox must not be able to reach it.
	maxForwards = 256
	// streamReserve of the channel's streams are kept for the host's calls and
	// for questions.
	streamReserve = 128
	// dialDeadline is how long the host may take to connect.
	dialDeadline = 2 * time.Minute
)

// errNoStream is said when the channel has no room for another stream.
var errNoStream = errors.New("the channel has too many streams open")

// guestLine is the way to the host: the channel, and the clock by which the host's
// patience is measured.
type guestLine struct {
	*channel.Session
	clock *clock
}

// openStream opens a stream to the host, with its first frame, and reads the
// reply. The caller closes the stream. A reply that is not OK is no error here.
// The deadline is of time in which the sandbox runs. A host that starts the
// session anew is asked anew.
func openStream(ctx context.Context, to guestLine, open channel.Open, deadline time.Duration) (*channel.Conn, channel.Reply, error) {
	ctx, cancel := to.clock.withTimeout(ctx, deadline)
	defer cancel()
	for {
		stream, reply, err := askOnce(ctx, to, open)
		if !errors.Is(err, channel.ErrReset) {
			return stream, reply, err
		}
	}
}

func askOnce(ctx context.Context, to guestLine, open channel.Open) (*channel.Conn, channel.Reply, error) {
	var reply channel.Reply
	if to.Streams() > channel.MaxStreams-streamReserve {
		return nil, reply, errNoStream
	}
	stream, err := to.Open(ctx)
	if err != nil {
		return nil, reply, err
	}
	lift := limitIO(ctx, stream.Raw())
	err = errors.Join(
		stream.WriteJSON(channel.FrameOpen, open),
		stream.ReadJSON(channel.FrameReply, &reply),
	)
	if !lift() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		_ = stream.Close()
		return nil, reply, err
	}
	return stream, reply, nil
}

// forwarder carries connections to names over the channel.
type forwarder struct {
	session guestLine
	log     *slog.Logger
	carried sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// accept has connections served until the listener closes.
func (f *forwarder) accept(listener net.Listener, serve func(net.Conn)) {
	listener = accept.Patient(listener, f.log)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if !f.takeConn(conn) {
			resetConn(conn)
			continue
		}
		f.carried.Go(func() {
			defer f.forgetConn(conn)
			serve(conn)
		})
	}
}

// carryConn asks the host for a stream and splices the connection with it.
func (f *forwarder) carryConn(conn net.Conn, open channel.Open) {
	stream, answer, err := openStream(context.Background(), f.session, open, dialDeadline)
	if err != nil {
		f.log.Debug("a connection was not carried", "name", open.Name, "port", open.Port, "error", err)
		resetConn(conn)
		return
	}
	if !answer.OK {
		_ = stream.Close()
		resetConn(conn)
		return
	}
	f.splice(conn, stream, answer.Text)
}

// splice copies both ways until both have ended; id is the stream's name at the host, ""
// if that is older than such names.
func (f *forwarder) splice(conn net.Conn, stream *channel.Conn, id string) {
	over := make(chan struct{})
	defer close(over)
	go func() { // a connection whose other half was lost must not look ended
		select {
		case <-stream.Over():
			resetConn(conn)
		case <-over:
		}
	}()
	channel.Splice(channel.NewConn(conn), stream, func() {
		if id != "" {
			f.carried.Go(func() { f.hangUp(id, over) })
		}
	})
}

// hangUpAgain is between two tries to tell the host that a client has gone.
const hangUpAgain = time.Second

// hangUp tells the host that the client of a stream has gone, so that what it
// does not take is not sent, or taken for sent. The host then ends the stream,
// and that ends the carrying; over tells that it has.
func (f *forwarder) hangUp(id string, over <-chan struct{}) {
	again := time.NewTicker(hangUpAgain)
	defer again.Stop()
	for {
		stream, answer, err := openStream(context.Background(), f.session, channel.Open{Kind: channel.OpenHangUp, Stream: id}, dialDeadline)
		if err == nil {
			_ = stream.Close()
		}
		if err == nil && answer.OK {
			return
		}
		select {
		case <-over:
			return
		case <-f.session.Done():
			return
		case <-again.C:
		}
	}
}

// takeConn counts a connection in, if there is room.
func (f *forwarder) takeConn(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.conns) >= maxForwards {
		return false
	}
	if f.conns == nil {
		f.conns = map[net.Conn]bool{}
	}
	f.conns[conn] = true
	return true
}

func (f *forwarder) forgetConn(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}

// closeAll ends every connection and waits until none is carried. The session
// must be closed already, or the host may keep it waiting.
func (f *forwarder) closeAll() {
	f.mu.Lock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.carried.Wait()
}

// resetConn closes a connection so that its client sees a failure, not an end.
func resetConn(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
