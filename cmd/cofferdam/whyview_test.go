package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestNoFieldOfAToldRefusalIsLost: the type that has words has all that the wire's has.
func TestNoFieldOfAToldRefusalIsLost(t *testing.T) {
	t.Parallel()
	r := api.Refusal{
		Time: time.Unix(1, 0).UTC(), Run: "run", Sandbox: "sandbox", Package: api.Ref{Ecosystem: "python", Name: "foo", Version: "1"},
		File: "file", What: "what", Name: "name", Outcome: "outcome", Rule: "rule", Reason: "reason", Suggest: "suggest",
		RequestID: "request", Count: 2, Alarm: true, Approval: "approval", Cause: true,
	}
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(refusalOf(r)); err != nil || string(got) != string(want) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
