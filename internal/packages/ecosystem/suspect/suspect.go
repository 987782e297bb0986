// Package suspect points at lines of code that a person has to read before they let it run: those
// that send something, run something, read what is secret, or hide what they do. Pure.
//
// It looks for words, and follows no language: honest code has such lines too, and who wants to
// hide can write others. That it finds nothing says nothing, and nothing is decided by it.
package suspect

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Bounds of what is looked at and told.
const (
	MaxText  = 256 << 10 // bytes of one text
	maxAll   = 1 << 20   // bytes of all texts that one Reader looks at
	maxLine  = 1_000     // bytes of a line that can still be read
	maxTold  = 8         // lines of one text
	maxQuote = 110       // bytes of one, and of a file's name
)

// The words, by what they do.
var (
	piped     = regexp.MustCompile(`(?i)\b(curl|wget|iwr|invoke-webrequest|fetch)\b[^|\n]*\|\s*(sudo\s+)?(\S*/)?((ba|z|da|k)?sh|python\d?|node|perl|iex|ruby)\b|\b(ba|z|da)?sh\b[^\n]*(<\(|\$\(|-c)\s*["']?\$?\(?\s*(curl|wget)\b`)
	unpacked  = regexp.MustCompile(`(?i)\b(exec|eval|compile|Function|__import__|system|loads)\b\s*\(.*(b64decode|base64|atob|fromhex|unhexlify|decompress|marshal|rot.?13|fromCharCode|Buffer\.from)|base64\s+(-d|-D|--decode)\b[^\n]*\|`)
	secrets   = regexp.MustCompile(`(?i)\.ssh\b|id_(rsa|dsa|ecdsa|ed25519)\b|\.aws\b|\.npmrc\b|\.pypirc\b|\.netrc\b|\.git-credentials|\.docker/config|\.kube\b|\.gnupg\b|wallet|keychain|login data|/etc/(passwd|shadow)|[A-Z0-9]_(TOKEN|SECRET|PASSWORD|ACCESS_KEY)\b`)
	surround  = regexp.MustCompile(`(?i)\bos\.environ\b\s*(\)|\.(copy|items)\b|,|$)|process\.env\s*(\)|,|$)|\bprintenv\b|\benv\s*\|`)
	network   = regexp.MustCompile(`(?i)\burllib\d?\b|\brequests\.(get|post|put|request|Session)\b|\bimport\s+requests\b|\bhttp\.client\b|\bhttpx\b|\baiohttp\b|\bsocket\.|\bhttps?\.(get|request)\s*\(|require\(["'](node:)?(https?|net|dns|dgram)["']\)|\bfetch\s*\(|XMLHttpRequest|\baxios\b|\b(curl|wget)\s|\bgetaddrinfo\b|invoke-webrequest|\burlopen\b|\bftplib\b|\bsmtplib\b`)
	programs  = regexp.MustCompile(`\bsubprocess\b|\bos\.(system|popen|exec\w*|spawn\w*|startfile)\b|\bpty\.spawn\b|child_process|\b(exec|spawn|execFile)Sync\b|\bPopen\b|\bctypes\b`)
	evaluated = regexp.MustCompile(`(^|[^.\w])(exec|eval|execfile)\s*\(|\bnew\s+Function\b|\b__import__\s*\(|vm\.runIn`)
	decoded   = regexp.MustCompile(`(?i)b64decode|base64|\batob\s*\(|\bfromhex\b|\bunhexlify\b|marshal\.loads|zlib\.decompress|codecs\.decode|fromCharCode|(\\x[0-9a-f]{2}){8}`)
	hidden    = regexp.MustCompile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad]")
	encoding  = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)
)

// trait is something that a line does, the worst first.
type trait struct {
	does  string
	words *regexp.Regexp
}

