package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is the outcome of a run.
type table struct {
	Machine string `json:"machine"`
	Took    string `json:"took"`
	Rows    []row  `json:"rows"`
	Memory  []use  `json:"memory"`
}

// row is one figure and what stands beside it.
type row struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit"` // ms, s, MB, MB/s or 1/s
	Rounds int     `json:"rounds"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99,omitzero"` // of speeds: what 99 of 100 reach

	Reference       string  `json:"reference,omitempty"`
	ReferenceMedian float64 `json:"reference_median,omitzero"`
	ReferenceP99    float64 `json:"reference_p99,omitzero"`
	Ratio           float64 `json:"ratio,omitzero"` // of the medians

	Target string `json:"target,omitempty"`
	Met    *bool  `json:"met,omitempty"` // nil where there is no target
}

// figure makes a row of a sample; of speeds the slow end is the interesting one.
func figure(what, unit string, s sample) row {
	r := row{What: what, Unit: unit, Rounds: len(s), Median: s.median(), P99: s.quantile(0.99)}
	if unit == unitSpeed || unit == unitRate {
		r.P99 = s.quantile(0.01)
	}
	return r
}

const (
	unitTime   = "ms"
	unitSpeed  = "MB/s"
	unitMemory = "MB"
	unitCount  = "count"
)

// beside adds the reference.
func (r row) beside(what string, s sample) row {
	f := figure(what, r.Unit, s)
	r.Reference, r.ReferenceMedian, r.ReferenceP99 = what, f.Median, f.P99
	r.Ratio = r.Median / f.Median
	return r
}

// target adds what the median has to be, and whether it is.
func (r row) target(text string, met bool) row {
	r.Target, r.Met = text, &met
	return r
}

func (t *table) add(r row) { t.Rows = append(t.Rows, r) }

func (t *table) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}

func (t *table) writeText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s; %s\n\n", t.Machine, t.Took); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(tw, strings.Join(cells, "\t")) } // Flush reports it
	line("what", "n", "median", "p99", "unit", "beside it", "median", "p99", "ratio", "target", "")
	for _, r := range t.Rows {
		verdict := ""
		if r.Met != nil {
			verdict = map[bool]string{true: "met", false: "MISSED"}[*r.Met]
		}
		line(r.What, strconv.Itoa(r.Rounds), number(r.Median), number(r.P99), r.Unit,
			r.Reference, number(r.ReferenceMedian), number(r.ReferenceP99), ratio(r.Ratio), r.Target, verdict)
	}
	line()
	line("memory, MB", "", "PSS", "RSS")
	for _, u := range t.Memory {
		line(u.Role+" "+u.When, "", number(u.PSS), number(u.RSS))
	}
	return tw.Flush()
}

// number has three digits that matter; nothing for what was not measured.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

func ratio(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
