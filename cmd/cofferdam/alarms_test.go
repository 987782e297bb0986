package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestWhoeverWaitsForAlarmsGivesUp: of commands that end at one time each waits for its news as long
// as for an answer, and not for all that ask before.
func TestWhoeverWaitsForAlarmsGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &alarmNews{turn: make(chan struct{}, 1)} // somebody asks, and gets no answer
		if lines := n.listNewAlarms(t.Context()); len(lines) != 1 || !strings.Contains(lines[0], "not known") {
			t.Errorf("it is told %q", lines)
		}
		n.turn <- struct{}{}
		if lines := n.listNewAlarms(t.Context()); slices.Concat(lines, n.listNewAlarms(t.Context())) != nil {
			t.Errorf("an older daemon tells of alarms: %q", lines)
		}
	})
}
