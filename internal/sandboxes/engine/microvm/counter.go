package microvm

import "time"

// Of several looks the shortest is the best: others were interrupted.
const (
	counterLooks = 5
	counterLook  = 20 * time.Millisecond
)

// counterKHz measures the rate of the time stamp counter; 0 where there is none.
func counterKHz() int {
	best, rate := time.Hour, 0.0
	for range counterLooks {
		began, first := time.Now(), counter()
		time.Sleep(counterLook)
		last, took := counter(), time.Since(began)
		if took < best && last > first {
			best, rate = took, float64(last-first)/float64(took.Nanoseconds())
		}
	}
	return int(rate * 1e6)
}
