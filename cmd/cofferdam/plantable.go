package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// printPlan prints the plan: the table and its totals on stdout, or the JSON.
func (p *planner) printPlan(made api.Plan) error {
	return writeAnswer(made, p.flags.json, func(w io.Writer, made api.Plan) error { return writePlan(w, made, time.Now()) })
}

// judgePlan tells the exit of a plan: nil if an install would go through.
func judgePlan(made api.Plan) error {
	n := countPlan(made)
	switch {
	case n.errors > 0:
		return &exitError{code: exitFailure}
	case n.held+n.denied > 0:
		return &exitError{code: exitPlanned}
	}
	return nil
}

// planCount are the totals of a plan.
type planCount struct {
	allowed, held, denied, errors int
	observed                      int // of the allowed: only since the policy observes

	bytes   int64
	unknown int      // releases of unknown size
	filed   []string // requests
	groups  []string // of these
}

func countPlan(made api.Plan) planCount {
	var n planCount
	for _, r := range made.Releases {
		switch r.Effect {
		case plan.EffectAllow:
			n.allowed++
			if r.Would != "" {
				n.observed++
			}
		case plan.EffectHold:
			n.held++
		case plan.EffectError:
			n.errors++
		default:
			n.denied++
		}
		n.bytes += r.Size
		if r.Size == 0 {
			n.unknown++
		}
		if r.Approval != "" && !slices.Contains(n.filed, r.Approval) {
			n.filed = append(n.filed, r.Approval)
			if !slices.Contains(n.groups, r.Group) {
				n.groups = append(n.groups, r.Group)
			}
		}
	}
	return n
}

// writePlan writes the table, what is behind each verdict that is no plain yes,
// the totals, and what an install would meet.
func writePlan(out io.Writer, made api.Plan, now time.Time) error {
	var b strings.Builder
	if len(made.Releases) > 0 {
		planTable(&b, made, now, ui.Width(out))
	}
	for _, line := range planReasons(made) {
		b.WriteString(line + "\n")
	}
	for _, note := range made.Notes {
		fmt.Fprintf(&b, "note: %s\n", ui.Printable(note))
	}
	n := countPlan(made)
	fmt.Fprintf(&b, "%s\n%s\n", n.totals(len(made.Releases)), n.outlook())
	for _, line := range n.describeAsked() {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// describeAsked says which requests were filed, and how to answer all of them or some.
func (n planCount) describeAsked() []string {
	if len(n.filed) == 0 {
		return nil
	}
	all := strings.Join(n.filed, " ")
	group := all
	if len(n.groups) == 1 && n.groups[0] != "" {
		group = n.groups[0]
	}
	return []string{
		"asked for: " + ui.Printable(all),
		"read them with: cofferdam approvals show " + ui.Printable(n.filed[0]),
		"answer all with: cofferdam approvals approve --scope policy " + ui.Printable(group) + " (or some, by their ids)",
	}
}

// planReasons returns a line for each rule that says no or asks, with its first
// release as the example, and one for each release that was never shown.
func planReasons(made api.Plan) []string {
	type verdict struct{ effect, rule string }
	var lines []string
	place, count := map[verdict]int{}, map[verdict]int{}
	for _, r := range made.Releases {
		key := verdict{r.Effect + r.Would, r.Rule}
		if r.Effect == plan.EffectError {
			lines = append(lines, fmt.Sprintf("%s %s: %s", ui.Printable(r.Name), ui.Printable(r.Version), ui.Printable(r.Reason)))
			continue
		}
		if r.Effect == plan.EffectAllow && r.Would == "" {
			continue
		}
		if count[key]++; count[key] == 1 {
			place[key] = len(lines)
			lines = append(lines, fmt.Sprintf("%s %s, by %s: %s", ui.Printable(r.Name), ui.Printable(r.Version), orDash(ui.Printable(r.Rule)), ui.Printable(r.Reason)))
		}
	}
	for key, n := range count {
		if n > 1 {
			lines[place[key]] += fmt.Sprintf(" (and %d more)", n-1)
		}
	}
	return lines
}

func planTable(out io.Writer, made api.Plan, now time.Time, width int) {
	rows := [][]string{{"PACKAGE", "VERSION", "KIND", "SIZE", "AGE", "SCRIPTS", "VERDICT", "RULE", "WANTED BY"}}
	for _, r := range made.Releases {
		scripts := "-"
		if r.Scripts {
			scripts = "yes"
		}
		rows = append(rows, []string{
			strings.Repeat("  ", min(r.Depth, maxIndent)) + ui.Printable(r.Name), ui.Printable(r.Version), orDash(ui.Printable(r.Kind)), sizeOf(r.Size), describeAge(r.Published, now),
			scripts, verdictWord(r), orDash(ui.Printable(r.Rule)), wantedText(r.WantedBy),
		})
	}
	for _, line := range ui.Columns(rows, width) {
		_, _ = io.WriteString(out, line+"\n") // into memory
	}
}

// maxIndent bounds how far a deep tree is moved to the right.
const maxIndent = 12

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func verdictWord(r api.PlanRelease) string {
	switch {
	case r.Effect == plan.EffectAllow && r.Would != "":
		return "would " + r.Would
	case r.Effect == plan.EffectAllow:
		return "allowed"
	case r.Effect == plan.EffectHold:
		return "would wait"
	case r.Effect == plan.EffectError:
		return "ERROR"
	}
	return "refused"
}

// wantedText names the first one who wanted it, and how many others.
func wantedText(wanted []string) string {
	if len(wanted) == 0 {
		return "-"
	}
	text := ui.Printable(wanted[0])
	if len(wanted) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(wanted)-1)
	}
	return text
}

