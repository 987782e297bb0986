package sandbox

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestNonsenseIsNoAnswerToAPause: only a guest that says something counts as one that answered. The controls
// agree and refuse.
func TestNonsenseIsNoAnswerToAPause(t *testing.T) {
	for name, c := range map[string]struct {
		reply string // the guest's frame; "": it hangs up
		kind  channel.FrameType
		want  error
	}{
		"agrees":          {`{"ok":true}`, channel.FrameReply, nil},
		"refuses":         {`{"error":"no"}`, channel.FrameReply, fault.ErrInvalid},
		"hangs up":        {"", 0, fault.ErrUnavailable},
		"no JSON":         {"nonsense", channel.FrameReply, fault.ErrUnavailable},
		"another frame":   {`{"ok":true}`, channel.FrameStdout, fault.ErrUnavailable},
		"another's shape": {`{"ok":7}`, channel.FrameReply, fault.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "keeper")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				raw, err := l.Accept()
				if err != nil {
					return
				}
				defer raw.Close()
				conn := channel.NewConn(raw)
				for range 2 { // the request, and what is for the guest
					if _, _, err := conn.ReadFrame(); err != nil {
						return
					}
				}
				_ = conn.WriteJSON(channel.FrameReply, keeper.Response{OK: true})
				if c.kind != 0 {
					_ = conn.WriteFrame(c.kind, []byte(c.reply))
				}
			}()
			g := &guestCaller{cfg: &Config{Keeper: keeper.Dial(socket)}}
			err = g.stopClocks(t.Context(), "one", true)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("it is %v, and not %v", err, c.want)
			}
			if errors.Is(err, fault.ErrInvalid) != (c.want == fault.ErrInvalid) { //nolint:errorlint // the table's own value
				t.Errorf("%v counts as an answer: %v", err, errors.Is(err, fault.ErrInvalid))
			}
		})
	}
}
