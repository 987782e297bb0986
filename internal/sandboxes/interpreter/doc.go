// Package interpreter runs cells of code in sandboxes, and keeps what they leave behind for
// the next.
//
// A cell is code that is handed over as text. In a context cells run one after the other and find
// what those before them made. It has a language and a working directory, and one process, its
// kernel. Cells that name no context get the default one of their language.
//
// A kernel is one of the programs in programs/, started as a command of its sandbox over the
// channel. It has its text and then requests on standard input, and writes messages, a line
// of JSON each: see message.go. Its messages are a guest's word: lines are bounded, the
// types of messages are closed, and a kernel that breaks the rules is ended. Nothing in here
// believes that a message tells what a cell did.
//
// Each cell is judged by the sandbox's policy, and on record, before a kernel gets it.
package interpreter
