package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// greeter is the keeper, as far as it tells what it is.
type greeter interface {
	Hello(ctx context.Context) (keeper.Hello, error)
}

// keeperTimeout bounds the question: a keeper answers at once, or not at all.
const keeperTimeout = 5 * time.Second

// theKeeper says whether the keeper that runs, which may be older than this program,
// can do all that is asked of it.
func theKeeper(ctx context.Context, in Inputs) []Check {
	const name = "keeper"
	if in.Keeper == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	hello, err := in.Keeper.Hello(ctx)
	if errors.Is(err, fault.ErrUnavailable) && ctx.Err() == nil {
		return []Check{okCheck(name, "none runs; the daemon starts one, of protocol %d", keeper.Protocol)}
	}
	if err != nil {
		return []Check{warnCheck(name, "look at keeper.log in the state directory", "the keeper that runs does not answer: %s", errorSentence(err))}
	}
	release := hello.Release
	if release == "" {
		release = "that does not tell itself"
	}
	if lacks := hello.Lacks(); len(lacks) > 0 {
		return []Check{warnCheck(name, "when its sandboxes have ended, restart the daemon: it starts a keeper of its own then",
			"the keeper that runs is of the release %s and speaks protocol %d, this program %d; it lacks %v", release, hello.Protocol, keeper.Protocol, lacks)}
	}
	return []Check{okCheck(name, "release %s, protocol %d, features %v", release, hello.Protocol, hello.Features)}
}
