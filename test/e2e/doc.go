// Package e2e tries the product as a person would: the built binary, real
// sandboxes, real clients, the real registry that this machine's pip is set up
// for. Each file of testdata is a testscript that anyone can read.
//
// Vocabulary: a *script* is one file of testdata; its *installation* is a state
// directory of its own, which shares the built templates with the others.
// Upstream host names are written as UPSTREAM in what scripts compare. What a
// script can say beyond testscript's own words stands in commands_test.go.
//
// COFFERDAM_UPDATE=1 rewrites the golden files, COFFERDAM_BIN names a folder
// with another build than bin/.
package e2e
