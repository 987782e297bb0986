package secret_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
)

// by is a source that calls a function.
type by func(ctx context.Context) (secret.Value, error)

func (f by) Fetch(ctx context.Context) (secret.Value, error) { return f(ctx) }

// says is a source that has always the same.
func says(text string) by {
	return func(context.Context) (secret.Value, error) { return secret.NewValue(text) }
}

// TestWhatIsShownIsKnownBeforeItIsShown: whoever is shown a secret may say it to any run from that moment
// on, and not only once they have answered.
func TestWhatIsShownIsKnownBeforeItIsShown(t *testing.T) {
	clock := &at{}
	shown := "the-client's-first"
	asked := func() {}
	b := broker(by(func(ctx context.Context) (secret.Value, error) {
		if _, err := secret.FetchToShow(ctx, says(shown)); err != nil {
			return secret.Value{}, err
		}
		asked() // this is where a token's endpoint is asked
		return secret.NewValue("what-is-lent")
	}), clock)
	other := b.Lease()
	t.Cleanup(other.End)
	if got := texts(t, other, secret.Want{Name: "one", Host: "api.example"}); !slices.Equal(got, []string{"the-client's-first", "what-is-lent"}) {
		t.Fatalf("the control: %q", got)
	}
	var meanwhile []string
	shown, asked = "the-client's-second", func() { meanwhile = texts(t, other) }
	one := b.Lease()
	t.Cleanup(one.End)
	texts(t, one, secret.Want{Name: "one", Host: "api.example"})
	if !slices.Contains(meanwhile, "the-client's-second") {
		t.Errorf("while the endpoint is asked, another run knows of %q", meanwhile)
	}
}

// TestWhatIsShownPushesNothingOut: a source that shows another secret each time has none of those that
// were lent forgotten, by no run.
func TestWhatIsShownPushesNothingOut(t *testing.T) {
	lent, count := "lent-at-first", 0
	b := broker(by(func(ctx context.Context) (secret.Value, error) {
		count++
		if _, err := secret.FetchToShow(ctx, says(fmt.Sprintf("shown-then-%d", count))); err != nil {
			return secret.Value{}, err
		}
		return secret.NewValue(lent)
	}), &at{})
	fetch := func() []string {
		l := b.Lease()
		defer l.End()
		return texts(t, l, secret.Want{Name: "one", Host: "api.example"})
	}
	fetch()
	lent = "lent-since"
	for range 300 {
		fetch()
	}
	all := fetch()
	for _, want := range []string{"lent-at-first", "lent-since", "shown-then-302", "shown-then-290"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is looked for no more", want)
		}
	}
	if len(all) > 2+256 {
		t.Errorf("%d values are kept", len(all))
	}
}
