package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Plainly says what the YAML decoder found without the names of Go's types, and where.
func Plainly(err error) string { return places{}.plainly(err) }

// plainly names the key, too, where the file's text is known.
func (p places) plainly(err error) string {
	var found []string
	if all, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		for _, one := range all.Errors {
			found = append(found, p.plain(one))
		}
	} else if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		found = []string{at(one.Mark) + plainText(one.Message)}
	} else {
		found = []string{plainText(err.Error())}
	}
	return strings.Join(found, "; ")
}

// saidWhere is the place in a sentence of an UnmarshalYAML of ours, which says it itself.
var saidWhere = regexp.MustCompile(`^line \d+(, column \d+)?: `)

// plain is one thing that can't be decoded. Ours say themselves where, to the column or to the line.
func (p places) plain(one *yaml.LoadError) string {
	where, text := at(one.Mark), plainText(one.Message)
	if said := saidWhere.FindString(text); said != "" {
		text = strings.TrimPrefix(text, said)
		if strings.Contains(said, "column") {
			return said + text
		}
	}
	unknown := strings.HasPrefix(text, "there is no key ")
	key := p.keyAt(one.Mark.Line, one.Mark.Column, unknown)
	switch {
	case key == "":
		return where + text
	case unknown:
		if known := keysAt(key); len(known) > 0 {
			return fmt.Sprintf("%sthere is no key %q; there are %s", where, key, strings.Join(known, ", "))
		}
		return where + text
	case saysKey(text, key) || strings.HasPrefix(text, "the key "):
		return where + text
	case strings.HasPrefix(text, "is ") || strings.HasPrefix(text, "it is "):
		return where + key + " " + strings.TrimPrefix(text, "it ")
	}
	return where + key + ": " + text
}

// saysKey tells whether a sentence begins with the last name of a key.
func saysKey(text, key string) bool {
	names := steps(key) // none of a key such as "."
	return len(names) > 0 && strings.HasPrefix(text, names[len(names)-1])
}

// at is a place, as sentences begin with it.
func at(m yaml.Mark) string {
	if m.Line == 0 {
		return ""
	}
	return m.String() + ": "
}

// plainText has no names of Go's types and none of YAML's.
func plainText(text string) string {
	for _, r := range []struct{ from, to string }{
		{`^yaml: `, ""},
		{`mapping key ("[^"]*") already defined at (line \d+)`, "the key $1 is on $2 already"},
		{`field (\S+) not found in type \S+`, `there is no key "$1"`},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?u?int\d*\b`, "$1 is no whole number"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?float\d*\b`, "$1 is no number"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?bool\b`, "$1 is neither true nor false"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?string\b`, "$1 is no text"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \[\]\S+`, "$1 is no list"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \S+`, "$1 is no mapping of keys"},
		{`\s*\n\s*`, "; "},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "is ") {
		return "it " + text
	}
	return text
}
