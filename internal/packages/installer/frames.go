package installer

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxOutput bounds what a rewrite may put on its standard output, in bytes.
const MaxOutput = 40 << 20

// maxFrames of one output, and maxFrameHead the bytes of a frame's first line.
const (
	maxFrames    = 8
	maxFrameHead = 100
)

// Documents are what came out of a sandbox, by the frames' names.
type Documents map[string][]byte

// ReadOutput splits a rewrite's standard output into its documents: lines
// "cofferdam-plan NAME BYTES", each followed by that many bytes and a line feed; names
// are those that there may be. Anything else refuses the output as a whole.
func ReadOutput(out []byte, names []string) (Documents, error) {
	if len(out) > MaxOutput {
		return nil, fault.Invalid("the resolver's result has more than %d bytes", MaxOutput)
	}
	docs := Documents{}
	for len(out) > 0 {
		head, _, ok := bytes.Cut(out[:min(len(out), maxFrameHead)], []byte("\n"))
		if !ok {
			return nil, badOutput()
		}
		words := strings.Split(string(head), " ")
		if len(words) != 3 || words[0] != "cofferdam-plan" || !slices.Contains(names, words[1]) || len(docs) == maxFrames {
			return nil, badOutput()
		}
		n, err := strconv.ParseUint(words[2], 10, 31)
		rest := out[len(head)+1:]
		if err != nil || strconv.FormatUint(n, 10) != words[2] || uint64(len(rest)) < n+1 || rest[n] != '\n' {
			return nil, badOutput()
		}
		if _, twice := docs[words[1]]; twice {
			return nil, badOutput()
		}
		docs[words[1]] = rest[:n:n]
		out = rest[n+1:]
	}
	return docs, nil
}

func badOutput() error {
	return fault.Invalid("what came out of the sandbox is not a resolver's result")
}
