// Package file is a source of secrets: files of the host.
package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/secret"
)

// Path is the absolute path of one.
type Path string

// Fetch implements secret.Source. A file that others can read or change is refused.
func (p Path) Fetch(context.Context) (secret.Value, error) {
	f, err := os.OpenFile(string(p), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // a pipe must not make it wait
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, reason(err), "the file %s can't be opened", string(p))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the file %s can't be looked at", string(p))
	case !info.Mode().IsRegular():
		return secret.Value{}, fault.New(fault.ErrUnavailable, "%s is no file", string(p))
	case info.Mode().Perm()&0o026 != 0:
		return secret.Value{}, fault.New(fault.ErrUnavailable, "the file %s can be read or changed by others (its mode is %#o); chmod 600 it, and renew the secret if somebody may have read it", string(p), info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, secret.MaxValue+3)) // with a line's end, and one more
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, reason(err), "the file %s can't be read", string(p))
	}
	return secret.Line(string(text))
}

// reason is why a file could not be had, without its path.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
