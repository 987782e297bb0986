package mountpolicy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of ignore files: an agent may have written one, which everybody obeys who shows its directory. Each pattern is held as a program
// of a kilobyte at least, to which a byte of a name adds some 50 bytes and one of wildcards up to 200: those of one mount take some 30 MB.
const (
	ignoreMaxBytes    = 64 << 10 // of one file
	ignoreMaxPatterns = 1_000    // of one file
	ignoreMaxLine     = 1 << 10  // bytes
	ignoreMaxAll      = 5_000    // patterns that hold for one mount
	ignoreMaxAllBytes = 128 << 10
)

// patterns are those of an ignore file, with gitignore's syntax, but for these: one that hides and has a slash in it holds in directories
// below as well, unless it begins with one or ends in a suffix of any name ("conf/*.pem"); and one that hides and has blanks at its line's
// begin is also meant without them. As in git's, ? and a class such as [a-z] stand for one byte.
type patterns struct {
	all   []pattern
	bytes int // of their lines
}

type pattern struct {
	*regexp.Regexp

	negates bool
}

// parsePatterns reads the text of an ignore file. A line that is no pattern is an error, and so is what exceeds a bound: what is not
// understood would not be hidden.
func parsePatterns(file string, text []byte) (patterns, error) {
	var p patterns
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // a mark of some editors', which is in no name
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, line := range meantBy(trimBlanks(line)) {
			if len(p.all) == ignoreMaxPatterns {
				return p, fault.Invalid("the ignore file %s has more than %d patterns, from line %d on; ignore directories rather than files", file, ignoreMaxPatterns, number)
			}
			if len(line) > ignoreMaxLine {
				return p, fault.Invalid("line %d of the ignore file %s has more than %d bytes; write a shorter pattern", number, file, ignoreMaxLine)
			}
			one, err := parsePattern(line)
			if err != nil {
				return p, fault.Invalid("line %d of the ignore file %s is no pattern: %v; mend it, or nobody knows what it hides", number, file, err)
			}
			p.all, p.bytes = append(p.all, one), p.bytes+len(line)
		}
	}
	return p, nil
}

// meantBy are the patterns of a line. Blanks at its begin are of the name, as git has it, and most who write some mean the rest alone; but
// one that takes back begins with its mark.
func meantBy(line string) []string {
	bare := strings.TrimLeft(line, " ")
	switch {
	case bare == "":
		return nil
	case bare == line || bare[0] == '!':
		return []string{line}
	}
	return []string{line, bare}
}

