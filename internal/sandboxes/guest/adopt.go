package guest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// adoptStream answers a call that gives a command a stream, for the one that a reset
// took from it: a reply, then the command's frames from where it held them back.
func (a *Agent) adoptStream(ctx context.Context, stream *channel.Conn, id string) error {
	cmd := a.commands.findCommand(id)
	if cmd == nil {
		return stream.WriteJSON(channel.FrameReply, channel.Reply{
			Error: fmt.Sprintf("no command with the id %.80q runs here", id), Code: channel.CodeNotFound,
		})
	}
	if !cmd.out.claimOutlet() {
		return stream.WriteJSON(channel.FrameReply, channel.Reply{
			Error: fmt.Sprintf("the command %.80q has its stream", id), Code: channel.CodeExists,
		})
	}
	err := replyCall(stream, nil)
	if pid := a.commands.pidOf(cmd); err == nil && pid != 0 {
		err = stream.WriteJSON(channel.FrameStarted, channel.Started{PID: pid})
	}
	if err != nil {
		cmd.out.giveStream(nil)
		return err
	}
	cmd.out.giveStream(stream)
	cmd.attend(ctx, stream)
	return nil
}

// attend obeys an adopting stream until the command is over or the stream lost.
func (c *execCommand) attend(ctx context.Context, stream *channel.Conn) {
	var reading sync.WaitGroup
	defer reading.Wait()
	select {
	case <-c.runs:
		reading.Go(func() { c.control(stream) })
	case <-c.over:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-c.over:
	case <-stream.Over():
	case <-ctx.Done():
	}
	_ = stream.Raw().SetReadDeadline(time.Now()) // ends control
}
