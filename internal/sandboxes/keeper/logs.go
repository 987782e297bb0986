package keeper

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/loglimit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// trimEvery is how often the sandboxes' logs are looked at: their guests may write to them.
const trimEvery = 5 * time.Second

// keepLogsSmall trims the logs of sandboxes until ctx ends; the function that it gives waits
// for that.
func (s *Server) keepLogsSmall(ctx context.Context) (wait func()) {
	var loop sync.WaitGroup
	safego.In(&loop, func() {
		safego.Stay(ctx, func() {
			tick := time.NewTicker(trimEvery)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					s.trimLogs()
				}
			}
		})
	})
	return loop.Wait
}

func (s *Server) trimLogs() {
	s.mu.Lock()
	logs := make(map[string]string, len(s.sandboxes))
	for id, box := range s.sandboxes {
		if box.began.path != "" {
			logs[id] = box.began.path
		}
	}
	s.mu.Unlock()
	for id, path := range logs {
		if err := loglimit.Trim(path); err != nil {
			s.log.Warn("a sandbox's log stays as large as it is", slog.String("sandbox", id), slog.Any("error", err))
		}
	}
}
