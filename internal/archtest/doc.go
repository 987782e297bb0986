// Package archtest holds the architecture as tests: import direction, package
// comments, the dependency list, and which words may stand where. It has no
// code of its own.
package archtest
