package pkgref

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// Toy is what toy's clients get.
const Toy Ecosystem = "toy"

type toyFamily struct{ ordinary }

func (toyFamily) ecosystem() Ecosystem { return Toy }
func (toyFamily) grammar() grammar     { return semanticGrammar }

// name accepts lower-case letters, verbatim.
func (toyFamily) name(written string) (string, bool) {
	return written, written != "" && len(written) <= maxName && strings.Trim(written, "abcdefghijklmnopqrstuvwxyz") == ""
}

func (toyFamily) version(written string) (string, bool) {
	_, ok := semantic.Parse(written)
	return written, ok
}

func (toyFamily) traits() Traits {
	return Traits{OSV: "Toy", Table: 't', SpecifierExample: ">=1.2.3,<2", Archive: ".toy", Between: "@", AsksVersions: true}
}

func (toyFamily) lockfiles() []Lockfile { return []Lockfile{{"toy.lock", "toy.lock"}} }
