// Package policy turns a policy document into a Policy and answers questions
// by it. It is pure: no input or output, no clock, no logger; time and facts
// are arguments.
//
// Vocabulary: a *document* is YAML text; a *policy* is what it means; an
// *entry* is one package of a list; a *rule* is one of the document's `rules`
// (they judge commands, code and tools, never packages); a *decision* is
// allow, deny or hold with its reason.
package policy
