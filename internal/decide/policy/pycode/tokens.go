package pycode

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is one of the text's. A string's text is its content, as far as it is plain.
type token struct {
	kind rune // 'n' a name, 's' a string, 'f' a format string, '0' a number, '\n' the end of a line, '!' a line of a shell, else the character
	text string
	line int
}

// tokenizer cuts a text into tokens. Inside of brackets lines do not end.
type tokenizer struct {
	rest  string
	line  int
	depth int
	start bool // nothing of the line was seen
	out   []token
}

func tokens(code string, line int) []token {
	t := &tokenizer{rest: code, line: line, start: true}
	for t.rest != "" {
		t.nextToken()
	}
	t.putToken('\n', "")
	return t.out
}

func (t *tokenizer) putToken(kind rune, text string) {
	t.out = append(t.out, token{kind, text, t.line})
	t.start = kind == '\n'
}

func (t *tokenizer) nextToken() {
	r, size := utf8.DecodeRuneInString(t.rest)
	switch {
	case r == '\n':
		t.rest = t.rest[1:]
		if t.depth == 0 {
			t.putToken('\n', "")
		}
		t.line++
	case r == '\\' && strings.HasPrefix(t.rest, "\\\n"):
		t.rest = t.rest[2:]
		t.line++
	case unicode.IsSpace(r):
		t.rest = t.rest[size:]
	case r == '#':
		t.rest = t.rest[len(lineOf(t.rest)):]
	case (r == '!' || r == '%') && t.takeShellLine(r):
	case unicode.IsLetter(r) || r == '_':
		t.takeName()
	case r == '"' || r == '\'':
		t.takeString("")
	case r >= '0' && r <= '9':
		n := strings.IndexFunc(t.rest, func(r rune) bool { return !unicode.IsDigit(r) && !unicode.IsLetter(r) && r != '.' && r != '_' })
		if n < 0 {
			n = len(t.rest)
		}
		t.putToken('0', t.rest[:n])
		t.rest = t.rest[n:]
	default:
		t.bracket(r)
		t.putToken(r, "")
		t.rest = t.rest[size:]
	}
}

func lineOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (t *tokenizer) bracket(r rune) {
	switch r {
	case '(', '[', '{':
		t.depth++
	case ')', ']', '}':
		t.depth = max(0, t.depth-1)
	}
}

// takeShellLine takes a line that is IPython's and not Python's: "!command", "x = !command",
// "%magic" and "%%magic" at the beginning of a line.
func (t *tokenizer) takeShellLine(r rune) bool {
	assigned := r == '!' && len(t.out) > 0 && t.out[len(t.out)-1].kind == '=' && !strings.HasPrefix(t.rest, "!=")
	if !t.start && !assigned {
		return false
	}
	line := lineOf(t.rest)
	if strings.HasPrefix(line, "%%") { // the whole cell is for the magic
		t.putToken('!', t.rest)
		t.rest = ""
		return true
	}
	t.putToken('!', line)
	t.rest = t.rest[len(line):]
	return true
}

// takeName takes a name, or the letters before a string. Python sees names in their normal form.
func (t *tokenizer) takeName() {
	n := strings.IndexFunc(t.rest, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && !unicode.IsMark(r)
	})
	if n < 0 {
		n = len(t.rest)
	}
	name := t.rest[:n]
	t.rest = t.rest[n:]
	if len(name) <= 2 && strings.Trim(strings.ToLower(name), "rbuft") == "" && (strings.HasPrefix(t.rest, `"`) || strings.HasPrefix(t.rest, "'")) {
		t.takeString(strings.ToLower(name))
		return
	}
	t.putToken('n', norm.NFKC.String(name))
}

// takeString takes a string. Escapes are left as they are but for what a quote needs.
func (t *tokenizer) takeString(prefix string) {
	quote := t.rest[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(t.rest, triple) {
		quote = triple
	}
	t.rest = t.rest[len(quote):]
	end, lines := len(t.rest), 0
	for i := 0; i < len(t.rest); i++ {
		switch {
		case t.rest[i] == '\\':
			i++
		case strings.HasPrefix(t.rest[i:], quote), len(quote) == 1 && t.rest[i] == '\n':
			end = i
		}
		if end != len(t.rest) {
			break
		}
	}
	content := t.rest[:end]
	lines = strings.Count(content, "\n")
	kind := 's'
	if strings.ContainsAny(prefix, "ft") {
		kind = 'f'
	}
	t.putToken(kind, content)
	t.line += lines
	t.rest = strings.TrimPrefix(t.rest[end:], quote)
}
