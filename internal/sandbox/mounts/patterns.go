package mounts

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Bounds of ignore files: an agent may have written one, which everybody obeys who shows its directory. Each pattern is
// held as a program of some 50 bytes a byte, and of two kilobytes at least.
const (
	ignoreMaxBytes    = 64 << 10 // of one file
	ignoreMaxPatterns = 1_000    // of one file
	ignoreMaxLine     = 1 << 10  // bytes
	ignoreMaxAll      = 5_000    // patterns that hold for one mount
	ignoreMaxAllBytes = 128 << 10
	// ignoreMaxMatched bounds the time: bytes of paths, times bytes of the patterns with which they are compared. A large project with a
	// hundred patterns has half of it; the worst patterns take ten nanoseconds for one.
	ignoreMaxMatched = 64 << 30
)

// patterns are those of an ignore file, with gitignore's syntax, but for these: one that hides and has a slash in it holds in directories
// below as well, unless it begins with one or ends in a suffix of any name ("conf/*.pem"); and blanks at a line's begin are none.
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
		line = trimBlanks(line)
		if line == "" {
			continue
		}
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
	return p, nil
}

// trimBlanks takes off a line's blanks, but for one at the end behind a backslash.
func trimBlanks(line string) string {
	line = strings.TrimLeft(line, " ")
	short := strings.TrimRight(line, " ")
	behind := len(short) - len(strings.TrimRight(short, `\`))
	if behind%2 == 1 && len(short) < len(line) {
		return line[:len(short)+1]
	}
	return short
}

// hide tells whether the patterns hide a path itself. One with a slash at its end is a directory's. That a hidden directory hides what is in
// it, whatever the patterns say of that, is the caller's to see to, who comes to the directory first.
func (p patterns) hide(name string) bool {
	hidden := false
	for _, one := range p.all {
		if hidden == one.negates && one.MatchString(name) {
			hidden = !one.negates
		}
	}
	return hidden
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
	if !strings.Contains(strings.TrimSuffix(line, "/"), "/") {
		expression, err := translate(line, exactWildcard)
		return "(|.*/)" + expression, err
	}
	return translateWay(strings.TrimPrefix(line, "/"))
}

// translateWay is translate for a pattern with directories in it, in which two stars stand for directories if they are alone between slashes.
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
			n, expression = class(line)
		default:
			_, n = utf8.DecodeRuneInString(line)
			expression = regexp.QuoteMeta(line[:n])
		}
		out.WriteString(expression)
		line = line[n:]
	}
	return out.String(), nil
}

// wildcard is the one at a pattern's begin, and how long it is; 0: there is none.
func wildcard(line string) (n int, expression string) {
	for _, w := range [][2]string{{"/**/", "(/|/.+/)"}, {"**/", "(|.*/)"}, {"/**", "(|/.*)"}, {"*", "[^/]*"}, {"?", "[^/]"}} {
		if strings.HasPrefix(line, w[0]) {
			return len(w[0]), w[1]
		}
	}
	return 0, ""
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

// class is the class of characters at a pattern's begin, such as [a-z] or [!0-9]; a bracket that nothing closes is itself.
func class(line string) (n int, expression string) {
	in, not := line[1:], ""
	if in != "" && (in[0] == '!' || in[0] == '^') {
		in, not = in[1:], "^/"
	}
	var out strings.Builder
	for first := true; in != ""; first = false {
		_, n := utf8.DecodeRuneInString(in)
		named := strings.Index(in, ":]")
		switch {
		case in[0] == ']' && !first:
			return len(line) - len(in) + 1, "[" + not + out.String() + "]"
		case strings.HasPrefix(in, "[:") && named > 1:
			n = named + len(":]")
			out.WriteString(in[:n])
		case in[0] == '-':
			out.WriteByte('-')
		case in[0] == '\\' && len(in) > 1:
			in = in[1:]
			_, n = utf8.DecodeRuneInString(in)
			fallthrough
		default:
			out.WriteString(quoteInClass(in[:n]))
		}
		in = in[n:]
	}
	return 1, `\[`
}

// quoteInClass is a character of a class as itself.
func quoteInClass(c string) string {
	if strings.ContainsAny(c, `\]^-[&~`) {
		return `\` + c
	}
	return c
}
