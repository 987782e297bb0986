package httpapi

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// announce writes what a caller is about to change of the daemon's, before that is done. undo writes that it
// was not done after all, and why, and returns that: the log does not say for good what is not so.
func (s *desk) announce(ctx context.Context, by caller, reason string, detail map[string]string) (undo func(why error) error, err error) {
	write := func(ctx context.Context, outcome audit.Outcome, reason string) error {
		_, err := s.cfg.Log.Append(ctx, audit.Record{Kind: audit.KindDaemon, Outcome: outcome, User: by.name, Reason: reason, Detail: detail})
		return err
	}
	return func(why error) error {
		failed := write(context.WithoutCancel(ctx), audit.Failed, text.Shorten("This did not come to be: "+reason+" "+why.Error(), 1<<10))
		if failed != nil {
			return errors.Join(why, failed)
		}
		return why
	}, write(ctx, audit.Started, reason)
}
