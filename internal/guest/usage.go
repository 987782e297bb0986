package guest

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// usage tells how full the root file system is.
func (a *Agent) usage(stream *channel.Conn) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(a.config.Root+"/", &stat); err != nil {
		return reply(stream, fmt.Errorf("the file system can't be asked how full it is: %w", err))
	}
	block := uint64(max(stat.Frsize, 1))
	body, err := json.Marshal(channel.DiskUsage{Total: int64(stat.Blocks * block), Free: int64(stat.Bfree * block)})
	if err != nil {
		return err
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}
