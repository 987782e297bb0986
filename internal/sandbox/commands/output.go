package commands

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Output runs a command and returns what it wrote to standard output. It fails if the
// command does.
func (t *Table) Output(ctx context.Context, c Command) ([]byte, error) {
	cmd, err := t.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	conn, err := t.Attach(ctx, cmd.ID, 0)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer errand.When(ctx, func() { conn.Close() })()
	return collect(channel.NewConn(conn), c.Argv[0])
}

// collect reads frames up to the exit.
func collect(frames *channel.Conn, name string) ([]byte, error) {
	var out, complaint bytes.Buffer
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the output of %s was cut short", name)
		}
		switch kind { //nolint:exhaustive // input frames do not come from a keeper
		case channel.FrameStdout:
			out.Write(payload)
		case channel.FrameStderr:
			complaint.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := json.Unmarshal(payload, &exit); err != nil {
				return nil, err
			}
			if exit.Code != 0 {
				return nil, fault.New(fault.ErrUnavailable, "%s ended with %d: %.500q %s", name, exit.Code, complaint.String(), exit.Error)
			}
			return out.Bytes(), nil
		}
	}
}