// trimBlanks takes off the blanks at a line's end, but for one behind a backslash.
func trimBlanks(line string) string {
	short := strings.TrimRight(line, " ")
	behind := len(short) - len(strings.TrimRight(short, `\`))
	if behind%2 == 1 && len(short) < len(line) {
		return line[:len(short)+1]
	}
	return short
}

// hidesPath tells whether the patterns hide a path itself. One with a slash at its end is a directory's. That a hidden directory hides what is in
// it, whatever the patterns say of that, is the caller's to see to, who comes to the directory first.
func (p patterns) hidesPath(name string) bool {
	hidden, name := false, byBytes(name)
	for _, one := range p.all {
		if hidden == one.negates && one.MatchString(name) {
			hidden = !one.negates
		}
	}
	return hidden
}

// byBytes is a text with a character for each of its bytes: expressions are of characters, and patterns of bytes.
func byBytes(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	var out strings.Builder
	for i := range len(text) {
		out.WriteRune(rune(text[i]))
	}
	return out.String()
}

// inDirectory is of a pattern that ends in a suffix of any name in some directory, and holds in that one alone.
var inDirectory = regexp.MustCompile(`[^/+]/.*\*\.`)

func parsePattern(line string) (pattern, error) {
	line, negates := strings.CutPrefix(line, "!")
	switch {
	case !utf8.ValidString(line):
		return pattern{}, errors.New("it is not UTF-8")
	case strings.Contains(line, "\x00"):
		return pattern{}, errors.New("it has a zero byte, which is in no name")
	case strings.Trim(line, "/") == "":
		return pattern{}, errors.New("it names nothing")
	}
	line = byBytes(line)
	read := readHiding
	if negates {
		read = readShowing
	}
	expression, err := read(line)
	if err != nil {
		return pattern{}, err
	}
	if !strings.HasSuffix(line, "/") {
		expression += "/?"
	}
	re, err := regexp.Compile("(?s)^" + expression + "$") // a name may have a line's end in it
	if err != nil {
		return pattern{}, fmt.Errorf("%q can't be read", line)
	}
	return pattern{re, negates}, nil
}

// readHiding reads a pattern that hides: it may hide more than gitignore's would, and never less.
func readHiding(line string) (string, error) {
	if inDirectory.MatchString(line) && line[0] != '/' {
		line = "/" + line
	}
	if strings.HasPrefix(line, "/**") { // it is no directory's, to which the slash would belong
		line = line[1:]
	}
	expression, err := translate(line, wildcard)
	if below, is := strings.CutPrefix(expression, "/"); is {
		return below, err
	}
	return "(|.*/)" + expression, err
}

// readShowing reads a pattern that takes back what others hide: gitignore's and no more, since more would be shown.
func readShowing(line string) (string, error) {
	if !closed(line) || strings.Contains(line, `\/`) {
		return noName, nil // as git has it
	}
	if !strings.Contains(strings.TrimSuffix(line, "/"), "/") {
		expression, err := translate(line, exactWildcard)
		return "(|.*/)" + expression, err
	}
	return translateWay(strings.TrimPrefix(line, "/"))
}

// translateWay translates a pattern with directories in it, in which two stars stand for
// directories if they are alone between slashes.
func translateWay(line string) (string, error) {
	var out strings.Builder
	for {
		if below, is := strings.CutPrefix(line, "**/"); is && below != "" {
			out.WriteString("(|.*/)")
			line = below
			continue
		}
		part, below, more := strings.Cut(line, "/")
		expression, err := translate(part, exactWildcard)
		if err != nil {
			return "", err
		}
		if part != "" && strings.Trim(part, "*") == "" {
			expression = "[^/]+" // of a name, which the directory itself doesn't have
		}
		if part == "**" {
			expression = "(|.*/)" + expression
		}
		out.WriteString(expression)
		if !more {
			return out.String(), nil
		}
		out.WriteString("/")
		line = below
	}
}

// translate is a pattern as a regular expression, in which everything has its own meaning that is not gitignore's.
func translate(line string, wildcard func(string) (n int, expression string)) (string, error) {
	var out strings.Builder
	for line != "" {
		n, expression := wildcard(line)
		switch {
		case n > 0:
		case line == `\`:
			return "", errors.New("it ends with a backslash")
		case line[0] == '\\':
			_, n = utf8.DecodeRuneInString(line[1:])
			expression = regexp.QuoteMeta(line[1 : 1+n])
			n++
		case line[0] == '[':
			var err error
			if n, expression, err = parseClass(line); err != nil {
				return "", err
			}
		default:
			_, n = utf8.DecodeRuneInString(line)
			expression = regexp.QuoteMeta(line[:n])
		}
		out.WriteString(expression)
		line = line[n:]
	}
	return out.String(), nil
}

// wildcard is the one at a pattern's begin, with the slashes around it, and how long it is; 0: there is none. More than two stars are as two.
func wildcard(line string) (n int, expression string) {
	stars := strings.TrimPrefix(line, "/")
	behind := strings.TrimLeft(stars, "*")
	n, many := len(line)-len(behind), len(stars)-len(behind) > 1
	begins, ends := stars != line, strings.HasPrefix(behind, "/")
	switch {
	case many && begins && ends:
		return n + 1, "(/|/.+/)"
	case many && begins:
		return n, "(|/.*)"
	case many && ends:
		return n + 1, "(|.*/)"
	case many:
		return n, ".*"
	case begins:
		return 0, ""
	}
	return exactWildcard(line)
}

// exactWildcard is wildcard within a name.
func exactWildcard(line string) (n int, expression string) {
	switch line[0] {
	case '*':
		return 1, "[^/]*"
	case '?':
		return 1, "[^/]"
	}
	return 0, ""
}

// noName is the expression of what no name is.
const noName = `[^\x00-\x{10ffff}]`

// parseClass parses the class of bytes at a pattern's begin, such as [a-z] or [!0-9], in which no
// slash is; a bracket that nothing closes is itself.
func parseClass(line string) (n int, expression string, err error) {
	in, not := line[1:], false
	if in != "" && (in[0] == '!' || in[0] == '^') {
		in, not = in[1:], true
	}
	var has byteSet
	for first := true; in != ""; first = false {
		name, behind, named := strings.Cut(strings.TrimPrefix(in, "[:"), ":]")
		switch {
		case in[0] == ']' && !first:
			return len(line) - len(in) + 1, has.expression(not), nil
		case strings.HasPrefix(in, "[:") && named && name != "":
			of, known := namedClasses()[name]
			if !known {
				return 0, "", fmt.Errorf("there is no class [:%s:]", name)
			}
			for c := range has {
				has[c] = has[c] || of(rune(c))
			}
			in = behind
		default:
			var from, to rune
			from, in = firstOf(in)
			to = from
			if len(in) > 1 && in[0] == '-' && in[1] != ']' {
				to, in = firstOf(in[1:])
			}
			if to < from {
				return 0, "", fmt.Errorf("nothing is from %q to %q", from, to)
			}
			for c := from; c <= to; c++ {
				has[c] = true
			}
		}
	}
	return 1, `\[`, nil
}

// firstOf is the byte, as a character, with which what is left of a class begins, perhaps behind a backslash.
func firstOf(in string) (c rune, behind string) {
	if in[0] == '\\' && len(in) > 1 {
		in = in[1:]
	}
	c, n := utf8.DecodeRuneInString(in)
	return c, in[n:]
}

// closed tells whether each class of a pattern has an end.
func closed(line string) bool {
	for line != "" {
		n := 1
		switch line[0] {
		case '\\':
			n = min(2, len(line))
		case '[':
			var err error
			if n, _, err = parseClass(line); err == nil && n == 1 {
				return false
			}
			n = max(n, 1)
		}
		line = line[n:]
	}
	return true
}

// byteSet is a set of them.
type byteSet [256]bool

// expression is of one of the bytes, or of one that is none of them.
func (b *byteSet) expression(not bool) string {
	var out strings.Builder
	in := func(c int) bool { return c < len(b) && c != '/' && b[c] != not }
	for c := 0; c < len(b); c++ {
		if from := c; in(c) {
			for in(c + 1) {
				c++
			}
			fmt.Fprintf(&out, `\x{%x}-\x{%x}`, from, c)
		}
	}
	if out.Len() == 0 {
		return noName
	}
	return "[" + out.String() + "]"
}

// namedClasses are those that git knows, all of ASCII.
func namedClasses() map[string]func(rune) bool {
	between := func(low, high rune) func(rune) bool { return func(c rune) bool { return low <= c && c <= high } }
	digit, lower, upper := between('0', '9'), between('a', 'z'), between('A', 'Z')
	alpha := func(c rune) bool { return lower(c) || upper(c) }
	alnum := func(c rune) bool { return alpha(c) || digit(c) }
	graph := between('!', '~')
	return map[string]func(rune) bool{
		"alnum": alnum, "alpha": alpha, "digit": digit, "graph": graph, "lower": lower, "print": between(' ', '~'), "upper": upper,
		"blank":  func(c rune) bool { return c == ' ' || c == '\t' },
		"cntrl":  func(c rune) bool { return c < ' ' || c == 0x7f },
		"punct":  func(c rune) bool { return graph(c) && !alnum(c) },
		"space":  func(c rune) bool { return strings.ContainsRune(" \t\r\n", c) },
		"xdigit": func(c rune) bool { return digit(c) || between('a', 'f')(c) || between('A', 'F')(c) },
	}
}
