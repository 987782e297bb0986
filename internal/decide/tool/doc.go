// Package tool has the functions of the host that sandboxes may call by name: what one
// is, which arguments it takes, and what it may answer. How one is run is for packages
// command and endpoint, behind the one contract Runner.
//
// Vocabulary: a *tool* is what the operator declares; its *schema* is the JSON Schema of
// its arguments, which are always one JSON object; a *call* is one use of it by a
// sandbox; a *runner* is what does the work on the host.
//
// Arguments come from a guest. They are read once, bounded, and written anew in one
// form; what is judged, recorded by its digest and handed to the tool is that form.
package tool
