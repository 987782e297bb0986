package isolation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	// Figures of the published tables of exact binomial intervals.
	for _, c := range []struct {
		hits, n   int
		low, high float64
	}{
		{0, 10, 0, 0.3085}, {5, 10, 0.1871, 0.8129}, {10, 10, 0.6915, 1}, {90, 100, 0.8238, 0.9510}, {1000, 1000, 0.9963, 1}, {500, 1000, 0.4685, 0.5315},
	} {
		got := BoundShare(c.hits, c.n)
		if math.Abs(got.Low-c.low) > 0.0001 || math.Abs(got.High-c.high) > 0.0001 {
			t.Errorf("BoundShare(%d, %d) = %.4f to %.4f, want %.4f to %.4f", c.hits, c.n, got.Low, got.High, c.low, c.high)
		}
	}
	for right, want := range map[float64]float64{0: 0, 0.4: 0, 0.5: 0, 0.889972: 0.5, 1: 1} {
		if got := Capacity(right); math.Abs(got-want) > 0.0001 {
			t.Errorf("Capacity(%v) = %v, want %v", right, got, want)
		}
	}
	if got := AtLeast(8, 10, 0.5); math.Abs(got-56.0/1024) > 1e-9 {
		t.Errorf("AtLeast(8, 10, 0.5) = %v, want %v", got, 56.0/1024)
	}
}

// planted makes trials of a channel whose receiver sees what see says.
func planted(seed uint64, n int, see func(r *rand.Rand, bit bool) Observation) []Trial {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([]Trial, n)
	for i := range all {
		bit := r.IntN(2) == 1
		all[i] = Trial{bit, see(r, bit)}
	}
	return all
}

func randomID(r *rand.Rand) string {
	const letters = "23456789abcdefghjkmnpqrstuvwxyz"
	id := make([]byte, 6)
	for i := range id {
		id[i] = letters[r.IntN(len(letters))]
	}
	return string(id)
}

// TestPlantedLeaks: the decoder finds each kind of leak, at the rate at which it was
// planted.
func TestPlantedLeaks(t *testing.T) {
	t.Parallel()
	counter := 1000
	kinds := []struct {
		name  string
		way   Way
		right float64 // the share of guesses of the best decoder
		see   func(r *rand.Rand, bit bool) Observation
	}{
		{"a counter of both", State, 1, func(_ *rand.Rand, bit bool) Observation {
			counter++
			if bit {
				counter++
			}
			return Observation{Text: fmt.Sprintf("403 Forbidden\nrequest %d", counter)}
		}},
		{"a counter in base 36, beside random ids", State, 1, func(r *rand.Rand, bit bool) Observation {
			counter++
			if bit {
				counter++
			}
			return Observation{Text: "request " + randomID(r) + " is ap-" + fmt.Sprintf("%06s", base36(counter))}
		}},
		{"a word", State, 1, func(r *rand.Rand, bit bool) Observation {
			text := "name " + randomID(r) + " is not allowed"
			if bit {
				text += " again"
			}
			return Observation{Text: text}
		}},
		{"a word, half of the time", State, 0.75, func(r *rand.Rand, bit bool) Observation {
			if bit && r.IntN(2) == 0 {
				return Observation{Text: "taken"}
			}
			return Observation{Text: "free"}
		}},
		{"a length", State, 1, func(_ *rand.Rand, bit bool) Observation {
			if bit {
				return Observation{Text: "...."}
			}
			return Observation{Text: "..."}
		}},
		{"a time", Timing, 1, func(r *rand.Rand, bit bool) Observation {
			took := time.Duration(30+r.IntN(10)) * time.Millisecond
			if bit {
				took -= 25 * time.Millisecond
			}
			return Observation{Took: took}
		}},
		{"a time of the host's clock", Timing, 1, stamped},
		{"how long the host took", Timing, 1, func(_ *rand.Rand, bit bool) Observation {
			if bit {
				return Observation{Text: `{"took_ms":12}`}
			}
			return Observation{Text: `{"took_ms":11}`}
		}},
		{"a time in noise", Timing, 0.8413, func(r *rand.Rand, bit bool) Observation { // two bells two deviations apart
			took := r.NormFloat64()
			if bit {
				took += 2
			}
			return Observation{Took: time.Duration(float64(time.Millisecond) * (100 + took))}
		}},
	}
	for _, k := range kinds {
		trials := planted(7, 4000, k.see)
		got := Measure(k.way, trials, 1000, 10)
		share := BoundShare(got.Right, got.Trials)
		if k.right < 1 && (k.right < share.Low-0.01 || k.right > share.High+0.01) || k.right == 1 && share.High < 1 {
			t.Errorf("%s: %d of %d right by %s, want %.2f", k.name, got.Right, got.Trials, got.Feature, k.right)
		}
		if v := Decide(Row{Rate: got, Control: true}, 40); v != Found {
			t.Errorf("%s: the verdict on a control is %s", k.name, v)
		}
		if v := Decide(Row{Rate: got}, 40); v != Shared {
			t.Errorf("%s: the verdict on what must not be shared is %s", k.name, v)
		}
	}
}

