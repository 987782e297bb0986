// Package isolation measures how much two sandboxes of different tokens can tell each
// other through what they share: the gateway and its cache, approvals, the log, ids,
// quotas, names. `make isolation` runs it and prints one table; docs/isolation.md has the
// figures and says how they are meant.
//
// A channel is a shared thing with a sender, who acts or does not, and a
// receiver, who looks. A trial is one slot: the sender sends a random bit, the receiver
// looks, and its decoder guesses. An observation is all that the receiver sees: the
// answer to the byte, and how long it took. A decoder is the best test of one feature
// of observations (a number in the text, its growth, a word, the time), chosen on trials
// whose bits it is told and judged on others. A channel of state is read from the text,
// one of timing from the time; each channel is measured in both ways.
//
// Sender and receiver are given a common clock for nothing: the test tells each when its
// turn is. Two real sandboxes would first have to agree on one, so that a rate here is more
// than they would have.
//
// An oracle on the host shows that the sender did what it was told to. A control is the
// same channel in a daemon that is built with `-tags leaky`, which leaks on purpose; if its
// leak is not found, the run is INCONCLUSIVE, and that is a failure.
package isolation
