// Package jscall runs calls: one piece of code, without a sandbox, that is judged by a
// policy, recorded before it runs and when it has ended, and bounded.
//
// The engine that runs a call is its caller (engine.Caller). A call has no files, no network and no
// processes, so of a policy only what is said of code, of tools, of isolation and of limits counts.
package jscall
