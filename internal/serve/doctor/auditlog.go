package doctor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// stale is how long a publishing that fails is no reason for a warning: it is
// tried again before.
const stale = 5 * time.Minute

// auditLog tells whether log checkpoints go out, and how old the last one is.
func auditLog(_ context.Context, in Inputs) []Check {
	const name = "audit log"
	if in.AuditLog == "" {
		return nil
	}
	last, err := audit.LastCheckpoint(in.AuditLog)
	if err != nil {
		return []Check{warnCheck(name, "cofferdam audit verify says what is wrong", "%s", errorSentence(err))}
	}
	published, err := audit.ReadPublished(in.AuditLog)
	switch {
	case !in.Publishes: // whatever is said of checkpoints that once were
		return []Check{warnCheck(name, "audit.publish in the configuration names a place that this host's root can't change", "no checkpoint of the log is published: whoever has this host can write the log anew")}
	case errors.Is(err, os.ErrNotExist):
		return []Check{okCheck(name, "no checkpoint of the log was published yet")}
	case err != nil:
		return []Check{warnCheck(name, "restart the daemon: it publishes again", "what was published can't be read: %s", err)}
	}
	var checks []Check
	now := time.Now()
	for _, t := range published.Targets {
		if text := t.Text(uint64(last.Size), now); t.Failure != "" && now.Sub(t.Since) > stale {
			checks = append(checks, warnCheck(name, "see to the place that audit.publish names", "%s", text))
		} else {
			checks = append(checks, okCheck(name, "%s", text))
		}
	}
	return checks
}
