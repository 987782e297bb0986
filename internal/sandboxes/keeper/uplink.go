package keeper

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// uplink takes the streams that guests open and passes each to the socket at
// path, with the sandbox's identity in front. The identity is the session that
// the stream came on; nothing that the guest sends can change it.
type uplink struct {
	path        string        // of a Unix socket
	streams     int           // of one sandbox at once; more are refused
	deadline    time.Duration // for a stream's first frame
	gatewayWait time.Duration // for a gateway that is not there
}

// serveStreams accepts streams until the session ends. Past the slots each is refused at
// once, and read until the guest has closed it, so that none waits with what it
// holds; channel.MaxStreams bounds them all.
func (u uplink) serveStreams(box *sandbox) {
	box.refusals.beginCount()
	defer box.refusals.endCount()
	slots := make(chan struct{}, u.streams)
	for {
		stream, err := box.session.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
			box.refusals.beginCount()
			safego.Go(func() {
				defer box.refusals.endCount()
				defer func() { <-slots }()
				u.forward(box, stream)
			})
		default:
			u.countRefused(box)
			safego.Go(func() { refuseStream(stream, "too many connections are open in this sandbox") })
		}
	}
}

// forward joins one stream to a connection of its own to the uplink.
func (u uplink) forward(box *sandbox, stream *channel.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream.OnGiveUp(func() {
		box.log.Warn("a sandbox has sent more than the gateway takes, on too many connections at once; one is closed", slog.String("sandbox", box.id))
		cancel()
	})
	kind, first, err := u.firstFrame(box.wire, stream)
	if err != nil || kind != channel.FrameOpen {
		if !errors.Is(err, io.EOF) { // else it has gone without a word
			u.countRefused(box)
		}
		refuseStream(stream, "the first frame was not what opens a stream, or came too late")
		return
	}
	far, err := u.dialGateway(ctx, box, first)
	if err != nil {
		refuseStream(stream, "the gateway is not there; try again")
		return
	}
	over := make(chan struct{})
	defer close(over)
	safego.Go(func() { // what is gone, or given up, needs no answers any more
		select {
		case <-box.session.Done():
			far.hearOut(ctx, over)
		case <-ctx.Done():
		case <-over:
			return
		}
		_ = far.Close()
	})
	channel.Splice(stream, channel.NewConn(far), nil)
}

// lastWords is how long the gateway has to take what a sandbox has said before it was gone.
const lastWords = 2 * time.Second

// toGateway is a stream's connection to the gateway.
type toGateway struct {
	*net.UnixConn
	once  sync.Once
	heard chan struct{} // closed once the gateway has all that the guest has said, or takes no more of it
}

// CloseWrite tells the gateway that the guest says no more.
func (c *toGateway) CloseWrite() error {
	defer c.once.Do(func() { close(c.heard) })
	return c.UnixConn.CloseWrite()
}

// hearOut returns when the gateway has what a guest has said that is gone: what is judged and recorded is not to
// depend on how soon the guest goes. A gateway that does not take it in time loses it.
func (c *toGateway) hearOut(ctx context.Context, over <-chan struct{}) {
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case <-c.heard:
	case <-late.C:
	case <-ctx.Done():
	case <-over:
	}
}

// firstFrame reads what a stream is for, within the deadline. Time in which the
// guest was frozen, and could not say it, does not count.
func (u uplink) firstFrame(wire *channel.Wire, stream *channel.Conn) (channel.FrameType, []byte, error) {
	read := make(chan struct{})
	var watch sync.WaitGroup
	safego.In(&watch, func() { u.expire(wire, stream, read) })
	kind, first, err := stream.ReadFrame()
	close(read)
	watch.Wait()
	_ = stream.Raw().SetReadDeadline(time.Time{})
	return kind, first, err
}

// expire ends the reading of a first frame when its time is over; over a freeze
// the time starts again.
func (u uplink) expire(wire *channel.Wire, stream *channel.Conn, read <-chan struct{}) {
	late := time.NewTimer(u.deadline)
	defer late.Stop()
	for {
		before, paused := wire.Pauses()
		select {
		case <-read:
			return
		case <-late.C:
		}
		if pauses, now := wire.Pauses(); pauses == before && !paused && !now {
			_ = stream.Raw().SetReadDeadline(longAgo())
			return
		}
		late.Reset(u.deadline)
	}
}

// dialGateway reaches the gateway. While there is none, because one daemon has ended
// and the next is on its way, it goes on trying: clients try a lost request only
// once or twice more, and at once.
func (u uplink) dialGateway(ctx context.Context, box *sandbox, first []byte) (*toGateway, error) {
	ctx, cancel := context.WithTimeout(ctx, u.gatewayWait)
	defer cancel()
	raw, err := u.reachGateway(ctx, box.session)
	if err != nil {
		return nil, err
	}
	far := channel.NewConn(raw)
	_ = raw.SetWriteDeadline(time.Now().Add(u.deadline))
	err = far.WriteJSON(channel.FrameOpen, StreamIdentity{Sandbox: box.id})
	if err = errors.Join(err, far.WriteFrame(channel.FrameOpen, first)); err != nil {
		_ = raw.Close()
		return nil, err
	}
	_ = raw.SetWriteDeadline(time.Time{})
	return &toGateway{UnixConn: raw, heard: make(chan struct{})}, nil
}

// redialPause is between two tries to reach a gateway that is not there.
const redialPause = 50 * time.Millisecond

func (u uplink) reachGateway(ctx context.Context, session *channel.Session) (*net.UnixConn, error) {
	var d net.Dialer
	to := &net.UnixAddr{Name: u.path, Net: "unix"}
	again := time.NewTicker(redialPause)
	defer again.Stop()
	for {
		raw, err := d.DialUnix(ctx, "unix", nil, to)
		if err == nil {
			return raw, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		case <-session.Done():
			return nil, err
		}
	}
}

// refuseStream answers no, and keeps the stream until the guest has closed it too.
func refuseStream(stream *channel.Conn, why string) {
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{Error: why})
	stream.Drain()
}

// longAgo is a deadline that has passed.
func longAgo() time.Time { return time.Unix(1, 0) }
