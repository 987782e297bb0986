package report

import (
	"fmt"
	"slices"
	"strings"
)

// Check is one question to the guest.
type Check struct {
	Name string
	// Fails: it is the control, which must fail with a detail that has this in it.
	Fails string
}

// The names of the checks.
const (
	Control       = "control"
	Guest         = "guest"
	Doctor        = "doctor"
	CgroupSuite   = "cgroup-suite"
	UnitStarts    = "unit-starts"
	UnitSandboxed = "unit-sandboxed"
	RunGVisor     = "run-gvisor"
	RunRunc       = "run-runc"
	Limits        = "limits"
	Processes     = "processes-limited"
	Memory        = "memory"
	Pause         = "pause"
	Snapshot      = "snapshot"
	Restart       = "restart-adopts"
	Killed        = "kill-adopts"
	Stop          = "stop-leaves-nothing"
	User          = "user-delegated"
	RuncSuite     = "runc-suite"
	GVisorSuite   = "gvisor-suite"
	Demo          = "demo"
)

// Checks are all that a guest answers, in their order.
func Checks() []Check {
	return []Check{
		{Name: Control, Fails: "no controller of version 1 is mounted"},
		{Name: Guest},
		{Name: Doctor},
		{Name: CgroupSuite},
		{Name: UnitStarts},
		{Name: UnitSandboxed},
		{Name: RunGVisor},
		{Name: RunRunc},
		{Name: Limits},
		{Name: Processes},
		{Name: Memory},
		{Name: Pause},
		{Name: Snapshot},
		{Name: Demo},
		{Name: Restart},
		{Name: Killed},
		{Name: Stop},
		{Name: User},
		{Name: RuncSuite},
		{Name: GVisorSuite},
	}
}

// Asked are the checks with these names, in their order; of no names all.
// A name that no check has is an error: who misspells one has proved nothing.
func Asked(names []string) ([]Check, error) {
	var asked []Check
	found := 0
	for _, c := range Checks() {
		named := slices.Contains(names, c.Name)
		if named {
			found++
		}
		if named || len(names) == 0 {
			asked = append(asked, c)
		}
	}
	if found != len(names) {
		return nil, fmt.Errorf("of the checks %q some are twice or none: those that there are, checks.go lists", names)
	}
	return asked, nil
}

// Judge says of a check what is wrong with its result; nil if it is as it must be. One that
// did not come is inconclusive, which is a failure.
func Judge(c Check, results map[string]Result) error {
	r, there := results[c.Name]
	switch {
	case !there:
		return fmt.Errorf("INCONCLUSIVE: the guest says nothing of %s", c.Name)
	case r.Detail == "":
		return fmt.Errorf("INCONCLUSIVE: %s says nothing of what was seen", c.Name)
	case c.Fails == "" && !r.Passed:
		return fmt.Errorf("%s failed: %s", c.Name, r.Detail)
	case c.Fails != "" && (r.Passed || !strings.Contains(r.Detail, c.Fails)):
		return fmt.Errorf("INCONCLUSIVE: the control must fail with %q, and says (passed: %t) %s", c.Fails, r.Passed, r.Detail)
	}
	return nil
}

// Step says where a guest is whose report is this far: at the first of the checks that are
// asked for without a result.
func Step(text string, asked []Check) string {
	results, err := Read(strings.NewReader(text))
	if err == nil {
		return "its end"
	}
	if text == "" {
		return "its start"
	}
	for _, c := range asked {
		if _, there := results[c.Name]; !there {
			return "the check " + c.Name
		}
	}
	return "its end"
}

// Unknown are results of no check.
func Unknown(results map[string]Result) []string {
	known := map[string]bool{}
	for _, c := range Checks() {
		known[c.Name] = true
	}
	var names []string
	for name := range results {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}
