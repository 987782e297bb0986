package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// bounds are those of what is copied and looked through: whoever was inside chose the names and how
// many there are.
func bounds() treewalk.Bounds {
	return treewalk.Bounds{Entries: mostEntries, Depth: mostDepth, Names: mostNames}
}

// lookThrough visits what is below a copy's root, in which anybody may have made anything, parents before what is in them.
func lookThrough(ctx context.Context, root *os.Root, b treewalk.Bounds, visit func(name string, info fs.FileInfo) error) error {
	err := treewalk.WalkRoot(ctx, root, b, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return visit(name, info)
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return fault.Invalid("the copy %s; nothing can be brought over from it", bound.Has)
	}
	return err
}
