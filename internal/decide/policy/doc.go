// Package policy turns a policy document into a Policy and answers questions
// by it. It is pure: no input or output, no clock, no logger; time and facts
// are arguments.
//
// A document is YAML text, and a Policy what it means. Each entry of a list is one package; the
// document's `rules` judge commands, code and tools, never packages.
package policy
