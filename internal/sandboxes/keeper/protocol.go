package keeper

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// A keeper lives on when its daemon is replaced, so that a daemon may meet one of
// an older release, or after a way back one of a newer. A keeper refuses a field or
// verb that it does not know, because to leave out what it asks for could end a
// sandbox; what a client finds in a response and does not know, it leaves out. So
// all that has come to requests since protocol 0 is named by a feature, a keeper
// tells its features in the answer to VerbPing, and a client sends nothing that
// needs one which the keeper has not told.

// Protocol counts the changes of this package's protocol. 0 are the keepers that
// tell nothing of themselves.
const Protocol = 4

// Feature is something that requests may carry since a protocol.
type Feature string

// The features, and since when.
const (
	FeatureProcesses Feature = "processes" // 1: Request.Processes
	FeatureFresh     Feature = "fresh"     // 2: Freeze.Fresh and Launch.Fresh
	FeatureOutput    Feature = "output"    // 3: VerbOutput
	FeatureSettle    Feature = "settle"    // 4: VerbSettle
)

// Features are those of this release.
func Features() []Feature {
	return []Feature{FeatureProcesses, FeatureFresh, FeatureOutput, FeatureSettle}
}

// Hello is what a keeper tells of itself.
type Hello struct {
	Protocol int       `json:"protocol"`
	Features []Feature `json:"features,omitempty"`
	Release  string    `json:"release,omitempty"` // of its binary
	// Self is the keeper as it sees itself: who sees another sees other numbers, or
	// another clock, and can't tell it of processes but by what they have in common.
	Self process.ID `json:"self,omitzero"`
}

// Lacks are the features of this release that the keeper does not have.
func (h Hello) Lacks() []Feature {
	var lacking []Feature
	for _, f := range Features() {
		if !h.hasFeature(f) {
			lacking = append(lacking, f)
		}
	}
	return lacking
}

func (h Hello) hasFeature(f Feature) bool { return slices.Contains(h.Features, f) }

// neededFeatures are the features without which a keeper would refuse the request.
func (r *Request) neededFeatures() []Feature {
	var needed []Feature
	if len(r.Processes) > 0 {
		needed = append(needed, FeatureProcesses)
	}
	if r.Freeze != nil && r.Freeze.Fresh || r.Launch != nil && r.Launch.Fresh {
		needed = append(needed, FeatureFresh)
	}
	if r.Verb == VerbOutput {
		needed = append(needed, FeatureOutput)
	}
	if r.Verb == VerbSettle {
		needed = append(needed, FeatureSettle)
	}
	return needed
}
