// Package door is all that the gateway knows of the daemon: what it may ask, and how
// the questions go over the connection between the two.
//
// An epoch names a set of facts and rules under which an index's verdicts hold. A walk reads what
// may lead to a package before it is refused.
//
// Door is the contract, of four parts: Packages, Hosts, Secrets and Tools. The admission controller implements it, Serve answers with any
// implementation, and Client carries it over a connection.
package door
