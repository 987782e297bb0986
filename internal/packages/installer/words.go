package installer

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Options is what a client's command knows of its options. An option that is not in it is not
// understood, and such a command is refused rather than planned wrong.
type Options struct {
	Values []string // take a value
	Flags  []string // take none
}

// Option is one option of a command, or one of its other words.
type Option struct {
	Name  string // "--index-url"; "" for a word that is no option
	Value string // of an option that takes one, or the word
}

// Words is the option as it is written.
func (o Option) Words() []string {
	switch {
	case o.Name == "":
		return []string{o.Value}
	case o.Value == "":
		return []string{o.Name}
	case strings.HasPrefix(o.Name, "--"):
		return []string{o.Name + "=" + o.Value}
	}
	return []string{o.Name, o.Value}
}

// Parse splits a command's words. Words behind "--" are no options.
func (known Options) Parse(command string, words []string) ([]Option, error) {
	var out []Option
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			for _, rest := range words[i+1:] {
				out = append(out, Option{Value: rest})
			}
			return out, nil
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			out = append(out, Option{Value: w})
			continue
		}
		name, value, given := strings.Cut(w, "=")
		short := len(w) > 2 && !strings.HasPrefix(w, "--") && slices.Contains(known.Values, w[:2])
		switch {
		case short:
			out = append(out, Option{w[:2], strings.TrimPrefix(w[2:], "=")})
		case slices.Contains(known.Values, name) && given:
			out = append(out, Option{name, value})
		case slices.Contains(known.Values, name) && i+1 < len(words):
			i++
			out = append(out, Option{name, words[i]})
		case slices.Contains(known.Flags, w):
			out = append(out, Option{Name: w})
		default:
			return nil, fault.Invalid("%s with the option %q can't be planned; leave it out", command, text.Shorten(w, MaxQuoted))
		}
	}
	return out, nil
}

// Without leaves words out that a rewrite says itself: flags, and options with
// the value that follows.
func Without(words, flags, values []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return append(out, words[i:]...)
		}
		name, _, given := strings.Cut(words[i], "=")
		switch {
		case slices.Contains(values, name):
			if !given {
				i++
			}
		case !slices.Contains(flags, words[i]):
			out = append(out, words[i])
		}
	}
	return out
}

// RefuseAny refuses a command for one of its options.
func RefuseAny(command string, words []string, why string, names ...string) error {
	for _, w := range words {
		if w == "--" {
			return nil
		}
		name, _, _ := strings.Cut(w, "=")
		if slices.Contains(names, name) {
			return fault.Invalid("%s %s can't be planned: %s", command, text.Shorten(w, MaxQuoted), why)
		}
	}
	return nil
}

// MaxQuoted bounds a person's or a guest's text in a sentence.
const MaxQuoted = 120

// Behind returns what follows one of a client's commands, which is its first word that is
// no option. It is false where that is another one.
func Behind(words []string, commands ...string) ([]string, bool) {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") {
			return words[i+1:], slices.Contains(commands, w)
		}
	}
	return nil, false
}
