// Package expression finds regular expressions in text as Python's re.search
// does: that is the language of agent-sandbox policies' rules, and a rule that means
// less here than there loses a denial. It reads Python's own syntax with a
// reader of its own, as no expression of another language is quite the same,
// and runs it in time that is linear in the text.
//
// What Python refuses is refused. So is what has no meaning without going back
// in the text (references, look-around, atomic groups, possessive repeats) and
// a little that nobody needs in a rule (the flag x, named characters, POSIX
// classes, which Python reads as something else).
//
// A place is a condition on where in the text one is, such as "$".
//
// Not guaranteed: that a release of Python knows the same characters. Letters
// are those of Go's Unicode tables; Python's differ in what one of the two
// does not know yet.
package expression
