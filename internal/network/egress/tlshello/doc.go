// Package tlshello reads what a TLS handshake shows in the clear: the name that a client
// asks for, and whether the server has it ask again. It is pure and strict: bytes go in as
// they come, in records and pieces of any size, and what could be read in two ways is
// refused.
//
// A message of the handshake may lie in several of TLS's records. After a HelloRetryRequest (a
// retry) the client says its ClientHello a second time. Not every server holds a client to the name of its
// first one, so code that goes by the name has to read the second, too.
package tlshello

import "errors"

// Error says what is wrong with a handshake, in a few words that hold nothing of the
// peer's text.
type Error struct{ What string }

// Error implements error.
func (e *Error) Error() string { return e.What }

func wrongHello(what string) error { return &Error{What: what} }

// Sentence is the words of an Error of this package, "" of another.
func Sentence(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.What
	}
	return ""
}
