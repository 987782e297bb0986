// Package exchange puts secrets into requests and takes them out of answers, where the
// gateway ends TLS: inside a sandbox there is a placeholder, and outside of the one host
// nothing. It does no I/O of its own: secrets come from a Keeper.
//
// Two rules hold whatever a policy says. A request that still has a placeholder in it when
// it is about to leave is refused, for any host: it was sent to where it does not belong,
// or in a way that nothing swaps. And an answer of a host that gets secrets has none of
// them in it, in the forms that secrets have on the wire.
//
// What is not promised: a host that gets a secret can give it back in a form that nobody
// foresees, such as reversed, encrypted, compressed inside, or in pieces.
package exchange
