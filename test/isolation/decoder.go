package isolation

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Observation is what a receiver sees in a slot.
type Observation struct {
	Text string        // of the whole answer
	Took time.Duration // until it was there
}

// Trial is a slot: what was sent, and what was seen.
type Trial struct {
	Bit  bool
	Seen Observation
}

// Way is how a channel is read.
type Way string

// The ways.
const (
	State  Way = "state"  // from what the answer says
	Timing Way = "timing" // from when it comes
)

// Features of an observation that are looked at: so many tokens of a text, of which those
// up to maxDigits characters are numbers, too.
const (
	maxTokens = 400
	maxDigits = 12 // in base 36, that is less than 2^63
	// commonWord is the share of trials in which a word must be there, and not be there, to
	// be looked at: one that is always another is an id.
	commonWord = 0.02
)

var tokens = regexp.MustCompile(`[A-Za-z0-9]+`)

// stamps are times of the host's clock in an answer, which tell when it was made as the
// receiver's own clock does: they are read with the timing, and not with the state.
var stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// spans are how long the host says that something took, which the receiver measures as well.
var spans = regexp.MustCompile(`"took_ms":(\d+)`)

// spansIn are those of a text, in seconds.
func spansIn(text string) (all []float64) {
	for _, one := range spans.FindAllStringSubmatch(text, maxTokens) {
		if ms, err := strconv.ParseFloat(one[1], 64); err == nil {
			all = append(all, ms/1000)
		}
	}
	return all
}

// withoutTimes is a text without what is read with the timing.
func withoutTimes(text string) string {
	return spans.ReplaceAllString(stamps.ReplaceAllString(text, ""), "")
}

// stampsIn are the times of a text, in seconds since 1970.
func stampsIn(text string) (all []float64) {
	for _, one := range stamps.FindAllString(text, maxTokens) {
		if at, err := time.Parse(time.RFC3339Nano, one); err == nil {
			all = append(all, float64(at.UnixNano())/float64(time.Second))
		}
	}
	return all
}

// features are the numbers that an observation has, by what they are. Those of the text are
// its length, and the value and the growth since the observation before of each token by its
// place, read in base 10 and in base 36: so a counter is found in whatever digits it is written.
func features(way Way, now, before Observation) map[string]float64 {
	if way == Timing {
		return timesOf(now, before)
	}
	text := withoutTimes(now.Text)
	out := map[string]float64{"length": float64(len(text))}
	was := tokens.FindAllString(withoutTimes(before.Text), maxTokens)
	for i, token := range tokens.FindAllString(text, maxTokens) {
		for _, base := range []int{10, 36} {
			value, isNumber := numberOf(token, base)
			if !isNumber {
				continue
			}
			name := fmt.Sprintf("token %d in base %d", i, base)
			out[name] = value
			if i < len(was) {
				if old, isNumber := numberOf(was[i], base); isNumber {
					out["growth of "+name] = value - old
				}
			}
		}
	}
	for _, token := range tokens.FindAllString(text, -1) {
		out["word "+token] = 1
	}
	return out
}

// timesOf are how long an answer took and how much longer than the one before, and how much
// later each time in it is than the one at its place before, and than the first of its own.
func timesOf(now, before Observation) map[string]float64 {
	out := map[string]float64{"time": now.Took.Seconds(), "growth of the time": (now.Took - before.Took).Seconds()}
	was := stampsIn(before.Text)
	all := stampsIn(now.Text)
	for i, at := range all {
		if i < len(was) {
			out[fmt.Sprint("growth of the stamp ", i)] = at - was[i]
		}
		out[fmt.Sprint("stamp ", i, " after the first")] = at - all[0]
	}
	for i, span := range spansIn(now.Text) {
		out[fmt.Sprint("span ", i)] = span
	}
	return out
}

func numberOf(token string, base int) (float64, bool) {
	if len(token) > maxDigits {
		return 0, false
	}
	value, err := strconv.ParseInt(token, base, 64)
	return float64(value), err == nil
}

// Decoder guesses a bit by one feature: it is 1 where the feature is above (or, if Below is
// set, not above) a threshold.
type Decoder struct {
	Feature   string
	Threshold float64
	Below     bool
}

// Guess is the decoder's guess. A feature that is not there is less than any that is.
func (d Decoder) Guess(of map[string]float64) bool {
	value, there := of[d.Feature]
	if !there {
		value = math.Inf(-1)
	}
	return (value > d.Threshold) != d.Below
}

// train finds the decoder that guesses the most bits of the trials right.
func train(trials []Trial, seen []map[string]float64) Decoder {
	best, most := Decoder{}, -1
	for _, name := range namesIn(seen) {
		d, right := trainOn(name, trials, seen)
		if right > most {
			best, most = d, right
		}
	}
	return best
}

// featuresOf are those of each trial.
func featuresOf(way Way, trials []Trial) []map[string]float64 {
	all := make([]map[string]float64, len(trials))
	for i, t := range trials {
		before := t.Seen
		if i > 0 {
			before = trials[i-1].Seen
		}
		all[i] = features(way, t.Seen, before)
	}
	return all
}

// namesIn are the features that occur in enough trials to be learnt from, in an order of
// their own, so that the same trials train the same decoder.
func namesIn(seen []map[string]float64) []string {
	counts := map[string]int{}
	for _, one := range seen {
		for name := range one {
			counts[name]++
		}
	}
	least := int(math.Ceil(commonWord * float64(len(seen))))
	var names []string
	for name, n := range counts {
		isWord := strings.HasPrefix(name, "word ")
		if n >= least && (!isWord || n <= len(seen)-least) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// trainOn finds the threshold for one feature, and how many trials it guesses right.
func trainOn(name string, trials []Trial, seen []map[string]float64) (best Decoder, right int) {
	type sample struct {
		value float64
		bit   bool
	}
	samples, ones := make([]sample, len(trials)), 0
	for i, t := range trials {
		value, there := seen[i][name]
		if !there {
			value = math.Inf(-1)
		}
		samples[i] = sample{value, t.Bit}
		if t.Bit {
			ones++
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.value, b.value) })
	best.Feature = name
	zerosBelow, onesBelow := 0, 0
	for i, s := range samples {
		if s.bit {
			onesBelow++
		} else {
			zerosBelow++
		}
		if i+1 < len(samples) && samples[i+1].value == s.value {
			continue // no threshold lies between equals
		}
		threshold := s.value
		if i+1 < len(samples) && !math.IsInf(s.value, 0) {
			threshold = (s.value + samples[i+1].value) / 2
		}
		if above := zerosBelow + ones - onesBelow; above > right {
			best.Threshold, best.Below, right = threshold, false, above
		}
		if below := onesBelow + len(trials) - ones - zerosBelow; below > right {
			best.Threshold, best.Below, right = threshold, true, below
		}
	}
	return best, right
}

// Measure trains a decoder on the first trials, and has it guess the bits of the others, of
// which there were so many a second.
func Measure(way Way, trials []Trial, learning int, slots float64) Rate {
	seen := featuresOf(way, trials)
	d := train(trials[:learning], seen[:learning])
	right := 0
	for i := learning; i < len(trials); i++ {
		if d.Guess(seen[i]) == trials[i].Bit {
			right++
		}
	}
	rate := RateOf(right, len(trials)-learning, slots)
	rate.Feature = d.Feature
	return rate
}
