// Package e2e tries the product as a person would: the built binary, real
// sandboxes, real clients, the real registry that this machine's pip is set up
// for. Each file of testdata is a testscript that anyone can read.
//
// Vocabulary: a *script* is one file of testdata; its *installation* is a state
// directory of its own, which shares the built templates with the others.
// Upstream host names are written as UPSTREAM in what scripts compare.
package e2e
