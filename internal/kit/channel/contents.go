package channel

// ContentsAsk names directories, at most MaxContents.
type ContentsAsk struct {
	Paths []string `json:"paths"`
}

// MaxContents bounds one ask, so that the answer fits a frame.
const MaxContents = 500

// ContentsReply has the digests (package digest) of the asked directories, in the order
// of the ask: with all that is in them, and without what they have in node_modules. Both
// are "" of a directory that can't be compared: it has a link or a device, or can't be
// read.
type ContentsReply struct {
	Whole []string `json:"whole"`
	Own   []string `json:"own"`
}
