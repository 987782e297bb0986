// Package tool has the functions of the host that sandboxes may call by name: what one
// is, which arguments it takes, and what it may answer. How one is run is for packages
// command and endpoint, behind the one contract Runner.
//
// The operator declares a tool. The JSON Schema of its arguments is always one of a JSON object.
//
// Arguments come from a guest. They are read once, bounded, and written anew in one
// form; what is judged, recorded by its digest and handed to the tool is that form.
package tool
