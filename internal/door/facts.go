package door

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Facts are what policy weighs of a file, before its bytes are here.
func (f File) Facts() policy.FileFacts {
	facts := policy.FileFacts{
		File: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest,
		Published: f.Published, FirstSeen: f.FirstSeen, Scripts: f.Scripts, PartOf: f.PartOf,
	}
	if f.Digest != "" {
		facts.Digests = []string{f.Digest}
	}
	return facts
}

// Facts are those of the ask's file, with all digests that came with it. Once
// its bytes are here no more will come.
func (ask ArtifactAsk) Facts() policy.FileFacts {
	facts := ask.File.Facts()
	for _, d := range ask.Digests {
		if !slices.Contains(facts.Digests, d) {
			facts.Digests = append(facts.Digests, d)
		}
	}
	if own := "sha256:" + ask.SHA256; ask.Whole() && !slices.Contains(facts.Digests, own) {
		facts.Digests = append(facts.Digests, own)
	}
	facts.Complete = ask.Whole()
	return facts
}

// Whole tells that the ask is about verified bytes.
func (ask ArtifactAsk) Whole() bool { return ask.Serve || ask.Await }
