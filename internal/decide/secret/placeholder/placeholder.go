// Package placeholder makes what a sandbox holds in place of a secret: a text that looks
// like the secret to the programs that read it, and is worth nothing.
package placeholder

import (
	"crypto/rand"
	"strings"
)

// Form is what the secrets of one kind look like.
type Form struct {
	Name   string
	Prefix string
	Random int    // characters behind the prefix, none of which can be guessed
	Hex    bool   // they are 0-9 and a-f; else letters and digits
	Suffix string // the same in all
}

// Plain is the form of a secret of which nothing is known.
const Plain = "plain"

// AWS is the form of an access key's id, which is what of a key is on the wire.
const AWS = "aws"

// Forms are all that there are. Each has at least 128 random bits.
func Forms() []Form {
	return []Form{
		{Name: Plain, Prefix: "cofferdam-placeholder-", Random: 32},
		{Name: "hex", Random: 64, Hex: true},
		{Name: "openai", Prefix: "sk-proj-", Random: 48},
		// Claude Code asks a person about a key, and knows it again by its last 20 letters.
		{Name: "anthropic", Prefix: "sk-ant-api03-", Random: 75, Suffix: "-of-cofferdam-holdAA"},
		{Name: "google", Prefix: "AIzaSy", Random: 33},
		{Name: "github", Prefix: "ghp_", Random: 36},
		{Name: "slack-bot", Prefix: "xoxb-", Random: 51},
		{Name: "slack-app", Prefix: "xapp-", Random: 96},
		{Name: AWS, Prefix: "AKIA", Random: 28},
		{Name: "e2b", Prefix: "e2b_", Random: 40, Hex: true},
	}
}

// Find is the form of a name; "" is Plain.
func Find(name string) (Form, bool) {
	if name == "" {
		name = Plain
	}
	for _, f := range Forms() {
		if f.Name == name {
			return f, true
		}
	}
	return Form{}, false
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	hex     = "0123456789abcdef"
)

// New makes one that nobody had before.
func (f Form) New() string {
	random := make([]byte, f.Random)
	rand.Read(random) // it never fails, by its contract
	alphabet := letters
	if f.Hex {
		alphabet = hex
	}
	var b strings.Builder
	b.WriteString(f.Prefix)
	for _, r := range random {
		b.WriteByte(alphabet[int(r)%len(alphabet)])
	}
	b.WriteString(f.Suffix)
	return b.String()
}
