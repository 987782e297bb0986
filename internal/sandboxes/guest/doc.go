// Package guest is the other end of the channel: the agent that is PID 1 in
// every sandbox. It starts commands, reads and writes files, answers DNS on loopback, listens where a
// name that the host knows has an address, and carries each connection to the
// host as a stream. It decides nothing: what may happen is the host's to say,
// and what comes from here is a claim to the host.
//
// Vocabulary: the *agent* is this process; a *command* is one exec of the host,
// with the *tree* of processes that came of it; the *marker* is the environment
// variable that every process of a command inherits and can forge, the *lineage* the limits that
// it inherits and can't; a *name* is a host name
// that exists here, with an address of its own in 127.64.0.0/10; the *identity*
// is what the host's Configure call said: user, host name, environment, CA; a
// *place* is where a file lies, found with the *rights* of the user for whom the
// host asks; a *dial* is a connection of the host to a program in the sandbox.
//
// The life of a sandbox: PID 1 takes the channel away from its stdin and
// stdout, drops what it does not need (Harden), binds DNS, and serves. The
// host configures it, then starts commands. When the channel closes the agent
// returns, PID 1 ends, and the kernel ends the sandbox with it.
//
// Whatever runs in the sandbox is not trusted by the agent either: commands
// are another user without capabilities, they share no descriptor with the
// agent, and what they can ask (`cofferdam why`) is one bounded question.
package guest
