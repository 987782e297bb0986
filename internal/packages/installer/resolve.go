package installer

import (
	"cmp"
	"context"
)

// Resolve runs a rewrite, reads what it left, and has the gateway look into what it chose. run runs a command in the
// directory in which the install starts, to its end, and gives its standard output; the error of the rewrite's own command is
// returned as it is, and so is that of a context that ended: nothing is had in part. A file that could not be looked into is a note: the plan tells of it, since nothing was shown of it.
func (r Rewrite) Resolve(ctx context.Context, run func(argv []string) ([]byte, error)) (Documents, Result, error) {
	out, err := run(r.Argv)
	if err != nil {
		return nil, Result{}, err
	}
	docs, err := ReadOutput(out, r.Resolver.Documents)
	if err != nil {
		return nil, Result{}, err
	}
	result, err := r.Resolver.Result(docs)
	if err != nil || r.Resolver.Look == nil {
		return docs, result, err
	}
	for _, look := range r.Resolver.Look(result.Choices) {
		_, err := run(look)
		if ctx.Err() != nil {
			return nil, Result{}, cmp.Or(err, context.Cause(ctx))
		}
		if err != nil {
			result.Notes = append(result.Notes, "not all of its files could be looked into")
			break
		}
	}
	return docs, result, nil
}
