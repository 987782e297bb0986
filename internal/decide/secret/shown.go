package secret

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// shownKey is of the value of a context that has a keepShown.
type shownKey struct{}

// keepShown keeps a secret that is about to be shown somebody, to get the one that the fetch is for: a
// client's secret, a vault's token. Its error is why it can't be kept, and then it is not shown.
type keepShown func(Value) error

// FetchToShow fetches a secret that a source shows somebody, to get from them the one that is its own.
// A host that was shown it may say it in any answer, as it may say the other, and from that moment on: so the
// broker has it looked for before anybody is shown it. No source fetches from another in a different
// way: package archtest sees to it.
func FetchToShow(ctx context.Context, from Source) (Value, error) {
	v, err := from.Fetch(ctx)
	if err != nil {
		return Value{}, err
	}
	v.own = true
	if keep, kept := ctx.Value(shownKey{}).(keepShown); kept {
		if err := keep(v); err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// fetchValue asks the source. Its cause stays with the operator; the sentence has nothing of
// the secret. keep is called with each secret that is shown for it, before it is.
func (d Declared) fetchValue(ctx context.Context, keep keepShown) (Value, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	v, err := d.Source.Fetch(context.WithValue(ctx, shownKey{}, keep))
	if err != nil {
		return Value{}, fault.Wrap(fault.ErrUnavailable, err, "the secret %q can't be had: %s", d.Name, fault.Sentence(err, "its source does not answer"))
	}
	return v, nil
}
