// Package file is a source of secrets: files of the host.
package file

import (
	"context"
	"errors"
	"io/fs"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// Path is the absolute path of one.
type Path string

// guarded is a file that no sandbox may write.
type guarded struct {
	path  Path
	trees func() []hostpath.Tree
}

// Outside is a file as a source, which is refused where a sandbox may write, or could; nil: nowhere.
func Outside(path string, trees func() []hostpath.Tree) secret.Source {
	if trees == nil {
		return Path(path)
	}
	return guarded{Path(path), trees}
}

// Fetch implements secret.Source.
func (g guarded) Fetch(context.Context) (secret.Value, error) { return g.path.readSecret(g.trees()) }

// Fetch implements secret.Source. A file that others can read or change, or put another in the place
// of, is refused.
func (p Path) Fetch(context.Context) (secret.Value, error) { return p.readSecret(nil) }

func (p Path) readSecret(trees []hostpath.Tree) (secret.Value, error) {
	f, err := privatefile.ReadTrusted("the secret's file", string(p), secret.MaxValue+2, trees) // with a line's end
	switch {
	case errors.Is(err, fault.ErrForbidden):
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "%s", fault.Sentence(err, "the file is refused"))
	case err != nil:
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, reason(err), "the file %s can't be opened", string(p))
	case f.Mode&0o026 != 0:
		return secret.Value{}, fault.New(fault.ErrUnavailable, "the file %s can be read or changed by others (its mode is %#o); chmod 600 it, and renew the secret if somebody may have read it", string(p), f.Mode)
	}
	return secret.Line(string(f.Data))
}

// reason is why a file could not be had, without its path.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
