// Package e2e tries the product as a person would: the built binary, real
// sandboxes, real clients, the real registry that this machine's pip is set up
// for. Each file of testdata is a testscript that anyone can read.
//
// A script is one file of testdata; its installation is a state directory of its
// own, which shares the built templates with the others. Upstream host names are written as
// UPSTREAM in what scripts compare. The words of scripts beyond testscript's own stand in
// commands_test.go.
//
// The client matrix is the same questions asked of each client, with its
// answers kept word for word: testdata/matrix/CLIENT.golden has a section for
// each question, "# QUESTION", what the client printed, and "(exit CODE)".
// matrix_test.go lists the questions and makes docs/ecosystems.md's tables of
// them. Scripts ask with testdata/matrix/ask.sh, mounted into the sandbox,
// gather what was said and end with "golden FILE CLIENT" (or with "answers FILE CLIENT",
// where only the first questions were asked). pip's newest version is asked always; the
// other clients, and older ones, with COFFERDAM_LONG=1 ("[long]" in a script).
//
// Some tests drive a daemon through the Go client instead, and count what it has on
// the host before and after (hoststate_test.go): deaths at each fault point, storms
// of requests, and a soak, which is everything at random for a long time.
// COFFERDAM_LONG=1 makes them long; COFFERDAM_SOAK is the soak's duration (20m).
//
// Each test has an installation of its own and looks at nothing else of the host, so
// most run beside each other; those that load the machine (storms, the soak, the
// tenants) run alone before them.
//
// COFFERDAM_UPDATE=1 rewrites the golden files, COFFERDAM_BIN names a folder
// with another build than bin/.
package e2e
