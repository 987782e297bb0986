// Package backendtest has something simple to put in the place of the sandboxes'
// manager: the wires are tested with it, SDKs included.
//
// Each pretended sandbox has real processes and files of the machine that the test runs on. It
// isolates nothing: only tests' own commands may run in it.
package backendtest
