package isolation

import "math"

// confidence is that of all intervals.
const confidence = 0.95

// Interval is what a probability or a rate lies in, at 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// BoundShare gives the exact (Clopper-Pearson) interval of a share of which hits of n were
// seen.
func BoundShare(hits, n int) Interval {
	tail := (1 - confidence) / 2
	out := Interval{0, 1}
	if hits > 0 {
		out.Low = bisect(func(p float64) bool { return AtLeast(hits, n, p) < tail })
	}
	if hits < n {
		out.High = bisect(func(p float64) bool { return 1-AtLeast(hits+1, n, p) > tail })
	}
	return out
}

// bisect finds where below, which holds from 0 on, ends.
func bisect(below func(p float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; below(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// AtLeast is the probability of hits or more in n independent tries, each of which hits
// with probability p.
func AtLeast(hits, n int, p float64) float64 {
	switch {
	case hits <= 0:
		return 1
	case hits > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	sum := 0.0
	for k := hits; k <= n; k++ {
		sum += math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return math.Min(sum, 1)
}

func logChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	value, _ := math.Lgamma(float64(n) + 1)
	return value
}

// Capacity is how many bits a binary symmetric channel carries in a slot that is guessed
// right with probability right. A guess that is wrong more often than right carries nothing:
// which way a decoder guesses was settled before.
func Capacity(right float64) float64 {
	if right <= 0.5 {
		return 0
	}
	if right >= 1 {
		return 1
	}
	wrong := 1 - right
	return 1 + right*math.Log2(right) + wrong*math.Log2(wrong)
}

// Rate is what a channel carries, in bits per second.
type Rate struct {
	Trials int      `json:"trials"` // on which the decoder was judged
	Right  int      `json:"right"`
	Bits   float64  `json:"bits_per_second"`
	Within Interval `json:"within"`
	// Chance is how likely as many right guesses are where nothing is told.
	Chance float64 `json:"chance"`
	// Feature is what the decoder looks at.
	Feature string `json:"feature"`
}

// RateOf is the rate of a channel of which right of trials slots were guessed right, at so
// many slots a second.
func RateOf(right, trials int, slots float64) Rate {
	share := BoundShare(right, trials)
	return Rate{
		Trials: trials, Right: right, Bits: slots * Capacity(float64(right)/float64(trials)), Chance: AtLeast(right, trials, 0.5),
		Within: Interval{slots * Capacity(share.Low), slots * Capacity(share.High)},
	}
}
