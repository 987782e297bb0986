package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of what `go test -json` tells.
type event struct {
	Action, Package, Test, Output string
}

// execution is one start of a package's tests: the first of all of them, a later
// one of those that failed.
type execution struct {
	ends    map[string]string // of tests, by name: pass, fail or skip; "" before that
	printed map[string][]string
	end     string // of the package
	// saidFailed is whether the testing package itself said at the end that tests failed;
	// it does not where the process ended in another way.
	saidFailed bool
}

// story is what happened to each package, execution by execution.
type story map[string][]*execution

// read makes a story of the events that gotestsum keeps. It adds empty lines of
// its own.
func read(r io.Reader) (story, error) {
	s := story{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("an event of the tests can't be read: %w", err)
		}
		if e.Package != "" {
			s.add(e)
		}
	}
	return s, lines.Err()
}

func (s story) add(e event) {
	all := s[e.Package]
	if len(all) == 0 || all[len(all)-1].end != "" {
		all = append(all, &execution{ends: map[string]string{}, printed: map[string][]string{}})
		s[e.Package] = all
	}
	x := all[len(all)-1]
	switch e.Action {
	case "run":
		x.ends[e.Test] = ""
	case "output":
		x.printed[e.Test] = append(x.printed[e.Test], e.Output)
		x.saidFailed = x.saidFailed || e.Test == "" && e.Output == "FAIL\n"
	case "pass", "fail", "skip":
		if e.Test == "" {
			x.end = e.Action
		} else {
			x.ends[e.Test] = e.Action
		}
	}
}

// flaky is a test that failed, and passed when it was run once more.
type flaky struct {
	Package, Test string
	Printed       []string // when it failed
}

// verdict says which tests are flaky, and what a second run can't make good: a
// package whose process ended in another way than by its tests' end, so that some
// were not asked (an exit, a signal, a leak found after them all), and a test that
// failed and has passed in no later run.
func (s story) verdict() (again []flaky, red []string) {
	for _, pkg := range slices.Sorted(maps.Keys(s)) {
		first, later := s[pkg][0], s[pkg][1:]
		if first.end != "fail" {
			continue
		}
		if why := first.cut(); why != "" {
			red = append(red, fmt.Sprintf("%s %s: that is no failure of a test, and no second run of one makes it good", pkg, why))
		}
		for _, test := range slices.Sorted(maps.Keys(first.ends)) {
			if first.ends[test] != "fail" {
				continue
			}
			passed := slices.ContainsFunc(later, func(x *execution) bool { return x.ends[test] == "pass" })
			if !passed {
				red = append(red, fmt.Sprintf("%s of %s failed, and passed in no second run", test, pkg))
			} else if !first.below(test) {
				again = append(again, flaky{pkg, test, first.printed[test]})
			}
		}
	}
	return again, red
}

// cut says how a failed execution ended, where it is not by the end of its tests.
func (x *execution) cut() string {
	var open []string
	failed := false
	for _, test := range slices.Sorted(maps.Keys(x.ends)) {
		switch x.ends[test] {
		case "":
			open = append(open, test)
		case "fail":
			failed = true
		}
	}
	switch {
	case len(open) > 0:
		return "ended during " + strings.Join(open, ", ")
	case !failed:
		return "failed beside its tests"
	case !x.saidFailed:
		return "ended before all its tests"
	}
	return ""
}

// below tells whether a test failed for one of its own subtests.
func (x *execution) below(test string) bool {
	for name, end := range x.ends {
		if end == "fail" && strings.HasPrefix(name, test+"/") {
			return true
		}
	}
	return false
}
