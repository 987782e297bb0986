package keeper

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// farewell is how long a guest may take for the last words of a client that has
// gone.
const farewell = 10 * time.Second

// carryStream opens a stream to the guest, hands its reply to the client, and then
// passes bytes both ways. It takes one of the sandbox's slots until the guest or
// the client has gone, whatever the other does.
func (s *sandbox) carryStream(ctx context.Context, conn *channel.Conn, first []byte) error {
	_ = conn.Raw().SetReadDeadline(time.Time{})
	ctx, stop, err := whileThere(ctx, conn.Raw())
	if err != nil {
		return err
	}
	defer stop()
	result, err := s.openStream(ctx, first)
	if err != nil {
		return err
	}
	var o opened
	select {
	case o = <-result:
	case <-ctx.Done():
		safego.Go(func() { // the guest may hold its answer back
			if o := <-result; o.err == nil {
				hangUp(o)
			}
		})
		return ctx.Err()
	}
	if o.err != nil {
		return o.err
	}
	sendResponse(conn, Response{OK: true, More: true})
	_ = conn.WriteFrame(channel.FrameReply, o.reply)
	passBoth(ctx, conn, o)
	return nil
}

// passBoth copies until both directions have ended. When the client has gone, so that
// ctx has ended, the guest has farewell to take what the client said last, and is
// not listened to any more.
func passBoth(ctx context.Context, conn *channel.Conn, o opened) {
	stream := o.stream
	defer hangUp(o)
	over := make(chan struct{})
	cut := safego.When(ctx, func() {
		defer close(over)
		_ = stream.Raw().SetReadDeadline(longAgo())
		_ = stream.Raw().SetWriteDeadline(time.Now().Add(farewell))
	})
	defer func() {
		if !cut() {
			<-over // hangUp has its own deadlines
		}
	}()
	stream.OnGiveUp(func() { _ = conn.Raw().Close() })
	var both sync.WaitGroup
	safego.In(&both, func() { channel.Copy(stream, conn) })
	channel.Copy(conn, stream)
	both.Wait()
}

// whileThere returns a context that ends when the client has closed its
// connection for good; a half-close is none. The keeper may not read meanwhile,
// so it is another descriptor of the same socket that tells.
func whileThere(ctx context.Context, conn net.Conn) (context.Context, func(), error) {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, fault.Invalid("a client comes over a Unix socket")
	}
	file, err := local.File()
	if err != nil {
		return nil, nil, fault.Wrap(fault.ErrUnavailable, err, "the keeper has no descriptor left")
	}
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	safego.In(&looking, func() {
		defer cancel()
		_ = awaitHangUp(file)
	})
	return ctx, func() {
		_ = file.Close()
		looking.Wait()
	}, nil
}

// awaitHangUp returns when both directions of a socket are closed, or file is.
func awaitHangUp(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		look := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(look, 0)
		return err == nil && n > 0 && look[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
}

// sendTo passes the frame that follows the request to a command.
func sendTo(ctx context.Context, conn *channel.Conn, box *sandbox, id string) error {
	kind, payload, err := conn.ReadFrame()
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the frame for the command did not follow")
	}
	switch kind {
	case channel.FrameStdin, channel.FrameResize, channel.FrameSignal:
	default:
		return fault.Invalid("a frame of type %d is not for a command", kind)
	}
	c, err := box.commandByID(id)
	if err != nil {
		return err
	}
	payload = append([]byte(nil), payload...) // watch reads into the same buffer
	ctx = untilClosed(ctx, conn)
	if kind == channel.FrameStdin {
		leave, err := box.takeClientSlot(box.inputs, "clients that wait for a command to take their input")
		if err != nil {
			return err
		}
		defer leave()
		return answerDone(conn, c.sendInput(ctx, kind, payload))
	}
	return answerDone(conn, box.control(ctx, c, kind, payload))
}
