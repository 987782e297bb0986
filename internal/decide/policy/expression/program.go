package expression

import (
	"errors"
	"slices"
)

// node is a part of a parsed expression.
type node struct {
	kind  stepKind
	parts []*node
	set   *set
	place positionKind
	// of a loop
	least, most int
}

type stepKind byte

const (
	sequence stepKind = iota // of parts
	choice                   // between parts
	loop                     // of its one part
	one                      // character of a set
	at                       // a place
)

// unlimited is the most of a loop without an end.
const unlimited = -1

// positionKind is a condition on where in the text one is.
type positionKind byte

const (
	textBegin positionKind = iota
	textEnd
	lastLineEnd // the text's end, or before a line feed that ends it
	lineBegin
	lineEnd
	wordEdge
	noWordEdge
	asciiWordEdge
	noASCIIWordEdge
)

// step is one instruction. Steps form a graph that begins at Expression.start.
type step struct {
	op    op
	next  int
	other int // of a fork
	set   *set
	place positionKind
}

type op byte

const (
	accept op = iota
	take      // a character of the set
	check     // the place
	fork
)

// maxSteps bounds what repeats of repeats come to.
const maxSteps = 20_000

var errTooLarge = errors.New("it is too large: its repeats come to more than 20000 steps")

// builder lays out steps from the end to the beginning, so that each knows
// what follows it.
type builder struct {
	steps []step
	err   error
}

func (b *builder) addStep(s step) int {
	if len(b.steps) >= maxSteps {
		b.err = errTooLarge
		return 0
	}
	b.steps = append(b.steps, s)
	return len(b.steps) - 1
}

// layNode puts n before next and returns where it begins.
func (b *builder) layNode(n *node, next int) int {
	if b.err != nil {
		return 0
	}
	switch n.kind {
	case one:
		return b.addStep(step{op: take, set: n.set, next: next})
	case at:
		return b.addStep(step{op: check, place: n.place, next: next})
	case loop:
		return b.layLoop(n, next)
	case choice:
		begin := b.layNode(n.parts[len(n.parts)-1], next)
		for i := len(n.parts) - 2; i >= 0; i-- {
			begin = b.addStep(step{op: fork, next: b.layNode(n.parts[i], next), other: begin})
		}
		return begin
	case sequence:
		for _, part := range slices.Backward(n.parts) {
			next = b.layNode(part, next)
		}
	}
	return next
}

func (b *builder) layLoop(n *node, next int) int {
	part, begin := n.parts[0], next
	if n.most == unlimited {
		begin = b.addStep(step{op: fork, other: next})
		inner := b.layNode(part, begin)
		if b.err == nil {
			b.steps[begin].next = inner
		}
	}
	for range n.most - n.least { // none if unlimited
		begin = b.addStep(step{op: fork, next: b.layNode(part, begin), other: next})
	}
	for range n.least {
		begin = b.layNode(part, begin)
	}
	return begin
}
