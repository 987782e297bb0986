package advisory

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxPopular bounds a popularity list: a longer one makes every name a
// lookalike of something.
const maxPopular = 20_000

// ecosystemHeader is how a list may say what it is about, in its first line.
const ecosystemHeader = "# ecosystem:"

// nameList is a popularity list that was read.
type nameList struct {
	ecosystem pkgref.Ecosystem
	names     []string // canonical, most popular first, each once
	lines     int      // that had a name
	repeated  int
	leftOut   int // beyond maxPopular
	bad       []badLine
	badLines  int
}

// badLine is a line that can't be read.
type badLine struct {
	line   int
	reason string
}

// mostReported bounds what is told of things that can't be read.
const mostReported = 10

// readNames reads a popularity list: a name a line, most popular first, as text
// or as JSON (a string, or an object with "name"). Empty lines and lines that
// begin with # are passed over, except a first line that names the ecosystem,
// which must then be the one that was asked for.
func readNames(r io.Reader, ecosystem pkgref.Ecosystem) (nameList, error) {
	list := nameList{ecosystem: ecosystem}
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if n == 1 {
			if err := list.header(line); err != nil {
				return nameList{}, err
			}
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if list.ecosystem == "" {
			return nameList{}, fault.Invalid("it does not say which ecosystem it is about; begin it with %q or name one", ecosystemHeader+" python")
		}
		list.lines++
		list.addName(n, line, seen)
	}
	if err := lines.Err(); err != nil {
		return nameList{}, fault.Wrap(fault.ErrInvalid, err, "it is not a list of names")
	}
	return list, nil
}

func (l *nameList) header(line string) error {
	named, ok := strings.CutPrefix(line, ecosystemHeader)
	if !ok {
		return nil
	}
	ecosystem, err := pkgref.ParseEcosystem(strings.TrimSpace(named))
	if err != nil {
		return err
	}
	if l.ecosystem != "" && l.ecosystem != ecosystem {
		return fault.Invalid("it is about %s by its first line, not about %s", ecosystem, l.ecosystem)
	}
	l.ecosystem = ecosystem
	return nil
}

func (l *nameList) addName(n int, line string, seen map[string]bool) {
	name, err := nameOf(line)
	if err == nil {
		name, err = pkgref.CanonicalName(l.ecosystem, name)
	}
	switch {
	case err != nil:
		l.badLines++
		if len(l.bad) < mostReported {
			l.bad = append(l.bad, badLine{n, err.Error()})
		}
	case seen[name]:
		l.repeated++
	case len(l.names) == maxPopular:
		l.leftOut++
	default:
		seen[name] = true
		l.names = append(l.names, name)
	}
}

// nameOf reads a line, whichever way it is written.
func nameOf(line string) (string, error) {
	switch line[0] {
	case '"':
		var name string
		if err := json.Unmarshal([]byte(line), &name); err != nil {
			return "", fault.Wrap(fault.ErrInvalid, err, "it is no JSON")
		}
		return name, nil
	case '{':
		var object struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			return "", fault.Wrap(fault.ErrInvalid, err, "it is no JSON")
		}
		return object.Name, nil
	}
	return line, nil
}

// encodeList encodes a list as it is kept.
func (l *nameList) encodeList() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", ecosystemHeader, l.ecosystem)
	for _, name := range l.names {
		b.WriteString(name)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
