package sandbox

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxOutput bounds what Output collects.
const maxOutput = 1 << 20

// Output runs one command in a sandbox of its own and returns what it wrote to
// standard output. It is for the daemon's own questions to a template; they are
// judged and recorded like anybody's.
func (m *Manager) Output(ctx context.Context, req Request, argv []string) ([]byte, error) {
	s, err := m.Create(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := m.Destroy(context.WithoutCancel(ctx), s.info.ID); err != nil {
			m.cfg.Log.Error("a sandbox can't be destroyed", "sandbox", s.info.ID, "err", err)
		}
	}()
	cmd, err := m.Start(ctx, s.info.ID, Command{Argv: argv, CapBytes: maxOutput})
	if err != nil {
		return nil, err
	}
	conn, err := m.Attach(ctx, s.info.ID, cmd.ID, 0)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer errand.When(ctx, func() { conn.Close() })()
	return collect(channel.NewConn(conn), argv[0])
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
