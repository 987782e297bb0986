package sandbox

import "time"

// When what could not be taken away is tried again: soon at first, then each time
// after twice as long.
const (
	retryLeast = time.Second
	retryMost  = 5 * time.Minute
)

// removal is how far the taking away of a sandbox has come. The zero value is that
// nobody has begun.
type removal struct {
	reason string   // why it is taken away, as the first one said who began
	try    *attempt // under way, or the one that did it; nil: none
	failed Stuck
	tended bool // somebody tries again until it is done
}

// attempt is one try; err may be read when over is closed.
type attempt struct {
	over chan struct{}
	err  error
}

// Stuck tells of a sandbox that could not be taken away yet. It keeps its share of the
// quota: nobody knows what of it still runs.
type Stuck struct {
	Tries int       // so far; 0: it is not stuck
	Since time.Time // the first that failed
	Next  time.Time // when it is tried again at the latest
}

// noteFailure notes that a try failed, and when there is to be another. tended tells that
// somebody sees to that already.
func (r *removal) noteFailure(now time.Time, least time.Duration) (pause time.Duration, tended bool) {
	r.try = nil
	if r.failed.Tries++; r.failed.Tries == 1 {
		r.failed.Since = now
	}
	pause = retryAfter(least, r.failed.Tries)
	r.failed.Next = now.Add(pause)
	tended, r.tended = r.tended, true
	return pause, tended
}

// retryAfter is how long after so many failures the next try is.
func retryAfter(least time.Duration, failures int) time.Duration {
	if least <= 0 {
		least = retryLeast
	}
	pause := least
	for range failures - 1 {
		if pause *= 2; pause >= retryMost {
			return retryMost
		}
	}
	return pause
}
