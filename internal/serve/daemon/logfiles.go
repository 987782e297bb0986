package daemon

import (
	"log/slog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/loglimit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// trimLogs keeps the log files small of the processes that run in the background. Those of
// sandboxes are the keeper's.
func trimLogs(paths config.Paths, log *slog.Logger) {
	for _, path := range []string{paths.DaemonLog(), paths.KeeperLog()} {
		if err := loglimit.Trim(path); err != nil {
			log.Warn("a log file stays as large as it is", "file", path, "error", err)
		}
	}
}
