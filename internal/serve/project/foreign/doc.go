// Package foreign makes a project's settings of another tool's, a devcontainer.json. It is pure,
// and reads nothing but the text that it is given.
//
// A run under the settings that come out can do no more than one under those that went in. A
// setting that can't be enforced is left out, and a note says why.
//
// The project is the directory that the settings are for; inside the sandbox it is /workspace. A
// note says what became of a key that is not simply kept.
package foreign
