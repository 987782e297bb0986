// Package pycode finds in the text of Python what starts processes, runs text as code, or
// hides what is done. It is lint: it reads tokens and follows plain aliases, knows no types,
// and does not see what is put together while the code runs. Pure.
//
// Text is how rules see findings: "kind:what@line", with spaces between.
package pycode

import (
	"fmt"
	"slices"
	"strings"
)

// Language is the one that is looked into, as cells have it.
const Language = "python"

// Kind is what a finding is about.
type Kind string

// The kinds.
const (
	Process     Kind = "process"      // something that starts another program is imported or used
	DynamicCode Kind = "dynamic-code" // text is run as code
	Import      Kind = "import"       // a module is imported whose name is only known when the code runs
	Obfuscation Kind = "obfuscation"  // names or code are hidden
	Native      Kind = "native"       // native code is called past Python
)

// Finding is one of them: a kind, what was found, and its line.
type Finding struct {
	Kind Kind
	What string // a dotted name, or a line of a shell by its first word: "!pip"
	Line int    // from 1
}

func (f Finding) String() string { return fmt.Sprintf("%s:%s@%d", f.Kind, f.What, f.Line) }

const (
	maxFindings = 100
	maxWhat     = 80          // bytes
	maxPath     = 2 * maxWhat // bytes of a dotted name: more than any that is known has
	maxNested   = 4           // of format strings in each other
)

// Text is what rules see of findings; "": there are none.
func Text(findings []Finding) string {
	words := make([]string, 0, len(findings))
	for _, f := range findings {
		words = append(words, f.String())
	}
	return strings.Join(words, " ")
}

// Scan finds what there is, in the order of the text. Text that is no Python has what its tokens show.
func Scan(code string) []Finding {
	s := &scanner{names: map[string]string{}}
	s.scanText(code, 1, 0)
	return s.found
}

// scanner is one look at one text.
type scanner struct {
	found []Finding
	names map[string]string // what a name stands for: a module, or something of one
	runs  bool              // something runs text as code
	hides int               // the line of the first decoding; 0: none
}

func (s *scanner) addUse(kind Kind, what string, line int) {
	if len(what) > maxWhat {
		what = what[:maxWhat]
	}
	what = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, what)
	f := Finding{kind, what, line}
	if len(s.found) < maxFindings && !slices.Contains(s.found, f) {
		s.found = append(s.found, f)
	}
	switch kind {
	case DynamicCode:
		s.runs = true
	case Process, Import, Obfuscation, Native:
	}
	if s.runs && s.hides > 0 {
		hidden := Finding{Obfuscation, "decoded-code", s.hides}
		if len(s.found) < maxFindings && !slices.Contains(s.found, hidden) {
			s.found = append(s.found, hidden)
		}
	}
}

// kindOfName is what the use of a dotted name tells; "": nothing.
func kindOfName(name string) Kind {
	module, member, _ := strings.Cut(name, ".")
	switch module {
	case "subprocess", "pty", "pexpect", "sh", "plumbum":
		return Process
	case "ctypes", "cffi", "_ctypes":
		return Native
	case "os", "posix":
		for _, begin := range []string{"system", "popen", "exec", "spawn", "posix_spawn", "fork", "startfile"} {
			if strings.HasPrefix(member, begin) {
				return Process
			}
		}
	case "asyncio":
		if strings.HasPrefix(member, "create_subprocess_") || strings.HasPrefix(member, "subprocess.") {
			return Process
		}
	case "_posixsubprocess", "multiprocessing":
		return Process
	case "commands", "popen2":
		return Process
	case "code", "codeop":
		if member != "" {
			return DynamicCode
		}
	case "builtins", "__builtins__":
		return kindOfBuiltin(member)
	}
	return ""
}

func kindOfBuiltin(name string) Kind {
	switch name {
	case "eval", "exec", "compile":
		return DynamicCode
	case "__import__":
		return Import
	}
	return ""
}

// decodes are calls that make code out of what does not look like it.
func decodes(name string) bool {
	switch name {
	case "marshal.loads", "codecs.decode", "binascii.unhexlify", "binascii.a2b_base64", "zlib.decompress", "lzma.decompress", "bz2.decompress", "gzip.decompress", "bytes.fromhex", "bytearray.fromhex":
		return true
	}
	return strings.HasPrefix(name, "base64.") && strings.Contains(name, "decode")
}
