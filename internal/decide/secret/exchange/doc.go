// Package exchange puts secrets into requests and takes them out of answers, where the
// gateway ends TLS: inside a sandbox there is a placeholder, and outside of the one host
// nothing. It does no I/O of its own: secrets come from a Keeper.
//
// Two rules hold whatever a policy says. A request that still has a placeholder in it when
// it is about to leave is refused, for any host: it was sent to where it does not belong,
// or in a way that nothing swaps. And an answer of a host that gets secrets has none of
// them in it, in the forms that secrets have on the wire.
//
// When bytes of an answer are handed on, and how many, depends on nothing that is secret: see tail. So nobody finds a
// secret out by having a host say guesses, but for what refuseStopped bounds.
//
// One thing is not promised: a host that gets a secret can give it back in a form that nobody
// foresees, such as reversed, encrypted, compressed inside, or in pieces.
//
// Bounds of what is foreseen. A secret may have what looks like escapes of its own (%41, \u0041, &#65;). A host that
// writes some of them once more than others is found out for each set of them where there are at most maxApart;
// where there are up to maxSingular, if it is one of them, or all but one; and of any number, if it is all of one or
// more kinds (kindOfByte). Each escape and encoding around counts, up to maxUnescaped and maxDecoded. The beginning
// of a terminal's sequence directly before a secret takes its first letter as the sequence's end, and all figures
// and signs before that: what is left is found, in whole sequences between the letters as well, if it has at least
// 8 bytes, and is no word of fewer than 16 letters. Which of the two a host meant can't be told, so the letters taken are not masked.
package exchange
