// Package foreign makes a project's settings of the settings of other tools: those of
// sandbox-runtime (srt), and a devcontainer.json. It is pure, and reads nothing but the text
// that it is given.
//
// What comes out lets a run do no more than those settings let theirs. A setting that can't be
// enforced is left out, and a note says why; where leaving it out would let more through, what it
// was an exception to goes with it.
//
// Vocabulary: the *project* is the directory that the settings are for; inside the sandbox it
// is /workspace. A *place* is where a path of the settings leads. A *note* says what became of a
// key that is not simply kept.
package foreign
