package exchange

import (
	"context"
	"testing"
)

// TestOneRunsValuesHoldNoOtherUp: while a run's values are made into what is looked for, which takes as long
// as they are many, the requests of other runs begin, bring values and are looked through, and the run's own
// bring more. An asker gets in the answer what was known when it asked.
func TestOneRunsValuesHoldNoOtherUp(t *testing.T) {
	const first, second, others = "first-secret-value", "second-secret-value", "another-secret-value"
	r := NewRuns()
	makes, goOn := make(chan struct{}, 1), make(chan struct{})
	r.make = func(texts map[string][]string) *needles {
		if len(texts["first"]) > 0 {
			makes <- struct{}{}
			<-goOn
		}
		return newNeedles(texts)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.beginRequest(ctx, "slow")
	r.knowGiven("slow", Given{Secrets: map[string]string{"first": first}})
	before, after := make(chan *needles, 1), make(chan *needles, 1)
	go func() { before <- r.sought("slow") }()
	<-makes
	r.beginRequest(ctx, "quick")
	r.knowGiven("quick", Given{Secrets: map[string]string{"other": others}})
	if r.sought("quick").findInText(others) == "" {
		t.Error("INCONCLUSIVE: another run's value is not looked for")
	}
	r.knowGiven("slow", Given{Secrets: map[string]string{"second": second}})
	go func() { after <- r.sought("slow") }()
	close(goOn)
	if (<-before).findInText(first) == "" {
		t.Error("the value that was known is not looked for")
	}
	if both := <-after; both.findInText(first) == "" || both.findInText(second) == "" {
		t.Error("what came while it was made is not looked for")
	}
	if r.sought("slow").findInText(second) == "" {
		t.Error("it is forgotten")
	}
}
