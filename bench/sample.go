package main

import (
	"math"
	"slices"
	"time"
)

// sample is what one thing measured, in the order of the rounds.
type sample []float64

func (s *sample) add(d time.Duration) { *s = append(*s, float64(d)/float64(time.Millisecond)) }

// quantile is the value that a share q of the sample does not exceed (the
// nearest rank); NaN of nothing.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func (s sample) median() float64 { return s.quantile(0.5) }