// stamped is an answer that says when it was made, later where the bit is 1.
func stamped(r *rand.Rand, bit bool) Observation {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(1_000_000)) * time.Nanosecond)
	later := at.Add(time.Duration(5+r.IntN(3)) * time.Millisecond)
	if bit {
		later = later.Add(9 * time.Millisecond)
	}
	return Observation{Text: fmt.Sprintf(`{"asked":%q,"started":%q,"took_ms":%d}`, at.Format(time.RFC3339Nano), later.Format(time.RFC3339Nano), later.Sub(at).Milliseconds())}
}

// TestStampsAreTimes: times of the host's clock tell nothing as state; beside them a word does.
func TestStampsAreTimes(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]Verdict{"": Nothing, " again": Shared} {
		trials := planted(9, 4000, func(r *rand.Rand, bit bool) Observation {
			seen := stamped(r, bit)
			if bit {
				seen.Text += word
			}
			return seen
		})
		if v := Decide(Row{Rate: Measure(State, trials, 1000, 10)}, 40); v != want {
			t.Errorf("with the word %q the verdict on the state is %s", word, v)
		}
	}
}

func base36(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	for _, place := range []int{36 * 36 * 36, 36 * 36, 36, 1} {
		out.WriteByte(digits[n/place%36])
	}
	return out.String()
}

// TestNothingIsFoundWhereNothingIs: of four hundred channels that carry nothing, no more
// than a few look as if they did, and hardly any after the correction for so many.
func TestNothingIsFoundWhereNothingIs(t *testing.T) {
	t.Parallel()
	const channels = 400
	outside, told := 0, 0
	for seed := range uint64(channels) {
		counter := 0
		way := []Way{State, Timing}[seed%2]
		trials := planted(seed, 400, func(r *rand.Rand, _ bool) Observation {
			counter += 1 + r.IntN(2)
			return Observation{
				Text: fmt.Sprintf("request %s of %d: try %s", randomID(r), counter, []string{"later", "again"}[r.IntN(2)]),
				Took: time.Duration(r.Int64N(1e6)),
			}
		})
		got := Measure(way, trials, 200, 10)
		if got.Within.Low > 0 {
			outside++
		}
		if v := Decide(Row{Rate: got}, channels); v != Nothing {
			told++
		}
	}
	if told > 2 { // one such channel is there in one of twenty sets of seeds, three in one of fifty thousand
		t.Errorf("%d of %d channels that carry nothing look as if they did", told, channels)
	}
	// One in forty is expected above its interval: 10.
	if outside > 25 {
		t.Errorf("%d of %d intervals leave out nothing, which is what there was", outside, channels)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	sure := RateOf(990, 1000, 10)
	chance := RateOf(505, 1000, 10)
	for _, c := range []struct {
		row  Row
		want Verdict
	}{
		{Row{Rate: chance}, Nothing},
		{Row{Rate: sure}, Shared},
		{Row{Rate: sure, Stated: 20}, Bounded},
		{Row{Rate: sure, Stated: 5}, Exceeded},
		{Row{Rate: chance, Stated: 5}, Nothing},
		{Row{Rate: chance, Stated: 0.01}, Exceeded},
		{Row{Rate: sure, Control: true}, Found},
		{Row{Rate: chance, Control: true}, Inconclusive},
		{Row{Rate: chance, Note: "the sender did nothing"}, Inconclusive},
	} {
		if got := Decide(c.row, 40); got != c.want {
			t.Errorf("%+v: %s, want %s", c.row, got, c.want)
		}
	}
}
