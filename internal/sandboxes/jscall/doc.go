// Package jscall runs calls: one piece of code, without a sandbox, that is judged by a
// policy, recorded before it runs and when it has ended, and bounded.
//
// Vocabulary: a *call* is one such piece of code with its run; a *caller* is the engine
// that runs it (engine.Caller). A call has no files, no network and no processes, so of a
// policy only what is said of code, of tools, of isolation and of limits counts.
package jscall
