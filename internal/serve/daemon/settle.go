package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// settler asks those who count something of sandboxes.
type settler struct{ daemon *Daemon }

// settleCounts has the keeper and the gateway put on record what they count of a sandbox that has ended, the keeper first:
// what it closes is what the gateway then waits for. It is admission's Settle.
func (s settler) settleCounts(ctx context.Context, sandbox string) error {
	return errors.Join(s.settleKeeper(ctx, sandbox), settleGateway(ctx, s.daemon.opts.Paths.Uplink(), sandbox))
}

// settleKeeper records how many streams the keeper has refused of which the gateway does not know.
func (s settler) settleKeeper(ctx context.Context, sandbox string) error {
	open, err := s.daemon.keeper.Settle(ctx, sandbox, func(refused int) error {
		_, err := s.daemon.door.Failed(ctx, door.Crowded(sandbox, refused))
		if errors.Is(err, fault.ErrForbidden) { // past its quota there are no more records of it
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "the keeper could not be asked what it has refused")
	case open:
		return fault.New(fault.ErrUnavailable, "some of its connections had not ended")
	}
	return nil
}

// settleGateway waits until the gateway has put all on record. Where there is none, nothing is counted; one that is there
// and can't be reached now, as its backlog is full, may have counted something.
func settleGateway(ctx context.Context, uplink, sandbox string) error {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", uplink)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil // there is no gateway
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "the gateway could not be asked what it has refused")
	}
	defer raw.Close()
	if until, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(until)
	} else {
		_ = raw.SetDeadline(time.Now().Add(trustTimeout))
	}
	frames := channel.NewConn(raw)
	var reply channel.Reply
	err = frames.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox, Settle: true})
	if err == nil {
		err = frames.ReadJSON(channel.FrameReply, &reply)
	}
	switch {
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "the gateway does not say what it has refused")
	case !reply.OK:
		return fault.New(fault.ErrUnavailable, "the gateway says that %s", reply.Error)
	}
	return nil
}
