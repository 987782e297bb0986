package pypi

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// marker is the condition of a requirement, read for its extras alone: what it asks of
// the system that it is installed on may hold.
type marker struct {
	words []string
	extra string // for which it is weighed; "": for whoever asks for none
	named []string
	deep  int
	wrong bool
}

// Written once; regexps are constant.
var markerWord = regexp.MustCompile(`^(?:"[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_.]*|===|==|!=|~=|<=|>=|<|>|[()])`)

const (
	maxMarkerWords = 2_000
	maxMarkerDepth = 50
)

// extrasOf are the extras of which each alone fulfils a condition that nothing but an
// extra fulfils; always: it may hold without one, or can't be read. Neither: it never
// holds. Clients weigh it once for each extra that they were asked for, and so do we.
func extrasOf(text string) (extras []string, always bool) {
	words, ok := markerWords(text)
	if !ok || len(words) == 0 {
		return nil, true
	}
	none := marker{words: words}
	if none.parseOr() || none.wrong || len(none.words) > 0 {
		return nil, true
	}
	for _, extra := range none.named {
		with := marker{words: words, extra: extra}
		if with.parseOr() && !slices.Contains(extras, extra) {
			extras = append(extras, extra)
		}
	}
	return extras, false
}

func markerWords(text string) (words []string, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		word := markerWord.FindString(text)
		if word == "" || len(words) == maxMarkerWords {
			return nil, false
		}
		words = append(words, word)
		text = text[len(word):]
	}
	return words, true
}

func (m *marker) nextToken() string {
	if len(m.words) == 0 {
		m.wrong = true
		return ""
	}
	word := m.words[0]
	m.words = m.words[1:]
	return word
}

func (m *marker) isAtWord(word string) bool { return len(m.words) > 0 && m.words[0] == word }

func (m *marker) parseOr() bool {
	holds := m.parseAnd()
	for m.isAtWord("or") {
		m.nextToken()
		holds = m.parseAnd() || holds
	}
	return holds
}

func (m *marker) parseAnd() bool {
	holds := m.parseOne()
	for m.isAtWord("and") {
		m.nextToken()
		holds = m.parseOne() && holds
	}
	return holds
}

// parseOne parses a comparison, or what stands in parentheses.
func (m *marker) parseOne() bool {
	if m.isAtWord("(") {
		m.nextToken()
		if m.deep++; m.deep > maxMarkerDepth {
			m.wrong = true
			return true
		}
		holds := m.parseOr()
		m.deep--
		m.wrong = m.wrong || m.nextToken() != ")"
		return holds
	}
	left, operator := m.nextToken(), m.nextToken()
	if operator == "not" {
		m.wrong = m.wrong || m.nextToken() != "in"
	}
	right := m.nextToken()
	if right == "extra" {
		left, right = right, left
	}
	if left != "extra" {
		return true
	}
	extra, ok := pkgref.CanonicalExtra(strings.Trim(right, `"'`))
	if !ok {
		return true
	}
	switch operator {
	case "==", "===":
		if !slices.Contains(m.named, extra) {
			m.named = append(m.named, extra)
		}
		return m.extra == extra
	case "!=":
		return m.extra != extra
	}
	return true
}
