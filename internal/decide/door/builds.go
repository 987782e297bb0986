package door

// MaxBuilt bounds what is made of a published file in a sandbox of its own, in bytes.
const MaxBuilt = 64 << 20

// BuildAsk is Build's question. The file is of policy.KindBuilt or policy.KindRan; its
// digest is its source's, the published file that it is made of.
type BuildAsk struct {
	FileAsk
	Source string `json:"source"` // its file name
	SHA256 string `json:"sha256"` // of the source's verified bytes, hex
	URL    string `json:"url"`    // at which sandboxes get the source
}

// BuildAnswer is a refusal, or what was built.
type BuildAnswer struct {
	Answer
	Built *Built `json:"built,omitempty"` // nil: nothing
}

// Built is what came out of a build. Nobody has looked into it.
type Built struct {
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`
}

// ReadBuiltAsk asks for a piece of what was built for a sandbox.
type ReadBuiltAsk struct {
	Sandbox string `json:"sandbox"`
	SHA256  string `json:"sha256"`
	Offset  int64  `json:"offset"`
}
