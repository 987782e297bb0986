package admission

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Rules look through texts that somebody inside wrote, as does whatever finds its way in code. That takes this
// process's time: long texts are judged in turn, of each owner one at a time and of its sandboxes in turn, and none for longer than this.
const (
	mostUnqueued = 32 << 10 // bytes that are judged at once
	judgedAtOnce = 2
	mostQueued   = 64 // of each owner, and of one sandbox three quarters of them
	judgingTime  = 20 * time.Second
)

// judgement has rules judge texts, of all sandboxes.
type judgement struct{ long *fairqueue.Shares }

func newJudgement() *judgement {
	return &judgement{fairqueue.New(fairqueue.Fair(judgedAtOnce, mostQueued))}
}

// judgeText has a tenant's rules judge a text of so many bytes; read makes of it what they see. A rule for which there is no time
// refuses. The error is fault.ErrExhausted where too many wait, and ctx's own if that ended.
func (j *judgement) judgeText(ctx context.Context, t *tenant, size int, read func() policy.CommandInput) (policy.Decision, error) {
	if size > mostUnqueued {
		_, leave, err := j.long.Take(fairqueue.Within(ctx, t.run.payerOf(), t.run.Sandbox))
		if errors.Is(err, fairqueue.ErrCrowded) {
			return policy.Decision{}, fault.Exhausted(time.Second, "too many long texts of the same sandbox or owner wait already to be judged")
		}
		if err != nil {
			return policy.Decision{}, err
		}
		defer leave()
	}
	limited, cancel := context.WithTimeout(ctx, judgingTime)
	defer cancel()
	in := read()
	in.Over = func() bool { return limited.Err() != nil }
	d := t.policy().DecideCommand(in)
	return d, ctx.Err()
}

// bytesOfWords is how long a command is.
func bytesOfWords(argv []string) (n int) {
	for _, word := range argv {
		n += len(word) + 1
	}
	return n
}
