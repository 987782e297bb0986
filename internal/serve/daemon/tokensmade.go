package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// markedTokens are tokens with a mark beside their file: it is there before the first of them
// is. Revoked tokens stay in the file, so one without any was lost, or somebody took its place.
type markedTokens struct {
	token.Store

	mark, path string
}

// checkTokens refuses a file without tokens where there were some.
func (m markedTokens) checkTokens(ctx context.Context) error {
	all, err := m.List(ctx)
	if err != nil {
		return err
	}
	_, err = os.Lstat(m.mark)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(all) > 0: // made by an earlier version
		return m.markMade()
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be looked at", m.mark)
	case len(all) == 0:
		return fault.New(fault.ErrConflict, "the file of tokens, %s, has none, and there were some, or the daemon ended while it made the first: put it back from a copy, or remove %s to begin without any", m.path, m.mark)
	}
	return nil
}

// Put implements token.Store. A first token that could not be put takes its mark with it, or the
// next start would look for tokens that there never were.
func (m markedTokens) Put(ctx context.Context, t token.Token) error {
	_, err := os.Lstat(m.mark)
	if err == nil {
		return m.Store.Put(ctx, t)
	}
	if err := m.markMade(); err != nil {
		return err
	}
	if err := m.Store.Put(ctx, t); err != nil {
		if all, listed := m.List(context.WithoutCancel(ctx)); listed != nil || len(all) > 0 {
			return err // it may be there
		}
		return errors.Join(err, os.Remove(m.mark))
	}
	return nil
}

func (m markedTokens) markMade() error {
	if err := atomicfile.Replace(m.mark, []byte("Tokens were made: "+m.path+" has them.\n"), 0o600); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be made, so no token is", m.mark)
	}
	return nil
}
