package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

const (
	maxDocument = 1 << 20 // bytes; the largest real policies have some thousand lines
	maxDepth    = 16      // of nested lists and mappings
	maxNodes    = 200_000
)

// loadDocument turns text into the root node of its one YAML document, or says what
// keeps it from being one. What YAML offers beyond plain lists, mappings and
// scalars is refused: it makes a document mean what it does not show.
func loadDocument(source string, data []byte) (*yaml.Node, Problems) {
	refuse := func(line int, format string, args ...any) (*yaml.Node, Problems) {
		return nil, Problems{{source, line, 1, fmt.Sprintf(format, args...)}}
	}
	if len(data) > maxDocument {
		return refuse(1, "the document has %d bytes, and at most %d are read", len(data), maxDocument)
	}
	if problems := checkText(source, data); problems != nil {
		return nil, problems
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return refuse(1, "not YAML: %s", oneLine(err.Error()))
	}
	var document, second yaml.Node
	if err := loader.Load(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, Problems{syntaxProblem(source, err)}
	}
	if isEmpty(&document) {
		return refuse(1, "the document is empty; an empty policy would allow nothing, so say what you mean, e.g. allowed_packages: {}")
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return refuse(max(second.Line, 1), "a second YAML document begins here; a policy is one document")
	case !errors.Is(err, io.EOF):
		return nil, Problems{syntaxProblem(source, err)}
	}
	root := document.Content[0]
	var problems Problems
	count := 0
	checkNodes(source, root, 0, &count, &problems)
	if len(problems) > 0 {
		return nil, problems
	}
	return root, nil
}

func isEmpty(document *yaml.Node) bool {
	if len(document.Content) == 0 {
		return true
	}
	root := document.Content[0]
	return root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null"
}

// syntaxProblem gives a parser's error its place.
func syntaxProblem(source string, err error) Problem {
	p := Problem{Source: source, Line: 1, Column: 1, Sentence: "not YAML: " + oneLine(err.Error())}
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.Line, p.Column = max(load.Mark.Line, 1), max(load.Mark.Column, 1)
		p.Sentence = "not YAML: " + oneLine(load.Message)
	}
	return p
}

func oneLine(s string) string { return plainASCII(strings.Join(strings.Fields(s), " "), 200) }

// checkText refuses characters that an editor hides or shows otherwise than
// a parser reads them.
func checkText(source string, data []byte) Problems {
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		if sentence := hiddenCharacter(r, size, rest); sentence != "" {
			return Problems{{source, line, column, sentence}}
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return nil
}

func hiddenCharacter(r rune, size int, after []byte) string {
	switch {
	case r == utf8.RuneError && size <= 1:
		return "not UTF-8 text; save the file as UTF-8"
	case r == '\uFEFF':
		return "a byte order mark; save the file as UTF-8 without one"
	case r == '\t':
		return "a tab character; indent with spaces"
	case r == '\r' && !bytes.HasPrefix(after, []byte("\n")):
		return "a carriage return without a line feed"
	case r < ' ' && r != '\n' && r != '\r', r == 0x7f, 0x80 <= r && r < 0xa0:
		return fmt.Sprintf("a control character, U+%04X", r)
	case 0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069, r == 0x200e, r == 0x200f:
		return fmt.Sprintf("an invisible character that changes how text is shown, U+%04X", r)
	}
	return ""
}

// checkNodes refuses anchors, aliases, tags, merge keys and deep nesting.
func checkNodes(source string, n *yaml.Node, depth int, count *int, problems *Problems) {
	sentence := ""
	*count++
	switch {
	case depth > maxDepth:
		sentence = fmt.Sprintf("nested deeper than %d levels", maxDepth)
	case *count > maxNodes:
		sentence = fmt.Sprintf("more than %d values", maxNodes)
	case n.Kind == yaml.AliasNode:
		sentence = "an alias (*" + plainASCII(n.Value, 40) + "); write the value out"
	case n.Anchor != "":
		sentence = "an anchor (&" + plainASCII(n.Anchor, 40) + "); write values out where they are used"
	case n.ShortTag() == "!!merge":
		sentence = "a merge key (<<); write the keys out"
	case n.Style&yaml.TaggedStyle != 0:
		sentence = "a tag (" + plainASCII(n.Tag, 40) + "); quote text instead"
	}
	if sentence != "" {
		if *count <= maxNodes+1 && len(*problems) <= maxProblems {
			*problems = append(*problems, Problem{source, n.Line, n.Column, sentence})
		}
		return
	}
	for _, child := range n.Content {
		checkNodes(source, child, depth+1, count, problems)
	}
}

// plainASCII keeps a document's text short in messages, and ASCII.
func plainASCII(s string, most int) string {
	return text.Shorten(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s), most)
}