func traits() []trait {
	return []trait{
		{"runs what it downloads", piped},
		{"runs text that it decodes", unpacked},
		{"names where keys and passwords are", secrets},
		{"has characters that are not seen", hidden},
		{"takes all variables of the environment", surround},
		{"runs text as code", evaluated},
		{"uses the network", network},
		{"runs programs", programs},
		{"decodes text", decoded},
	}
}

// found is a line that is told.
type found struct {
	line, worst int
	text        string
}

// Reader looks at the texts of one release. The zero value has read nothing.
type Reader struct{ read int }

// Lines are the lines to read of a text, the worst first, each as "FILE:LINE DOES THIS: TEXT", at most
// eight and how many there are besides. file and the text are the publisher's. They tell as well how
// much was not looked at, since there is too much.
func (r *Reader) Lines(file string, text []byte) (out []string) {
	file = redact.Cut(strings.ToValidUTF8(file, "\ufffd"), maxQuote)
	looked := text[:max(0, min(len(text), MaxText, maxAll-r.read))]
	r.read += len(looked)
	if len(looked) < len(text) {
		out = append(out, fmt.Sprintf("%s was looked at for its first %d bytes alone", file, len(looked)))
	}
	all := linesOf(file, looked)
	for _, f := range all[:min(len(all), maxTold)] {
		out = append(out, f.text)
	}
	if more := len(all) - maxTold; more > 0 {
		out = append(out, fmt.Sprintf("%s has %d more such lines", file, more))
	}
	return out
}

func linesOf(file string, text []byte) (all []found) {
	number := 0
	// A carriage return of its own ends a line for Python and for JavaScript, too.
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	for line := range bytes.Lines(text) {
		number++
		if f, is := lookAtLine(file, number, strings.TrimSuffix(string(line), "\n")); is {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.worst, b.worst) })
	return all
}

// lookAtLine tells what a line does.
func lookAtLine(file string, number int, line string) (f found, is bool) {
	if other := encoding.FindStringSubmatch(line); number <= 2 && other != nil && !plainEncoding(other[1]) {
		return found{number, 0, fmt.Sprintf("%s:%d has an encoding of its own, %s, so that it may be another text than it seems", file, number, redact.Cut(other[1], 40))}, true
	}
	if comment(file, line) {
		return f, false
	}
	var does []string
	worst, at := -1, 0
	for i, t := range traits() {
		where := t.words.FindStringIndex(line)
		if where == nil {
			continue
		}
		if worst < 0 {
			worst, at = i, where[0]
		}
		does = append(does, t.does)
	}
	if len(line) > maxLine {
		does = append(does, fmt.Sprintf("is %d bytes long", len(line)))
		worst = max(worst, 0)
	}
	if len(does) == 0 {
		return f, false
	}
	return found{number, worst, fmt.Sprintf("%s:%d %s: %s", file, number, strings.Join(does[:min(len(does), 3)], ", "), quoteAround(line, at))}, true
}

// comment tells a line of Python that is a comment and nothing else; in JavaScript a number sign may begin a
// member of a class. A line with a quote may end a text that began before it and go on as code,
// one with a brace may be of a formatted text, which runs what stands in it, and one with a
// control character may be two lines for who reads it: those are none.
func comment(file, line string) bool {
	if !strings.HasSuffix(file, ".py") && !strings.HasSuffix(file, ".pth") {
		return false
	}
	return strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.ContainsFunc(line, func(r rune) bool {
		return r == '"' || r == '\'' || r == '{' || r != '\t' && text.Hostile(r)
	})
}

func plainEncoding(name string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "utf-8", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1", "latin1", "iso-8859-15":
		return true
	}
	return false
}

// quoteAround quotes a line, or what of it is around the place at which it does the worst.
func quoteAround(line string, at int) string {
	const before = 30
	if len(line) > maxQuote && at > before {
		line = "..." + line[at-before:]
	}
	line = strings.ToValidUTF8(line[:min(len(line), 4*maxQuote)], "\ufffd")
	return redact.Cut(strings.Join(strings.Fields(line), " "), maxQuote)
}
