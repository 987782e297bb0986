// Package enginetest is the suite that every engine must pass: a contract that
// can be run.
//
// A control that the engine declares is tested; one that it does not declare
// must be explained in Capabilities.Missing. Tests of a control have a positive
// control: what is forbidden inside is shown to work where it is not.
package enginetest
