package pkgref

import "github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"

// Rust is what cargo gets from its registry.
const Rust Ecosystem = "rust"

type rustFamily struct{ ordinary }

func (rustFamily) ecosystem() Ecosystem               { return Rust }
func (rustFamily) words() []string                    { return []string{"cargo", "crates"} }
func (rustFamily) grammar() grammar                   { return semanticGrammar }
func (rustFamily) name(written string) (string, bool) { return rustName(written) }

func (rustFamily) version(written string) (string, bool) {
	_, ok := semantic.Parse(written)
	return written, ok
}

func (rustFamily) traits() Traits {
	return Traits{OSV: "crates.io", Table: 'r', SpecifierExample: ">=2.31,<3", SeveralVersions: true, Archive: ".crate", Between: "@"}
}

// rustName folds as cargo's registry compares: lower case, "_" as "-". The
// canonical name is a key; whoever fetches keeps the registry's own spelling.
func rustName(name string) (string, bool) {
	const longest = 64
	if name == "" || len(name) > longest || (!isLower(name[0]) && !isUpper(name[0])) {
		return "", false
	}
	out := []byte(name)
	for i, c := range out {
		switch {
		case isLower(c) || isDigit(c) || c == '-':
		case isUpper(c):
			out[i] = c + 'a' - 'A'
		case c == '_':
			out[i] = '-'
		default:
			return "", false
		}
	}
	return string(out), true
}
