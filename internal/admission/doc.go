// Package admission is the one door: every "may this happen?" goes through the
// Controller, which asks package policy, writes the audit record before
// anything happens, and answers. What cannot be decided or recorded is refused.
//
// Vocabulary: an *ask* is a question from the gateway about a sandbox's
// request; an *answer* is a decision that was recorded; an *epoch* names a set
// of facts and rules under which an index's verdicts hold.
package admission
