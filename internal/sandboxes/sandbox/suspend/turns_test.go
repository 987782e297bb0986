package suspend

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestASlowFreezeHoldsUpItsOwner: sandboxes of one owner that can't be written hold no place of
// another's. Those of the others are paused and resumed meanwhile, and once the slow ones have ended
// all else goes on.
func TestASlowFreezeHoldsUpItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := NewShelf(t.TempDir(), Room{Bytes: 1 << 40, Count: 100})
		var slow []*stage
		for range 10 {
			s := stageOf(t, "bad", shelf, nil)
			s.body.gate = make(chan struct{})
			_ = s.asking(s.Pause)
			slow = append(slow, s)
		}
		for _, owner := range []string{"good", "another"} {
			s := stageOf(t, owner, shelf, nil)
			paused := s.asking(s.Pause)
			s.pass(time.Minute)
			if err := ended(paused); err != "" {
				t.Errorf("%s: the pause: %s", owner, err)
			}
			resumed := s.asking(func(ctx context.Context) error {
				_, err := s.Resume(ctx)
				return err
			})
			s.pass(time.Minute)
			if err := ended(resumed); err != "" {
				t.Errorf("%s: the resume: %s", owner, err)
			}
			s.finish()
		}
		for _, s := range slow {
			close(s.body.gate)
		}
		for _, s := range slow {
			s.pass(time.Minute)
			s.finish()
		}
	})
}

// ended is why something has not ended well.
func ended(asked <-chan error) string {
	select {
	case err := <-asked:
		if err != nil {
			return err.Error()
		}
		return ""
	default:
		return "it waits for another's"
	}
}
