// Package ui is what a person at a terminal sees of the command line: text that a
// terminal can't take for instructions, tables that fit, one line of progress, colours,
// a question, and the terminal itself while a command has it.
//
// Text of a package, an agent or the daemon passes through Printable, or through
// something here that uses it, before it is written.
package ui
