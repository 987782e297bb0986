// Package door is all that the gateway knows of the daemon: what it may ask, and how
// the questions go over the connection between the two.
//
// Vocabulary: an *ask* is a question about a sandbox's request; an *answer* is a
// decision that was recorded; an *epoch* names a set of facts and rules under which an
// index's verdicts hold; a *walk* reads what may lead to a package before it is refused.
//
// Door is the contract. The admission controller implements it, Serve answers with any
// implementation, and Client carries it over a connection.
package door
