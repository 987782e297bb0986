package policy

import (
	"fmt"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Problem is one thing that is wrong with a document. Line and Column count
// from 1, the column in characters.
type Problem struct {
	Source   string
	Line     int
	Column   int
	Sentence string // what is wrong, and what to write instead
}

// Error is "source:line:column: sentence".
func (p Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.Source, p.Line, p.Column, p.Sentence)
}

// maxProblems is how many problems of one document are reported.
const maxProblems = 20

// Problems is what Parse returns for a document that it refuses, in the order
// of the text. It is a fault.ErrInvalid.
type Problems []Problem

// Error has a line per problem, at most twenty and a count of the rest.
func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for i, p := range ps {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(ps)-maxProblems))
			break
		}
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the category.
func (ps Problems) Unwrap() error { return fault.ErrInvalid }
