package template

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Generation returns the template of a name that has this digest, whether or not
// it is the current one: what was made from one goes on with no other. It is a
// fault.ErrConflict if that is not there any more.
func (s *Store) Generation(ctx context.Context, name, digest string) (Template, error) {
	now, err := s.Get(ctx, name)
	if err == nil && now.Digest == digest {
		return now, nil
	}
	if errors.Is(err, fault.ErrNotFound) || ctx.Err() != nil {
		return Template{}, errors.Join(err, ctx.Err())
	}
	all, err := s.generations(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Template{}, err
	}
	if i := slices.IndexFunc(all, func(t Template) bool { return t.Digest == digest }); i >= 0 && name != NameHost {
		return all[i], nil
	}
	return Template{}, fault.New(fault.ErrConflict, "the template %s is another than it was, and the one with the digest %s is not kept", name, digest)
}