// sizeOf is a size for people.
func sizeOf(n int64) string {
	const k = 1000
	switch {
	case n <= 0:
		return "-"
	case n < k:
		return fmt.Sprintf("%d B", n)
	case n < k*k:
		return fmt.Sprintf("%.1f kB", float64(n)/k)
	case n < k*k*k:
		return fmt.Sprintf("%.1f MB", float64(n)/(k*k))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(k*k*k))
}

// describeAge says how long ago a release was published, in whole units.
func describeAge(published string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, published)
	if err != nil {
		return "-"
	}
	const day = 24 * time.Hour
	switch d := now.Sub(at); {
	case d < 0:
		return "future"
	case d < day:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	case d < 365*day:
		return fmt.Sprintf("%d d", int(d/day))
	default:
		return fmt.Sprintf("%d y", int(d/(365*day)))
	}
}

// totals is "12 packages, 4.1 MB: 9 allowed, 2 would wait for a person, 1 refused".
func (n planCount) totals(all int) string {
	if all == 0 {
		return "0 packages: the install brings nothing"
	}
	size := sizeOf(n.bytes)
	switch {
	case n.bytes == 0:
		size = "of unknown size"
	case n.unknown > 0:
		size = "at least " + size
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{n.allowed, "allowed"}, {n.held, "would wait for a person"}, {n.denied, "refused"}, {n.errors, "never shown by the gateway"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	packages := "packages"
	if all == 1 {
		packages = "package"
	}
	total := fmt.Sprintf("%d %s, %s: %s", all, packages, size, strings.Join(parts, ", "))
	if n.observed > 0 {
		total += fmt.Sprintf("; THE POLICY ONLY OBSERVES, and would refuse or hold %d of them", n.observed)
	}
	return total
}

// outlook says what an install would meet now.
func (n planCount) outlook() string {
	switch {
	case n.errors > 0:
		return "this plan can't be relied on: its resolver names what the gateway never showed"
	case n.denied > 0:
		return "an install now would fail: the policy refuses part of it"
	case n.held > 0:
		return "an install now would wait for a person, as packages.on_hold says"
	}
	return "an install now would go through"
}
