package sandbox

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestAKeysRequestThatLasts: a second request with the key waits for the first one, and is told to come
// again before its client gives up.
func TestAKeysRequestThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, release, ended := newKeys(), make(chan struct{}), make(chan struct{})
		asked := Request{IdempotencyKey: "k", Owner: Owner{Token: "tok-1"}}
		go func() {
			defer close(ended)
			_, _ = k.createOnce(t.Context(), asked, func(string) (*Sandbox, error) {
				<-release
				return nil, errors.New("no more")
			})
		}()
		synctest.Wait()
		never := func(string) (*Sandbox, error) {
			t.Error("a second one is made")
			return nil, errors.New("no")
		}
		begun := time.Now()
		_, err := k.createOnce(t.Context(), asked, never)
		if !errors.Is(err, ErrKeyUnderway) || !errors.Is(err, fault.ErrConflict) || fault.RetryAfter(err) == 0 || time.Since(begun) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		other := asked
		other.Task = "another"
		if _, err := k.createOnce(t.Context(), other, never); !errors.Is(err, ErrKeyMismatch) {
			t.Error(err)
		}
		close(release)
		<-ended
		if len(k.promises) != 0 {
			t.Errorf("%d keys are remembered of sandboxes that are not there", len(k.promises))
		}
	})
}
