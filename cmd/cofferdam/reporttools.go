package main

import (
	"fmt"

	"github.com/cofferdam-dev/cofferdam/api"
)

// toolRows are the rows of a summary's table about calls of tools.
func toolRows(tools []api.ToolUse, row func(what, name, version, why string)) {
	for _, t := range tools {
		if t.Calls > 0 {
			row("called", t.Name, timesText(t.Calls), toolFailures(t))
		}
		if t.Refused > 0 {
			row("refused", t.Name, timesText(t.Refused), t.Reason)
		}
	}
}

func called(t api.ToolUse) int   { return t.Calls }
func uncalled(t api.ToolUse) int { return t.Refused }

func toolCalls(tools []api.ToolUse, of func(api.ToolUse) int) (n int) {
	for _, t := range tools {
		n += of(t)
	}
	return n
}

// toolFailures says how many of a tool's calls failed; "" for none.
func toolFailures(t api.ToolUse) string {
	switch {
	case t.Failed == 0:
		return ""
	case t.Refused > 0: // the reason may be theirs
		return fmt.Sprintf("%d failed", t.Failed)
	}
	return fmt.Sprintf("%d failed: %s", t.Failed, t.Reason)
}
