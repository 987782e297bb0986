// Package wasm is an engine of calls: JavaScript by QuickJS, compiled to WebAssembly, in
// this process. The wall is WebAssembly's: code has a memory of its own, and beside it
// nothing but the few functions of host.go. There are no files, no network, no processes
// and no clock finer than a millisecond.
//
// QuickJS is one module, compiled once. A machine is that module with a memory of its own, which
// begins as a copy of the image: the memory in which the prelude (prelude.js) was evaluated and
// nothing else. A machine runs one call and is thrown away, whatever became of it, so nothing of a
// call can reach another. Some machines are kept ready; Config.Memory bounds those that run.
//
// The module's calls of the host (host.go) are as hostile as its code: a fault in QuickJS
// may have any memory say anything, so every address and length is checked, and texts are
// read by decode.go.
package wasm
