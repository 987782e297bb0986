package checkpoint

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Keyring is the public keys that are trusted.
type Keyring struct {
	lines     []string
	verifiers []note.Verifier
}

// NewKeyring reads public keys, one a line; empty lines and such as begin with #
// are passed over.
func NewKeyring(text string) (Keyring, error) {
	var r Keyring
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if err := r.addKey(l); err != nil {
			return Keyring{}, err
		}
	}
	if len(r.lines) == 0 {
		return Keyring{}, fault.Invalid("there is no public key in it; `cofferdam audit key show` prints one")
	}
	return r, nil
}

func (r *Keyring) addKey(line string) error {
	if slices.Contains(r.lines, line) {
		return nil
	}
	v, err := note.NewVerifier(line)
	if err != nil {
		return fault.Invalid("%.100q is no public key; one looks like name+hash+base64", line)
	}
	r.lines, r.verifiers = append(r.lines, line), append(r.verifiers, v)
	return nil
}

// Keys are the public keys, in the order in which they came to be trusted.
func (r Keyring) Keys() []string { return slices.Clone(r.lines) }

// Open verifies a note: one signature at least must be of a trusted key, and
// none may be a wrong one of a trusted key.
func (r Keyring) Open(msg []byte) (Checkpoint, error) {
	if len(msg) > MaxNote {
		return Checkpoint{}, fault.Invalid("the log checkpoint is %d bytes long; one has at most %d", len(msg), MaxNote)
	}
	n, err := note.Open(msg, list(r.verifiers))
	if unverified, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		c, err := parseText(unverified.Note.Text)
		if err != nil {
			return Checkpoint{}, err
		}
		return c, fault.New(fault.ErrForbidden, "no key that you trust has signed the log checkpoint of %d records of %.80q", c.Size, c.Origin)
	}
	if err != nil {
		return Checkpoint{}, fault.Invalid("the log checkpoint is damaged: %s", err)
	}
	return parseText(n.Text)
}

// Learn looks for rotations: a note in which a trusted key vouches for another
// makes that trusted too. It tells whether there was anything new.
func (r *Keyring) Learn(msg []byte) bool {
	c, err := r.Open(msg)
	if err != nil || c.NewKey == "" || slices.Contains(r.lines, c.OldKey) == slices.Contains(r.lines, c.NewKey) {
		return false
	}
	both, err := NewKeyring(c.OldKey + "\n" + c.NewKey)
	if err != nil {
		return false
	}
	if n, err := note.Open(msg, list(both.verifiers)); err != nil || len(n.Sigs) != 2 {
		return false
	}
	return r.addKey(c.OldKey) == nil && r.addKey(c.NewKey) == nil
}

// list is note.Verifiers of any names; several keys may have one name.
type list []note.Verifier

func (l list) Verifier(name string, hash uint32) (note.Verifier, error) {
	for _, v := range l {
		if v.Name() == name && v.KeyHash() == hash {
			return v, nil
		}
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
}
