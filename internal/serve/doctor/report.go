// Package doctor says what this host can run: which controls hold, what is
// missing, and how to get it. It changes nothing on the host.
//
// Each check is one question with a status and a sentence. Sandboxes can run if no check failed; a
// warning is about something weaker or missing that a policy may ask for.
package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Status is how a check ended.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is one question about the host.
type Check struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Sentence string `json:"sentence"`
	HowToFix string `json:"how_to_fix,omitempty"`
}

// Report is what Examine found, in a fixed order.
type Report struct {
	Checks []Check `json:"checks"`
}

// Healthy says whether sandboxes can run here.
func (r Report) Healthy() bool {
	for _, c := range r.Checks {
		if c.Status == Fail {
			return false
		}
	}
	return true
}

// WriteText writes the report as a table: status, name, sentence, and under
// it how to fix what is not ok.
func (r Report) WriteText(w io.Writer) error {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, c.Name, text.Line(c.Sentence))
		if c.Status != OK && c.HowToFix != "" {
			fmt.Fprintf(&b, "%*s-> %s\n", width+8, "", text.Line(c.HowToFix))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func okCheck(name, format string, args ...any) Check {
	return Check{Name: name, Status: OK, Sentence: fmt.Sprintf(format, args...)}
}

func warnCheck(name, fix, format string, args ...any) Check {
	return Check{name, Warn, fmt.Sprintf(format, args...), fix}
}

func failCheck(name, fix, format string, args ...any) Check {
	return Check{name, Fail, fmt.Sprintf(format, args...), fix}
}
