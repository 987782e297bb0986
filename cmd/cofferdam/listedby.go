package main

import (
	"regexp"
	"strings"
)

// listsOf has for each kind of thing that the daemon may not know the command that lists those that exist. The daemon does
// not say it: its other clients have no command line.
func listsOf() map[string]struct{ command, things string } {
	return map[string]struct{ command, things string }{
		"sandbox":  {"ps", "sandboxes"},
		"request":  {"approvals list --all", "requests"},
		"policy":   {"policy list", "policies"},
		"run":      {"audit list --kind sandbox", "runs"},
		"snapshot": {"snapshots list", "snapshots"},
		"home":     {"home list", "homes"},
		"token":    {"token list", "tokens"},
	}
}

// missingThing is a sentence about a thing with a name that does not exist.
var missingThing = regexp.MustCompile(`\bthere is no (\w+) (?:(?:named |and no \w+ )?"|\S+ any more\b)`)

// addLists has each line about something that does not exist end with the command that lists what does, unless it names one
// already: what is not in a copy of the log the daemon does not list.
func addLists(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		found := missingThing.FindStringSubmatch(line)
		if found == nil || strings.Contains(line, " lists the ") {
			continue
		}
		if list, ok := listsOf()[found[1]]; ok {
			lines[i] += "; cofferdam " + list.command + " lists the " + list.things
		}
	}
	return strings.Join(lines, "\n")
}
