package expression

import (
	"unicode"
	"unicode/utf8"
)

// Expression is a parsed expression. It is not changed by use, so that several
// goroutines may share it.
type Expression struct {
	steps []step
	start int
	// first has a bit for each ASCII character that can begin what is found;
	// all are set if nothing at all can be found.
	first [2]uint64
	// inner: it has a "\B", on which releases of Python disagree.
	inner bool
}

// Parse reads an expression.
func Parse(text string) (*Expression, error) {
	tree, err := parseExpression(text)
	if err != nil {
		return nil, err
	}
	b := builder{steps: []step{{op: accept}}}
	e := &Expression{start: b.layNode(tree, 0)}
	if b.err != nil {
		return nil, b.err
	}
	e.steps = b.steps
	for _, s := range e.steps {
		e.inner = e.inner || s.op == check && (s.place == noWordEdge || s.place == noASCIIWordEdge)
	}
	e.collectFirst(e.start, make([]bool, len(e.steps)))
	return e, nil
}

// Size is how many steps the expression takes, at most 20000.
func (e *Expression) Size() int { return len(e.steps) }

// collectFirst collects into first what can be taken from a step on, as if every
// place were as it should be.
func (e *Expression) collectFirst(i int, seen []bool) {
	for !seen[i] {
		seen[i] = true
		s := &e.steps[i]
		switch s.op {
		case accept:
			e.first = [2]uint64{^uint64(0), ^uint64(0)}
			return
		case take:
			e.first[0] |= s.set.low[0]
			e.first[1] |= s.set.low[1]
			return
		case fork:
			e.collectFirst(s.other, seen)
		case check:
		}
		i = s.next
	}
}

// Find reports whether the expression is found anywhere in a text. ok is false
// where Python has no one answer: the text is not UTF-8; or it is empty and the
// expression has a "\B", which is found in an empty text by some of Python's
// releases and not by others.
func (e *Expression) Find(text string) (found, ok bool) {
	found, ok, _ = e.FindUntil(text, func() bool { return false })
	return found, ok
}

// FindUntil finds, as Find does, and gives up when over says so: it is asked at the beginning and after each 64 KiB
// of the text. givenUp tells that it has, and that found and ok say nothing.
func (e *Expression) FindUntil(text string, over func() bool) (found, ok, givenUp bool) {
	if !utf8.ValidString(text) || e.inner && text == "" {
		return false, false, false
	}
	ask := 0
	m := machine{steps: e.steps, seen: make([]int, len(e.steps))}
	here := position{before: none, left: len(text)}
	here.after, here.size = decodeRune(text)
	for at := 0; ; {
		if at >= ask {
			if over() {
				return false, false, true
			}
			ask = at + askEach
		}
		if len(m.now) > 0 || e.mayBegin(here.after) {
			m.followStep(e.start, &here, at)
		}
		if m.found || here.after == none {
			return m.found, true, false
		}
		at += here.size
		here.before, here.left = here.after, len(text)-at
		here.after, here.size = decodeRune(text[at:])
		m.takeRune(&here, at)
		if m.found {
			return true, true, false
		}
	}
}

// askEach is after how many bytes of a text FindUntil asks.
const askEach = 64 << 10

// mayBegin tells whether what is found can begin with a character.
func (e *Expression) mayBegin(r rune) bool {
	return r < 0 || r > unicode.MaxASCII || e.first[r/64]&(1<<(r%64)) != 0
}

// none stands for what is before the text and after it.
const none rune = -1

func decodeRune(text string) (rune, int) {
	if text == "" {
		return none, 0
	}
	return utf8.DecodeRuneInString(text)
}

// position is a place between two characters.
type position struct {
	before, after rune
	size          int // of after, in bytes
	left          int // bytes to the text's end
}

func (p *position) isPlace(c positionKind) bool {
	switch c {
	case textBegin:
		return p.before == none
	case textEnd:
		return p.after == none
	case lastLineEnd:
		return p.after == none || p.after == '\n' && p.left == 1
	case lineBegin:
		return p.before == none || p.before == '\n'
	case lineEnd:
		return p.after == none || p.after == '\n'
	case wordEdge:
		return isWord(p.before, false) != isWord(p.after, false)
	case noWordEdge:
		return isWord(p.before, false) == isWord(p.after, false)
	case asciiWordEdge:
		return isWord(p.before, true) != isWord(p.after, true)
	case noASCIIWordEdge:
		return isWord(p.before, true) == isWord(p.after, true)
	}
	return false
}

// machine follows all ways through the steps at once, character by character.
type machine struct {
	steps []step
	now   []int // takes that wait for the next character
	old   []int // the memory of the last ones
	seen  []int // by step: one more than the position at which it was last reached
	stack []int
	found bool
}

// followStep reaches a step, and what can be reached from it without a character.
func (m *machine) followStep(i int, p *position, at int) {
	m.stack = append(m.stack[:0], i)
	for len(m.stack) > 0 {
		i := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if m.seen[i] == at+1 {
			continue
		}
		m.seen[i] = at + 1
		switch s := &m.steps[i]; s.op {
		case accept:
			m.found = true
			return
		case take:
			m.now = append(m.now, i)
		case check:
			if p.isPlace(s.place) {
				m.stack = append(m.stack, s.next)
			}
		case fork:
			m.stack = append(m.stack, s.other, s.next)
		}
	}
}

// takeRune goes over the character before p, to p.
func (m *machine) takeRune(p *position, at int) {
	waiting := m.now
	m.now = m.old[:0]
	for _, i := range waiting {
		if s := &m.steps[i]; s.set.hasRune(p.before) {
			if m.followStep(s.next, p, at); m.found {
				return
			}
		}
	}
	m.old = waiting
}
