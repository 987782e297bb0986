package isolation

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Verdict is what a measurement comes to.
type Verdict string

// The verdicts. All but the first three are failures.
const (
	Nothing      Verdict = "nothing"      // it is not told from chance
	Bounded      Verdict = "bounded"      // it carries no more than is stated
	Found        Verdict = "found"        // a control's leak was found
	Shared       Verdict = "SHARED"       // state of one is read by the other
	Exceeded     Verdict = "EXCEEDED"     // it carries more than is stated
	Inconclusive Verdict = "INCONCLUSIVE" // a control's leak was not found, or the sender did not send
)

// Failed tells whether a verdict fails the run.
func (v Verdict) Failed() bool { return v == Shared || v == Exceeded || v == Inconclusive }

// Row is one measurement of the table.
type Row struct {
	Channel string `json:"channel"`
	Shares  string `json:"shares"` // what the two share
	Way     Way    `json:"way"`
	Rate
	Slots   float64 `json:"slots_per_second"`
	Stated  float64 `json:"stated"` // the most that it may carry, in bits per second; 0: nothing may be found
	Control bool    `json:"control,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Note says why a row is inconclusive.
	Note string `json:"note,omitempty"`
}

// significance is how likely chance may look like a leak in all rows of a run together.
const significance = 0.05

// Decide is the verdict on a measurement, one of so many in the run (Bonferroni's
// correction).
func Decide(r Row, of int) Verdict {
	told := r.Chance < significance/float64(max(of, 1))
	switch {
	case r.Note != "":
		return Inconclusive
	case r.Control && told:
		return Found
	case r.Control:
		return Inconclusive
	case !told && r.Stated == 0:
		return Nothing
	case r.Stated > 0 && r.Within.High > r.Stated:
		return Exceeded
	case !told:
		return Nothing
	case r.Stated > 0:
		return Bounded
	}
	return Shared
}

// WriteTable writes rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "channel\tread from\ttrials\tright\tbits/s\tat 95 %\tmay be\tverdict")
	for _, r := range rows {
		name, stated := r.Channel, "0"
		if r.Control {
			name += " (leaky build)"
		}
		if r.Stated > 0 {
			stated = fmt.Sprintf("%.3g", r.Stated)
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%.1f %%\t%.2f\t%.2f to %.2f\t%s\t%s", name, r.Way, r.Trials, 100*float64(r.Right)/float64(max(r.Trials, 1)),
			r.Bits, r.Within.Low, r.Within.High, stated, r.Verdict)
		if r.Verdict != Nothing && r.Feature != "" {
			fmt.Fprintf(out, " (%s)", r.Feature)
		}
		if r.Note != "" {
			fmt.Fprintf(out, ": %s", r.Note)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// WriteJSON writes rows for programs.
func WriteJSON(w io.Writer, rows []Row) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{"confidence": confidence, "rows": rows})
}
