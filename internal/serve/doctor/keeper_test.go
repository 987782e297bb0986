package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

type greeting struct {
	hello keeper.Hello
	err   error
}

func (g greeting) Hello(context.Context) (keeper.Hello, error) { return g.hello, g.err }

// TestKeeperIsAskedWhatItIs: its protocol and features are shown, and what it lacks.
func TestKeeperIsAskedWhatItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		greeting
		want Status
		says []string
	}{
		"this release's": {greeting{hello: keeper.Hello{Protocol: keeper.Protocol, Features: keeper.Features(), Release: "v9"}}, OK, []string{"v9", "protocol 4", "processes"}},
		"an older one":   {greeting{}, Warn, []string{"protocol 0", "lacks [processes fresh output settle]", "does not tell itself"}},
		"none":           {greeting{err: fault.New(fault.ErrUnavailable, "the keeper does not answer")}, OK, []string{"none runs"}},
		"one that errs":  {greeting{err: errors.New("odd")}, Warn, []string{"odd"}},
	} {
		in := host(t)
		in.Keeper = c.greeting
		got := find(t, Examine(t.Context(), in), "keeper")
		if got.Status != c.want || got.Status == Warn && got.HowToFix == "" {
			t.Errorf("%s: %+v", name, got)
		}
		for _, word := range c.says {
			if !strings.Contains(got.Sentence, word) {
				t.Errorf("%s: %q is not in %q", name, word, got.Sentence)
			}
		}
	}
}
