package golang

import (
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// publicKey is the key of the public database as Go's own distribution has it,
// behind a plus sign and the key's hash. The hash covers the database's name
// too, so that with another name it makes no verifier.
const publicKey = "+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"

// VerifierFor gives the verifier of the database that a value of GOSUMDB names:
// the public one by its name, any other with its key ("name+hash+key"). A second
// field is where to ask the database and is not part of it. ErrNotFound: it is
// "off", and there is none.
func VerifierFor(gosumdb string) (string, error) {
	fields := strings.Fields(gosumdb)
	if len(fields) == 0 || len(fields) > 2 {
		return "", fault.Invalid("GOSUMDB is %q; write the name of a checksum database, or its name with its key", redact.Cut(gosumdb, maxQuoted))
	}
	verifier := fields[0]
	if verifier == "off" {
		return "", fault.New(fault.ErrNotFound, "GOSUMDB=off: there is no checksum database")
	}
	if !strings.Contains(verifier, "+") {
		verifier += publicKey
	}
	if _, err := note.NewVerifier(verifier); err != nil {
		return "", fault.Wrap(fault.ErrInvalid, err, "GOSUMDB names the checksum database %q without the key that belongs to it", redact.Cut(fields[0], maxQuoted))
	}
	return verifier, nil
}

// VerifierOf implements ecosystem.Witness: it is VerifierFor.
func (Protocol) VerifierOf(named string) (string, error) { return VerifierFor(named) }

// openVerifier reads what a log says that its verifier is, as VerifierFor does.
func openVerifier(text string) (string, note.Verifier, error) {
	whole, err := VerifierFor(text)
	if err != nil {
		return "", nil, err
	}
	v, err := note.NewVerifier(whole)
	if err != nil { // not reached: VerifierFor read it
		return "", nil, fault.Wrap(fault.ErrInvalid, err, "the checksum database's verifier can't be read")
	}
	return whole, v, nil
}
