// Package guest is the other end of the channel: the agent that is PID 1 in
// every sandbox. It starts commands, reads and writes files, answers DNS on loopback, listens where a
// name that the host knows has an address, and carries each connection to the
// host as a stream. It decides nothing: what may happen is the host's to say,
// and what comes from here is a claim to the host.
//
// Each command of the host has a tree of processes that came of it. All of them inherit an
// environment variable that they can forge (marker) and limits that they can't (lineage). A host
// name that exists here has an address of its own in 127.64.0.0/10. The host's Configure call says
// the user, host name, environment and CA. A file is found with the rights of the user for whom the
// host asks.
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
