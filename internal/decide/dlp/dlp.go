// Package dlp finds secrets and personal data in bytes on their way out, and reports,
// redacts or blocks them. It is pure: who calls it brings the bytes, and what it found.
//
// A rule knows one kind of value, which is a secret or personal data (its class). A finding says
// that a value was found, and where, and never what it is. A rule may look at a run of bytes: the
// longest piece of its alphabet.
//
// It finds values of a known form, in the clear. One that is encoded, encrypted,
// compressed, spelt with something between its letters, or sent in parts by different ways
// is not found: this catches accidents, and stops nobody who means it.
package dlp

import (
	"crypto/sha256"
	"time"
)

// Outcome is what becomes of a value that is found. They are ordered: a greater one is
// stricter.
type Outcome int

// The outcomes.
const (
	Off    Outcome = iota // nothing is looked for
	Report                // it goes out, and is on record
	Redact                // every byte of it is replaced by Mask
	Block                 // it does not go out, nor does what comes after it
)

// String is the outcome's word in policies.
func (o Outcome) String() string {
	if o < Off || o > Block {
		return "unknown"
	}
	return Words()[o]
}

// Words are the words of the outcomes, in their order.
func Words() []string { return []string{"off", "report", "redact", "block"} }

// Mask stands in the place of each byte of a redacted value, so that lengths and offsets
// stay true.
const Mask = '*'

// Class is what the values of a rule are.
type Class int

// The classes.
const (
	Secret Class = iota
	Personal
)

// Plan is what becomes of each class.
type Plan struct {
	Secrets  Outcome `json:"secrets"`
	Personal Outcome `json:"personal"`
}

// Of is what becomes of a class.
func (p Plan) Of(c Class) Outcome {
	if c == Personal {
		return p.Personal
	}
	return p.Secrets
}

// Off tells that nothing is looked for.
func (p Plan) Off() bool { return p.Secrets == Off && p.Personal == Off }

// Holds tells that bytes may have to wait for those after them.
func (p Plan) Holds() bool { return p.Secrets > Report || p.Personal > Report }

// AtMost is p with no outcome that is stricter than one.
func (p Plan) AtMost(o Outcome) Plan {
	return Plan{Secrets: min(p.Secrets, o), Personal: min(p.Personal, o)}
}

// Stricter is the stricter of both for each class.
func (p Plan) Stricter(by Plan) Plan {
	return Plan{Secrets: max(p.Secrets, by.Secrets), Personal: max(p.Personal, by.Personal)}
}

// Alphabet is a set of bytes.
type Alphabet [256]bool

// AlphabetOf has the bytes of some texts.
func AlphabetOf(texts ...string) *Alphabet {
	var a Alphabet
	for _, t := range texts {
		for i := range len(t) {
			a[t[i]] = true
		}
	}
	return &a
}

// Bytes that many alphabets have.
const (
	Digits  = "0123456789"
	Lower   = "abcdefghijklmnopqrstuvwxyz"
	Upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Letters = Lower + Upper
)

// Rule knows one kind of value. It is decided by a run of its alphabet of at most Most bytes
// and the byte behind it, and by nothing else: so it does not matter in which pieces the
// bytes come.
type Rule struct {
	Name  string // in findings: letters, digits and hyphens
	Class Class
	// Begins are what a run begins with, of two bytes or more. Without, it begins with
	// a byte of Opens.
	Begins   []string
	Opens    *Alphabet
	After    *Alphabet // no run begins behind one of these bytes; nil: behind any
	Alphabet *Alphabet // has all bytes of Begins and Opens
	Most     int
	// Early asks Match before the run has ended, too: a value that it finds then is
	// one, whatever follows.
	Early bool
	// Match tells where in the run the value is; to 0: there is none. next is the byte
	// behind the run, 0 if there is none.
	Match func(run []byte, next byte) (from, to int)
}

// Finding says that a value was found.
type Finding struct {
	Rule    string
	Class   Class
	Outcome Outcome
	At      int64             // where the value begins, in bytes from where the scanner began
	Length  int               // of the value, in bytes
	Sum     [sha256.Size]byte // of the value: to be keyed before anybody is shown it
	// Late tells that some of it had gone out already: it came too slowly to wait for.
	Late bool
}

// How long bytes may wait for those after them, before Release is called.
const (
	ShortPatience = 50 * time.Millisecond // of what may be the beginning of anything
	LongPatience  = time.Second           // of what has begun as a secret
)
