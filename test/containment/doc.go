// Package containment tries to get out: a program made for it runs inside real
// sandboxes, of the real daemon, and attempts every way out that a test of this
// kind can attempt without an exploit. Whether it got out is judged on the
// host.
//
// A probe is one attempt, a sub-command of the program in probe/;
// its token is a random word that it carries out if it gets out. The stage
// is a network and mount namespace of the test's own, which plays the host: the
// daemon, its gateway and the registry run there. Behind the stage's one wire
// lies the world, another namespace that answers at the addresses which
// probes aim at (the internet, metadata services, name servers). An oracle is
// what tells an escape on the host: frames on the wire or the stage's loopback
// with the token, visits at canaries (listeners that nobody has a reason to
// visit), questions at the world's name server, requests at the registry,
// watched files and control groups. The probe's words about itself count for nothing; they are
// printed to help.
//
// Most probes run under a law, a policy, without names. Under the other law there is one,
// whose house is a server of the test's own: what a listed name leads to is reached, and
// nothing past it. A refusal there is in the log besides.
//
// A probe has to be able to escape: its control is the same probe, by the same
// oracle, in a deliberately weak sandbox (the engine's own, in the stage's
// network and with mounts that no sandbox gets) or outside of any (a process
// of the stage, where a weak sandbox would still forbid it). A control that does
// not escape is INCONCLUSIVE, and that is a failure. After each group the
// golden path is walked: a command runs, an approved package arrives.
package containment
