// Package conversion makes a policy of ours of a policy document of the agent-sandbox toolkit
// (versions 4 and 5 of its language): it keeps what can be enforced and says what it left out.
// It is pure.
//
// What is made refuses whatever the document's own evaluator refuses of what Cofferdam judges:
// commands, code and calls of tools. The evaluator is that of release 5.0.0, or of 4.1.0 if
// asked for. Where a rule can't be said in our words,
// one that permits is left out, one that refuses is widened as long as it is known to refuse no
// less, and else the conversion fails. A rule that permits has a denial in it as well: what can't
// be evaluated is denied where it is reached.
//
// The field of a document's rule is known if Cofferdam ever has it. The field is compared with the
// rule's operand, which in that language is of any type and is never converted. A note says what
// became of a part that is not kept as it was.
package conversion
